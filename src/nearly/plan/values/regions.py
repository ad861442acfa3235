"""Predicates of bound expressions to regions: where is it true, and where is it false?

Three-valued logic: a predicate is true, false or unknown for a row. `Regions.true(p)` are the rows where it is true, and those of
`NOT p` the rows where it is false; the rows where it is unknown are in neither.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from nearly.algebra.boxes import EVERYWHERE, NOWHERE, Region, Space, box, intersection, union
from nearly.algebra.ordered_sets import ONLY_NULL, OrderedSet
from nearly.errors import SchemaError, Unsupported, unknown
from nearly.plan.explain import show
from nearly.plan.expressions import Call, Cast, Column, Expression, Literal
from nearly.plan.functions.literals import timestamp
from nearly.plan.schema import TableSchema
from nearly.plan.types import DATETIMES, FLOAT, FRACTIONS, TIMESTAMP, is_numeric
from nearly.plan.values.domains import OrderedDomain, domain_of, keeps_values
from nearly.plan.values.linear import Linear, linear
from nearly.plan.values.ranges import NO_COLUMNS, range_of
from nearly.plan.values.rounding import typed

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>", "<=>": "<=>"}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
_COMPARE: dict[str, Callable[[OrderedDomain, Any], OrderedSet]] = {
    "<": OrderedDomain.below,
    "<=": OrderedDomain.at_most,
    ">": OrderedDomain.above,
    ">=": OrderedDomain.at_least,
    "=": OrderedDomain.equal,
    "<>": OrderedDomain.unequal,
}


@dataclass(frozen=True, slots=True)
class RowSpace:
    """The domains of a table's columns; a column of another type has none. `zone` is the session's time zone, None if not known."""

    schema: TableSchema
    domains: Mapping[str, OrderedDomain]
    everything: Space
    zone: str | None

    @classmethod
    def of(cls, schema: TableSchema, zone: str) -> RowSpace:
        domains = {}
        for column in schema.columns:
            try:
                domains[column.name] = domain_of(column.type, zone, column.name)
            except Unsupported:
                continue
        return cls(schema, domains, {name: domain.everything for name, domain in domains.items()}, zone)

    @property
    def table(self) -> str:
        return self.schema.name

    def column(self, name: str) -> str:
        """The column of that name, compared without case."""
        found = [each.name for each in self.schema.columns if each.name.lower() == name.lower()]
        if not found:
            raise unknown("column", name, (each.name for each in self.schema.columns))
        if len(found) > 1 and name not in found:
            raise SchemaError(f"column {name!r} of table {self.table!r} is ambiguous: {', '.join(found)}")
        chosen = name if name in found else found[0]
        if chosen not in self.domains:
            domain_of(next(each.type for each in self.schema.columns if each.name == chosen), self.zone or "", chosen)
        return chosen


@dataclass(frozen=True, slots=True)
class Regions:
    """Regions of predicates over one scan; `sources` gives the table's column behind each name of the plan."""

    rows: RowSpace
    sources: Mapping[str, str]

    def true(self, predicate: Expression) -> Region:
        """The rows for which the predicate is true."""
        return self._where(predicate, truth=True)

    def _where(self, predicate: Expression, *, truth: bool) -> Region:
        """The rows for which the predicate is true, or false; those for which it is unknown are in neither."""
        match predicate:
            case Literal(value=value):
                return EVERYWHERE if value is truth else NOWHERE
            case Call(function="and" | "or" as function, arguments=(left, right)):
                sides = self._where(left, truth=truth), self._where(right, truth=truth)
                return intersection(*sides) if (function == "and") == truth else union(*sides, self.rows.everything)
            case Call(function="not", arguments=(operand,)):
                return self._where(operand, truth=not truth)
        return self._atom(predicate, negate=not truth)

    def column(self, expression: Expression) -> str | None:
        """The table's column that an expression stands for: a column, or one under casts that keep its values and their order."""
        while isinstance(expression, Cast) and keeps_values(expression):
            expression = expression.operand
        return self.sources.get(expression.name) if isinstance(expression, Column) else None

    def domain(self, column: str) -> OrderedDomain:
        """The domain of one of the table's columns."""
        if column not in self.rows.domains:
            raise Unsupported(f"column {column!r} is of a type that ranges are not computed for")
        return self.rows.domains[column]

    def _atom(self, predicate: Expression, negate: bool) -> Region:
        match predicate:
            case Column():
                column, domain = self._known(predicate)
                return box({column: domain.equal(not negate)})
            case Call(function="isnull" | "isnotnull" as function, arguments=(operand,)):
                column, domain = self._known(operand)
                return box({column: ONLY_NULL if (function == "isnull") != negate else domain.values})
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
            domain = self.domain(column)
            if right.type in FRACTIONS and domain.is_wide:
                raise Unsupported(
                    f"column {column!r} ({domain.type}) beside a double is rounded by Spark; write the number without exponent"
                )
            return box({column: _COMPARE[function](domain, value)})
        form, other = (linear(side, self._exact_unit, self._constant) for side in (left, right))
        if form is None or other is None:
            raise refusal(predicate)
        return self._half_spaces(function, form.minus(other))

    def _in(self, operand: Expression, options: list[Expression], negate: bool) -> Region:
        column, domain = self._known(operand)
        found = OrderedSet(())
        for option in options:
            value = self._constant(option)
            if value is not None:
                found = found | domain.equal(value)
            elif not isinstance(option, Literal):
                raise refusal(option)
            elif negate:
                return NOWHERE
        return box({column: domain.values - found if negate else found})

    def _like(self, predicate: Expression, operand: Expression, pattern: str, negate: bool) -> Region:
        """A pattern that is a text, or a text and a final `%`."""
        prefix = pattern.removesuffix("%")
        if set(prefix) & set("%_\\"):
            raise refusal(predicate)
        column, domain = self._known(operand)
        if pattern == prefix:
            found = domain.equal(pattern)
        elif not prefix:
            found = domain.values
        elif ord(prefix[-1]) < 0xD7FF:
            found = domain.at_least(prefix) & domain.below(prefix[:-1] + chr(ord(prefix[-1]) + 1))
        else:
            raise refusal(predicate)
        return box({column: domain.values - found if negate else found})

    def _null_safe(self, left: Expression, right: Expression, negate: bool) -> Region:
        column, domain = self._known(left)
        value = self._constant(right)
        if value is None and not isinstance(right, Literal):
            raise refusal(right)
        found = ONLY_NULL if value is None else domain.equal(value)
        return box({column: domain.everything - found if negate else found})

    def _half_spaces(self, function: str, form: Linear) -> Region:
        """`form <function> 0` as half-spaces; equality is two of them, and inequality either of their complements."""
        if not form.terms:
            return EVERYWHERE if form.compares(function) else NOWHERE
        if len(form.terms) == 1:
            ((column, weight),) = form.terms
            domain = self.domain(column)
            zero = -form.constant / weight * (domain.unit or 1)
            return box({column: _COMPARE[_FLIPPED[function] if weight < 0 else function](domain, zero)})
        sides = {column: self.domain(column).values for column, _ in form.terms}
        below, above = form.at_most_zero, form.negated.at_most_zero
        if function == "<>":
            return (*box(sides, (below.negated,)), *box(sides, (above.negated,)))
        planes = {"<=": (below,), ">=": (above,), "<": (above.negated,), ">": (below.negated,), "=": (below, above)}
        return box(sides, planes[function])

    def _exact_unit(self, expression: Expression) -> tuple[str, OrderedDomain] | None:
        column = self.column(expression)
        return None if column is None else (column, self.domain(column))

    def _known(self, expression: Expression) -> tuple[str, OrderedDomain]:
        column = self.column(expression)
        if column is None or column not in self.rows.domains:
            raise refusal(expression)
        return column, self.rows.domains[column]

    def _constant(self, expression: Expression) -> Any:
        """The value of a constant; None for anything else, and for null."""
        match expression:
            case Literal(value=value):
                return typed(value, FLOAT) if expression.type == FLOAT else value
            case Cast(type=type_, operand=Literal()) if type_ == TIMESTAMP and self.rows.zone is None:
                return None
            case Cast(type=type_, operand=Literal(value=str() as text)) if type_ == TIMESTAMP:
                return timestamp(text, ZoneInfo(self.rows.zone or "")).value
            case Cast(type=type_, operand=Literal(value=dt.date() as day)) if type_ in DATETIMES:
                return day
            case Cast(type=type_, operand=Literal(value=str() as text)) if type_ in DATETIMES:
                return text
            case Cast(type=type_, operand=Literal()) if is_numeric(type_) and is_numeric(expression.operand.type):
                value = range_of(expression, NO_COLUMNS).low
                return float(value) if value is not None and type_ in FRACTIONS else value
        return None


def refusal(expression: Expression) -> Unsupported:
    return Unsupported(
        f"{show(expression)} cannot be decided from ranges of columns; comparisons of columns with constants, IN, BETWEEN, "
        "IS NULL, prefix LIKE, linear comparisons of columns, AND, OR and NOT can"
    )
