"""CASE and its relatives, and the choice among values."""

from __future__ import annotations

from nearly.plan.expressions import Call, Expression, Literal
from nearly.plan.functions.casting import coerce
from nearly.plan.functions.coercion import common
from nearly.plan.functions.logic import compare
from nearly.plan.functions.signatures import Arguments, Function, refuse, refuse_opaque
from nearly.plan.types import BOOLEAN, NULL, STRING


def case(name: str, arguments: Arguments) -> Expression:
    """(when1, then1, ..., else): all results in their common type; a null else is added when there is none."""
    complete = arguments if len(arguments) % 2 else (*arguments, Literal(NULL, None))
    refuse_opaque(name, arguments)
    tests = [coerce(each, BOOLEAN) for each in complete[:-1:2] if each.type in (BOOLEAN, NULL)]
    if len(tests) < len(complete) // 2:
        raise refuse(name, arguments)
    results = common(name, (*complete[1::2], complete[-1]))
    pairs = [part for pair in zip(tests, results, strict=False) for part in pair]
    return Call(results[-1].type, "case", (*pairs, results[-1]))


def _null_if(name: str, arguments: Arguments) -> Expression:
    """`nullif(a, b)` keeps the type of `a`."""
    value, other = arguments
    return case(name, (compare("=", (value, other)), Literal(NULL, None), value))


def _nvl2(name: str, arguments: Arguments) -> Expression:
    value, present, absent = arguments
    return case(name, (Call(BOOLEAN, "isnotnull", (value,)), present, absent))


def _decode(name: str, arguments: Arguments) -> Expression:
    """`decode(value, key1, result1, ..., default)` finds keys with null-safe equality; without a default it is a null text."""
    value, *rest = arguments
    default = [rest.pop()] if len(rest) % 2 else [Literal(STRING, None)]
    branches = [part for key, result in zip(rest[::2], rest[1::2], strict=True) for part in (compare("<=>", (value, key)), result)]
    return case(name, (*branches, *default))


def _first_present(name: str, arguments: Arguments) -> Expression:
    refuse_opaque(name, arguments)
    values = common(name, arguments)
    return values[0] if len(values) == 1 else Call(values[0].type, name, values)


def _extreme(name: str, arguments: Arguments) -> Expression:
    """`greatest` and `least` skip nulls, put NaN on top, and never turn strings into numbers."""
    refuse_opaque(name, arguments)
    values = common(name, arguments, promote_strings=False)
    return Call(values[0].type, name, values)


FUNCTIONS = {
    "case": Function(2, None, case),
    "if": Function(3, 3, case),
    "nullif": Function(2, 2, _null_if),
    "nvl2": Function(3, 3, _nvl2),
    "decode": Function(3, None, _decode),
    "coalesce": Function(1, None, _first_present),
    **dict.fromkeys(("greatest", "least"), Function(2, None, _extreme)),
}
