"""Scalar, aggregate and window expressions: small immutable trees that know their type.

Column names are unique in a whole plan, so an expression never needs a table qualifier, and a column that a subquery's plan
does not produce itself is a reference to the query around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

from nearly.plan.immutable import Holder, Remembering, node, with_fields
from nearly.plan.types import BOOLEAN, DataType

if TYPE_CHECKING:
    from nearly.plan.nodes import Plan


@node
class Expression(Remembering):
    """Base of all expressions."""

    type: DataType


E = TypeVar("E", bound=Expression)
_SIGNLESS = (int, str, NoneType)
"""Values that are the same where they are equal."""


@node
class Column(Expression):
    """A column of the input, or of an enclosing query."""

    name: str


@node
class Literal(Expression):  # noqa: PLW1641  `node` gives it a hash
    """A constant; `value` is the Python value that Arrow gives for the type (None for null)."""

    value: Any

    def __eq__(self, other: object) -> bool:
        """Zeros with other signs are other constants: what is remembered of one must not be taken for the other."""
        if not isinstance(other, Literal):
            return NotImplemented
        if (self.type, self.value) != (other.type, other.value):
            return False
        return isinstance(self.value, _SIGNLESS) or repr(self.value) == repr(other.value)


@node
class Call(Expression):
    """A scalar function or operator applied to arguments that already have the types it takes."""

    function: str
    arguments: tuple[Expression, ...]


@node
class UserCall(Expression):
    """A function that the user brought; `symbol` is its name in the native engine, which no other function has."""

    function: str
    symbol: str
    arguments: tuple[Expression, ...]


@node
class Cast(Expression):
    """`CAST`, or `TRY_CAST` when `safe`: null instead of an error."""

    operand: Expression
    safe: bool = False


@dataclass(frozen=True, slots=True)
class SortKey(Holder):
    """One key of an ordering, with the place of nulls spelled out."""

    expression: Expression
    ascending: bool = True
    nulls_first: bool = True


@node
class AggregateCall(Expression):
    """An aggregate function; `where` is its FILTER clause."""

    function: str
    arguments: tuple[Expression, ...]
    distinct: bool = False
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """A window frame; a bound is None for unbounded, an offset otherwise (negative is preceding, 0 the current row)."""

    unit: str
    start: int | None
    end: int | None


@node
class WindowCall(Expression):
    """An aggregate or ranking function over a window."""

    call: Expression
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    frame: WindowFrame | None = None


@node
class Subquery(Expression):
    """A subquery used as a value: `kind` is scalar, in (with `operands` on its left) or exists."""

    kind: str
    plan: Plan
    operands: tuple[Expression, ...] = ()


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly below, subquery plans not included."""
    if isinstance(expression, Literal | Column):
        return ()
    found: list[Expression] = []
    for name in expression.__match_args__:
        found.extend(expressions_in(getattr(expression, name)))
    return tuple(found)


def expressions_in(value: Any) -> Iterator[Expression]:
    if isinstance(value, Expression):
        yield value
    elif isinstance(value, Holder):
        yield value.expression
    elif isinstance(value, tuple):
        for each in value:
            yield from expressions_in(each)


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, parents first."""
    ahead = [expression]
    while ahead:
        each = ahead.pop()
        yield each
        ahead.extend(reversed(children(each)))


Sizes = dict[int, tuple[Expression, int]]
"""Sizes of expressions by their identity."""


def size(expression: Expression, known: Sizes) -> int:
    """How many parts besides constants an expression has, one that occurs twice counted twice; each is looked at once."""
    if isinstance(expression, Literal):
        return 0
    found = known.get(id(expression))
    if found is None:
        found = known[id(expression)] = expression, 1 + sum(size(child, known) for child in children(expression))
    return found[1]


def map_children(expression: E, change: Callable[[Expression], Expression]) -> E:
    """The same expression over changed children; the very same object when nothing changed."""
    if isinstance(expression, Literal | Column):
        return expression
    return with_fields(expression, lambda value: map_value(value, change))


def map_value(value: Any, change: Callable[[Expression], Expression]) -> Any:
    """The value of a field with the expressions in it changed."""
    if isinstance(value, Expression):
        return change(value)
    if isinstance(value, Holder):
        held: Any = value
        new = change(held.expression)
        return held if new is held.expression else replace(held, expression=new)
    if isinstance(value, tuple):
        mapped = tuple(map_value(each, change) for each in value)
        return value if all(a is b for a, b in zip(mapped, value, strict=True)) else mapped
    return value


def transform(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Apply `change` to every node, children before parents."""
    return change(map_children(expression, lambda child: transform(child, change)))


def columns_of(expression: Expression) -> frozenset[str]:
    """Names of all columns the expression reads, the ones its subqueries take from outside included."""
    names: set[str] = set()
    for each in walk(expression):
        if isinstance(each, Column):
            names.add(each.name)
        elif isinstance(each, Subquery):
            names |= each.plan.outer_columns()
    return frozenset(names)


def substitute(expression: Expression, values: dict[str, Expression]) -> Expression:
    """Replace columns by expressions, inside subqueries too."""

    def change(each: Expression) -> Expression:
        if isinstance(each, Column):
            return values.get(each.name, each)
        if isinstance(each, Subquery):
            plan = each.plan.map_expressions(lambda inner: substitute(inner, values))
            return each if plan is each.plan else replace(each, plan=plan)
        return each

    return transform(expression, change)


def has_subquery(expression: Expression) -> bool:
    return any(isinstance(each, Subquery) for each in walk(expression))


def has_aggregate(expression: Expression) -> bool:
    """Whether an aggregate stands in it outside a window."""
    if isinstance(expression, AggregateCall):
        return True
    if isinstance(expression, WindowCall):
        inside = (*children(expression.call), *expression.partition, *(key.expression for key in expression.order))
        return any(has_aggregate(each) for each in inside)
    return any(has_aggregate(child) for child in children(expression))


def chain(predicate: Expression, connective: str) -> tuple[Expression, ...]:
    """What a chain of the same connective connects: of `and`, `a AND (b AND c)` gives a, b, c."""
    found: list[Expression] = []
    ahead = [predicate]
    while ahead:
        each = ahead.pop()
        if isinstance(each, Call) and each.function == connective:
            ahead.extend(reversed(each.arguments))
        else:
            found.append(each)
    return tuple(found)


def chained(parts: Sequence[Expression], connective: str) -> Expression:
    """The parts, at least one, connected. Law: `chain(chained(p, c), c) == p` for parts that are no such chains."""
    return reduce(lambda left, right: Call(BOOLEAN, connective, (left, right)), parts)


def conjuncts(predicate: Expression | None) -> tuple[Expression, ...]:
    """The parts of a conjunction."""
    return () if predicate is None else chain(predicate, "and")


def conjunction(parts: Sequence[Expression]) -> Expression | None:
    """AND of all parts; None for no part."""
    return chained(parts, "and") if parts else None


TRUE = Literal(BOOLEAN, True)
FALSE = Literal(BOOLEAN, False)


def same(left: Sequence[Column], right: Sequence[Column]) -> Expression | None:
    """That columns have the same values, pair by pair, nulls included; None when there is no pair."""
    return conjunction([Call(BOOLEAN, "<=>", pair) for pair in zip(left, right, strict=True)])
