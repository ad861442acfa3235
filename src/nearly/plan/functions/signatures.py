"""How a function of the table is described: its arity and the rule that types it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nearly.errors import SchemaError, Unsupported
from nearly.plan.expressions import Call, Expression
from nearly.plan.functions.coercion import implicit
from nearly.plan.types import DataType, is_simple

Arguments = tuple[Expression, ...]
Rule = Callable[[str, Arguments], Expression]


@dataclass(frozen=True, slots=True)
class Function:
    """One entry of the table: how many arguments it takes (`most` is None for any number) and how it is typed."""

    least: int
    most: int | None
    rule: Rule

    def resolve(self, name: str, arguments: Arguments) -> Expression:
        check_arity(name, len(arguments), self.least, self.most)
        return self.rule(name, arguments)


def check_arity(name: str, given: int, least: int, most: int | None) -> None:
    if given >= least and (most is None or given <= most):
        return
    wanted = f"at least {least}" if most is None else str(least) if most == least else f"{least} to {most}"
    kind = Unsupported if given in SPARK_ALSO_TAKES.get(name, ()) else SchemaError
    raise kind(f"function {name!r} takes {wanted} arguments, not {given}")


SPARK_ALSO_TAKES = {
    "decode": (2,), "instr": (3, 4), "lag": (4,), "lead": (4,), "nth_value": (3,), "percentile": (3,), "to_date": (2,),
    "trim": (2,),
}  # fmt: skip
"""Numbers of arguments with which Spark has the function and nearly does not."""


def fixed(result: DataType, *parameters: DataType, least: int | None = None) -> Function:
    """A function whose parameters and result have one type each; arguments are cast implicitly."""

    def rule(name: str, arguments: Arguments) -> Expression:
        cast = (implicit(name, each, type_) for each, type_ in zip(arguments, parameters, strict=False))
        return Call(result, name, tuple(cast))

    return Function(len(parameters) if least is None else least, len(parameters), rule)


def refuse_opaque(name: str, arguments: Arguments) -> None:
    """Refuse arguments of types that are not modelled at all, such as arrays."""
    if not all(is_simple(each.type) for each in arguments):
        raise refuse(name, arguments)


def refuse(name: str, arguments: Arguments) -> Unsupported:
    """The error for argument types that are not modelled; Spark may still know what to do with them."""
    shown = ", ".join(str(each.type) for each in arguments)
    return Unsupported(f"function {name!r} over ({shown}) is not in nearly's verified set")
