"""Bounds of aggregates over an inner join of tables with missing rows.

An inner join grows with its tables, so the certain answer is the lower end of a count. The join of R_i = C_i + M_i (certain and
missing rows) is the certain join plus, for every choice of tables that give missing rows, a join in which they do. Each is bounded
by the least of the product of sizes, the fractional edge cover (see `edge_cover`), and a sum over the cells of one of the tables: a
row of a cell meets only rows that share its values, so that pairs of constraints that exclude each other count for nothing. The
upper end adds these up, or bounds the whole join at once, whichever is less. A sum is bounded by its parts above and below zero.
Conditions that the bounds cannot use are left out, which only widens them. A key given at registration is taken to hold for certain
and missing rows together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product as choices
from typing import Any

from nearly.algebra.ordered_sets import OrderedSet
from nearly.engine.engine import Engine
from nearly.errors import Unsupported
from nearly.missing.joins.edge_cover import SAFETY, edge_cover, product
from nearly.missing.joins.join_tables import JoinTable, Values, join_tables
from nearly.missing.programmes.aggregate_range import Ranger
from nearly.missing.programmes.cells import TimeLimit
from nearly.missing.programmes.effects import MissingMeasure, RangeQuestion
from nearly.missing.programmes.problem import Problem
from nearly.missing.range_answer import KnownAggregate, number
from nearly.missing.range_query import RangeQuery, belongs_to
from nearly.plan.expressions import AggregateCall, Expression
from nearly.plan.types import LONG, DataType
from nearly.plan.values.ranges import Extent
from nearly.plan.values.rounding import DOWN, UP, typed

MOST_CHOICES = 1 << 10


@dataclass(frozen=True)
class JoinBounds:
    """Bounds over the rows of a join that satisfy the query's predicates."""

    query: RangeQuery
    problems: Mapping[str, Problem]
    engine: Engine
    deadline: TimeLimit
    _asked: dict[Any, Any] = field(default_factory=dict)
    """What was asked of the certain rows; it is kept for other conditions on the same tables."""

    def where(self, conditions: Iterable[Expression]) -> JoinBounds:
        """The bounds over fewer rows."""
        return replace(self, query=replace(self.query, predicates=(*self.query.predicates, *conditions)))

    def ends(self, call: AggregateCall, certain: KnownAggregate, type_: DataType) -> Extent:
        """Both ends of an aggregate without FILTER over certain and missing rows."""
        argument = call.arguments[0] if call.arguments else None
        match call.function:
            case "count":
                high = min(_number(certain.value.high, math.inf) + self.added("rows", None), self._whole("rows", None))
                return Extent(_value(_number(certain.value.low, 0.0), type_, -1), _value(high, type_, 1))
            case "sum":
                above, below = (self.added(part, argument) for part in ("above", "below"))
                high = min(_number(certain.value.high, math.inf) + above, self._whole("above", argument))
                low = max(_number(certain.value.low, -math.inf) - below, -self._whole("below", argument))
                return Extent(_value(low, type_, -1), _value(high, type_, 1))
        if argument is None:
            raise Unsupported(f"a range of {call.function}() without a column")
        hull = Extent(self._reach(argument, "low", type_), self._reach(argument, "high", type_))
        if call.function == "avg":
            return self._average(argument, hull, certain, type_)
        if call.function == "max" and certain.value.low is not None:
            return Extent(certain.value.low, hull.high)
        if call.function == "min" and certain.value.high is not None:
            return Extent(hull.low, certain.value.high)
        return hull

    def _average(self, argument: Expression, hull: Extent, certain: KnownAggregate, type_: DataType) -> Extent:
        """No value of the join lies outside the hull, and only so many rows are added to the certain ones."""
        rows = self.added("rows", None)
        if rows == 0:
            return certain.value
        if certain.sum is None or certain.count is None or not certain.count.low or certain.count.high is None:
            return hull
        rows = min(rows, self._whole("rows", None) - certain.count.low)
        ends = []
        for end, sign, total in ((hull.low, -1, certain.sum.low), (hull.high, 1, certain.sum.high)):
            part = self.added("above" if sign > 0 else "below", argument)
            known = end is not None and total is not None
            counts = {int(certain.count.low), int(certain.count.high)} if known else ()
            drawn = [_drawn(sign * number(total), count, sign * number(end), rows, part) for count in counts]
            ends.append(typed(sign * min(sign * number(end), max(drawn)), type_, UP if sign > 0 else DOWN) if known else end)
        return Extent(ends[0], ends[1])

    def _reach(self, argument: Expression, side: str, type_: DataType) -> Any:
        """The least or greatest value in a table, certain and missing rows together: every value of a join is one of its table."""
        table = self.tables[self._owner(argument)]
        key = table.scan, table.local, argument
        if key not in self._asked:
            self._asked[key] = table.certain_ends(argument)
        certain = self._asked[key][side == "high"]
        if table.problem is None:
            return certain
        question = RangeQuestion(table.region, MissingMeasure(table.regions, argument))
        ranger = Ranger(table.problem, self.deadline)
        return ranger("min" if side == "low" else "max", question, KnownAggregate(Extent(certain, certain))).value(side, type_)

    def added(self, quantity: str, measure: Expression | None) -> float:
        """A bound on what the joins with missing rows of some table add: `rows`, or a measure `above` or `below` zero."""
        with_missing = [place for place, table in enumerate(self.tables) if table.problem is not None]
        if 1 << len(with_missing) > MOST_CHOICES:
            return math.inf
        total = 0.0
        for chosen in choices((False, True), repeat=len(with_missing)):
            missing = {place for place, wanted in zip(with_missing, chosen, strict=True) if wanted}
            if missing:
                total += self._joined(missing, quantity, measure)
        return total

    def _joined(self, missing: set[int], quantity: str, measure: Expression | None) -> float:
        """The join of the missing rows of some tables with the certain rows of the others."""
        common = self._common_values(missing)
        least = self._bound(self._sizes(missing, quantity, measure, common), measure)
        for pivot in sorted(missing) if len(missing) > 1 else ():
            if not math.isfinite(least) or least > 0:
                least = min(least, self._by_cells(pivot, missing, quantity, measure, common))
        return least

    def _by_cells(self, pivot: int, missing: set[int], quantity: str, measure: Expression | None, common: Values) -> float:
        """The most over the rows of one table, each of which meets only what shares the values of its cell."""

        def partners(values: Values) -> float:
            within = {**common, **{name: common[name] & each for name, each in values.items()}}
            return self._bound(self._sizes(missing, quantity, measure, within, pivot), measure)

        wanted, of = self._quantity(pivot, quantity, measure)
        return self.tables[pivot].missing(wanted, of, common, partners)

    def _sizes(
        self, missing: set[int], quantity: str, measure: Expression | None, within: Values, pivot: int | None = None
    ) -> list[float]:
        """How much each table gives: its missing rows within these values, its certain ones, or one row."""
        if any(not values.pieces for values in within.values()):
            return [0.0] * len(self.tables)
        sizes = []
        for place, table in enumerate(self.tables):
            wanted, of = self._quantity(place, quantity, measure)
            given = table.missing(wanted, of, within) if place in missing - {pivot} else None
            sizes.append(1.0 if place == pivot else self._certain(place, wanted, of) if given is None else given)
        return sizes

    def _whole(self, quantity: str, measure: Expression | None) -> float:
        """A bound on the join of all rows, certain and missing."""
        return self._bound(self._whole_sizes(quantity, measure), measure)

    def _whole_sizes(self, quantity: str, measure: Expression | None) -> list[float]:
        asked = [self._quantity(place, quantity, measure) for place in range(len(self.tables))]
        missing = [table.missing(*each, values) for table, each, values in zip(self.tables, asked, self._values, strict=True)]
        return [self._certain(place, *each) + missing[place] for place, each in enumerate(asked)]

    def _bound(self, sizes: list[float], measure: Expression | None) -> float:
        fixed = None if measure is None else self._owner(measure)
        return min(product(sizes), edge_cover([table.relation for table in self.tables], sizes, fixed).bound)

    def _certain(self, place: int, quantity: str, measure: Expression | None) -> float:
        key = self.tables[place].scan, self.tables[place].local, measure, quantity
        if key not in self._asked:
            self._asked[key] = self.tables[place].certain(quantity, measure)
        return float(self._asked[key])

    def _common_values(self, together: set[int]) -> dict[str, OrderedSet]:
        """For each shared attribute, the values that the missing rows of all these tables have in common."""
        within: dict[str, OrderedSet] = {}
        for place in together:
            for name, values in self._values[place].items():
                within[name] = within[name] & values if name in within else values
        return within

    def _quantity(self, place: int, quantity: str, measure: Expression | None) -> tuple[str, Expression | None]:
        """A sum is weighed in the table of its measure; the other tables count rows."""
        owns = measure is not None and belongs_to(measure, self.tables[place].scan)
        return (quantity, measure) if owns else ("rows", None)

    def _owner(self, measure: Expression) -> int:
        for place, table in enumerate(self.tables):
            if belongs_to(measure, table.scan):
                return place
        raise Unsupported("a range over a join of an expression over several tables; take the columns of one")

    @cached_property
    def tables(self) -> tuple[JoinTable, ...]:
        return join_tables(self.query, self.problems, self.engine, self.deadline)

    @cached_property
    def _values(self) -> list[dict[str, OrderedSet]]:
        return [table.attribute_values() for table in self.tables]

    @property
    def sizes(self) -> dict[str, Any]:
        """The rows of the whole join by either bound, for comparison."""
        sizes = self._whole_sizes("rows", None)
        cover = edge_cover([table.relation for table in self.tables], sizes)
        return {"naive_rows": product(sizes), "cover_rows": cover.bound, "cover": cover.weights}


def _number(value: Any, unknown: float) -> float:
    return unknown if value is None else float(number(value))


def _value(bound: float, type_: DataType, sign: int) -> Any:
    """A bound as a value of the type, rounded outwards for what logarithms and doubles may have lost; whole numbers are whole."""
    outward = bound + sign * abs(bound) * SAFETY
    return typed(outward, type_, UP if (sign > 0) != (type_ == LONG) else DOWN)


def _drawn(total: Fraction, count: int, value: Fraction, rows: float, part: float) -> Fraction:
    """The greatest average of rows of a known total and at most `rows` others of at most `value`, whose sum is at most `part`.

    With k others it is at most (total + min(k value, part)) / (count + k): the most is at k = part / value or at an end.
    """
    slack = Fraction(SAFETY) * (abs(value) + abs(total) / count)
    if value <= total / count:
        return total / count + slack
    if math.isinf(rows) and math.isinf(part):
        return value
    most = None if math.isinf(rows) else Fraction(rows * (1 + SAFETY))
    sum_ = None if math.isinf(part) else Fraction(part * (1 + SAFETY))
    full = most if sum_ is None or value <= 0 else sum_ / value if most is None else min(most, sum_ / value)
    tried = [total / count]
    for more in (full, most):
        if more is None:
            tried.append(min(value, Fraction(0)) if sum_ is not None else value)
        else:
            tried.append((total + (value * more if sum_ is None else min(value * more, sum_))) / (count + more))
    return max(tried) + slack
