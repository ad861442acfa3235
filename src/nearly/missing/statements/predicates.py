"""Predicates of bound expressions to regions: where is it true, and where is it false?

Three-valued logic: a predicate is true, false or unknown for a row. `Regions.true(p)` and `Regions.false(p)` are the rows where
it is true and false; null is in neither, so `WHERE NOT p` and the rows that a predicate leaves out come out right.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from nearly.algebra.boxes import EVERYWHERE, NOWHERE, Region, Space, box, intersection, union
from nearly.algebra.half_spaces import HalfSpace
from nearly.algebra.ordered_sets import ONLY_NULL, OrderedSet
from nearly.errors import Unsupported
from nearly.missing.statements.domains import OrderedDomain, RowSpace
from nearly.missing.statements.linear import Linear, keeps_values, linear
from nearly.plan.explain import show
from nearly.plan.expressions import Call, Cast, Column, Expression, Literal
from nearly.plan.functions.literals import timestamp
from nearly.plan.types import DATETIMES, DOUBLE, FLOAT, LONG, TIMESTAMP, Decimal, is_numeric

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>", "<=>": "<=>"}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
_COMPARE: dict[str, Callable[[OrderedDomain, Any], OrderedSet]] = {
    "<": OrderedDomain.below,
    "<=": OrderedDomain.at_most,
    ">": OrderedDomain.above,
    ">=": OrderedDomain.at_least,
    "=": OrderedDomain.equal,
    "<>": lambda domain, value: domain.values - domain.equal(value),
}


@dataclass(frozen=True, slots=True)
class Regions:
    """Regions of predicates over one scan; `sources` gives the table's column behind each name of the plan."""

    rows: RowSpace
    sources: Mapping[str, str]

    def true(self, predicate: Expression) -> Region:
        """The rows for which the predicate is true."""
        match predicate:
            case Literal(value=value):
                return EVERYWHERE if value is True else NOWHERE
            case Call(function="and", arguments=(left, right)):
                return intersection(self.true(left), self.true(right))
            case Call(function="or", arguments=(left, right)):
                return union(self.true(left), self.true(right), self._space)
            case Call(function="not", arguments=(operand,)):
                return self.false(operand)
        return self._atom(predicate, negate=False)

    def false(self, predicate: Expression) -> Region:
        """The rows for which the predicate is false, which excludes those for which it is unknown."""
        match predicate:
            case Literal(value=value):
                return EVERYWHERE if value is False else NOWHERE
            case Call(function="and", arguments=(left, right)):
                return union(self.false(left), self.false(right), self._space)
            case Call(function="or", arguments=(left, right)):
                return intersection(self.false(left), self.false(right))
            case Call(function="not", arguments=(operand,)):
                return self.true(operand)
        return self._atom(predicate, negate=True)

    def column(self, expression: Expression) -> str | None:
        """The table's column that an expression stands for: a column, or one under casts that keep its values and their order."""
        while isinstance(expression, Cast) and keeps_values(expression):
            expression = expression.operand
        return self.sources.get(expression.name) if isinstance(expression, Column) else None

    @property
    def _space(self) -> Space:
        return self.rows.everything

    def _atom(self, predicate: Expression, negate: bool) -> Region:
        match predicate:
            case Column():
                return self._side(self._known(predicate), lambda domain: domain.equal(not negate))
            case Call(function="isnull" | "isnotnull" as function, arguments=(operand,)):
                column = self._known(operand)
                wants_null = (function == "isnull") != negate
                return box({column: ONLY_NULL if wants_null else self.rows.domains[column].values})
            case Call(function="in", arguments=(operand, *options)):
                return self._in(operand, options, negate)
            case Call(function="like", arguments=(operand, Literal(value=str() as pattern), *_)):
                return self._like(predicate, operand, pattern, negate)
            case Call(function="<=>", arguments=(left, right)):
                return self._null_safe(left, right, negate)
            case Call(function=function, arguments=(left, right)) if function in _COMPARE:
                return self._compare(_NEGATED[function] if negate else function, left, right, predicate)
        raise refusal(predicate)

    def _compare(self, function: str, left: Expression, right: Expression, predicate: Expression) -> Region:
        column = self.column(left)
        if column is None and self.column(right) is not None:
            column, right, function = self.column(right), left, _FLIPPED[function]
        if column is not None and (value := self._constant(right)) is not None:
            self._refuse_rounding(column, right)
            return self._side(column, lambda domain: _COMPARE[function](domain, value))
        return self._linear(function, left, right, predicate)

    def _in(self, operand: Expression, options: list[Expression], negate: bool) -> Region:
        column = self._known(operand)
        domain = self.rows.domains[column]
        found = OrderedSet(())
        for option in options:
            value = self._constant(option)
            if value is None:
                if isinstance(option, Literal) and negate:
                    return NOWHERE
                if isinstance(option, Literal):
                    continue
                raise refusal(option)
            found = found | domain.equal(value)
        return box({column: domain.values - found if negate else found})

    def _like(self, predicate: Expression, operand: Expression, pattern: str, negate: bool) -> Region:
        """A pattern that is a text, or a text and a final `%`."""
        prefix = pattern.removesuffix("%")
        if set(prefix) & set("%_\\"):
            raise refusal(predicate)
        column = self._known(operand)
        domain = self.rows.domains[column]
        after = prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix and ord(prefix[-1]) < 0xD7FF else None
        if pattern != prefix and prefix and after is None:
            raise refusal(predicate)
        if pattern == prefix:
            found = domain.equal(pattern)
        else:
            found = domain.at_least(prefix) & domain.below(after) if after is not None else domain.values
        return box({column: domain.values - found if negate else found})

    def _null_safe(self, left: Expression, right: Expression, negate: bool) -> Region:
        column = self._known(left)
        domain = self.rows.domains[column]
        if isinstance(right, Literal) and right.value is None:
            found = ONLY_NULL
        else:
            value = self._constant(right)
            if value is None:
                raise refusal(right)
            found = domain.equal(value)
        return box({column: domain.everything - found if negate else found})

    def _linear(self, function: str, left: Expression, right: Expression, predicate: Expression) -> Region:
        form = linear(left, self._exact_unit, self._constant)
        other = linear(right, self._exact_unit, self._constant)
        if form is None or other is None:
            raise refusal(predicate)
        return self._half_spaces(function, form.minus(other))

    def _half_spaces(self, function: str, form: Linear) -> Region:
        """`form <function> 0` as half-spaces; equality is two of them, and inequality either of their complements."""
        if not form.terms:
            return EVERYWHERE if form.compares(function) else NOWHERE
        if len(form.terms) == 1:
            ((column, weight),) = form.terms
            turned = _FLIPPED[function] if weight < 0 else function
            zero = -form.constant / weight * (self.rows.domains[column].unit or 1)
            return self._side(column, lambda domain: _COMPARE[turned](domain, zero))
        sides = {column: self.rows.domains[column].values for column, _ in form.terms}
        below, above = form.at_most_zero, form.negated.at_most_zero
        match function:
            case "<=":
                return _region(sides, below)
            case ">=":
                return _region(sides, above)
            case "<":
                return _region(sides, above.negated)
            case ">":
                return _region(sides, below.negated)
            case "=":
                return _region(sides, below, above)
        return (*_region(sides, below.negated), *_region(sides, above.negated))

    def _exact_unit(self, expression: Expression) -> tuple[str, OrderedDomain] | None:
        column = self.column(expression)
        return None if column is None else (column, self.rows.domains[column])

    def _known(self, expression: Expression) -> str:
        column = self.column(expression)
        if column is None or column not in self.rows.domains:
            raise refusal(expression)
        return column

    def _side(self, column: str, values: Callable[[OrderedDomain], OrderedSet]) -> Region:
        if column not in self.rows.domains:
            raise Unsupported(f"column {column!r} is of a type that ranges are not computed for")
        return box({column: values(self.rows.domains[column])})

    def _constant(self, expression: Expression) -> Any:
        """The value of a constant; None for anything else, and for null."""
        match expression:
            case Literal(value=value):
                return value
            case Cast(type=type_, operand=Literal(value=str() as text)) if type_ == TIMESTAMP:
                return timestamp(text, ZoneInfo(self.rows.zone)).value
            case Cast(type=type_, operand=Literal(value=dt.date() as day)) if type_ in DATETIMES:
                return day
            case Cast(type=type_, operand=Literal(value=str() as text)) if type_ in DATETIMES:
                return text
            case Cast(type=type_, operand=Literal(value=value)) if is_numeric(type_) and is_numeric(expression.operand.type):
                return float(value) if type_ in (DOUBLE, FLOAT) else value
        return None

    def _refuse_rounding(self, column: str, constant: Expression) -> None:
        """Spark compares a bigint with a double as doubles, which round beyond 2**53."""
        exact = self.rows.domains[column].type
        if constant.type in (DOUBLE, FLOAT) and (exact == LONG or (isinstance(exact, Decimal) and exact.precision > 15)):
            raise Unsupported(f"column {column!r} ({exact}) beside a double is rounded by Spark; write the number without exponent")


def refusal(expression: Expression) -> Unsupported:
    return Unsupported(
        f"{show(expression)} cannot be decided for missing rows; comparisons of columns with constants, IN, BETWEEN, IS NULL, "
        "prefix LIKE, linear comparisons of columns, AND, OR and NOT can"
    )


def _region(sides: Mapping[str, OrderedSet], *planes: HalfSpace) -> Region:
    return box(sides, planes)
