"""Ranges over inner joins of tables with missing rows.

An inner join grows with its tables, so the certain answer is the lower end of a count. The join of R_i = C_i + M_i (certain and
missing rows) is the certain join plus, for every choice of tables that give missing rows, a join in which they do: the upper end
adds a bound for each, the tighter of product and fractional edge cover (see `edge_cover`), or bounds the whole join at once,
whichever is less. A sum is bounded by its parts above and below zero. Conditions that the bounds cannot use are left out, which
only widens them. A key given at registration is taken to hold for certain and missing rows together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product as choices
from typing import Any

import pyarrow as pa

from nearly.algebra.ordered_sets import OrderedSet
from nearly.answer import NO_ROWS, Answer
from nearly.engine.engine import Engine
from nearly.errors import Unsupported
from nearly.missing.certain import Bounds, bounds_at, number
from nearly.missing.joins.edge_cover import SAFETY, edge_cover, product
from nearly.missing.joins.join_tables import JoinTable, join_tables
from nearly.missing.programmes.aggregate_range import Certain, Ranger
from nearly.missing.programmes.cells import TimeLimit
from nearly.missing.programmes.effects import Question
from nearly.missing.programmes.measures import MissingMeasure
from nearly.missing.programmes.problem import Problem
from nearly.missing.range_query import RangeQuery, belongs_to
from nearly.missing.values import end_value, error_of, rounded
from nearly.plan.expressions import AggregateCall, Expression
from nearly.plan.types import LONG, DataType

MOST_CHOICES = 1 << 10
UNKNOWN = Bounds(None, None)
"""Certain bounds of a join that is still being read are left out: nulls would not tell what is empty from what is not known."""


@dataclass(frozen=True)
class JoinRange:
    """The range of a query over an inner join."""

    query: RangeQuery
    types: tuple[DataType, ...]
    problems: Mapping[str, Problem]
    engine: Engine
    deadline: TimeLimit

    def answers(self, text: str, ask: Callable[[str], Iterator[Answer]]) -> Iterator[Answer]:
        """A range for each answer over the certain rows."""
        if self.query.keys:
            raise Unsupported("a range over a join with GROUP BY; ask for one group at a time, with WHERE")
        calls = [item.call for item in self.query.items]
        for certain in ask(text):
            bounds = [bounds_at(certain, place, 0, hard=False) for place in range(len(calls))]
            soft = [self._ends(call, known) for call, known in zip(calls, bounds, strict=True) if call is not None]
            yield self._answer(certain, soft, soft if certain.exact else [UNKNOWN] * len(soft))

    def _answer(self, certain: Answer, soft: list[Bounds], hard: list[Bounds]) -> Answer:
        schema = certain.table.schema
        low, high = (_one_row(schema, [getattr(bounds, side) for bounds in soft]) for side in ("low", "high"))
        hard_low, hard_high = (_one_row(schema, [getattr(bounds, side) for bounds in hard]) for side in ("low", "high"))
        error = error_of(certain.table, low, high, self.query.aggregates)
        stats = {**certain.stats, "tight": error == 0.0, **self._sizes}
        exact, progress, confidence = certain.exact and error == 0.0, certain.progress, certain.confidence
        return Answer(
            certain.table, low, high, hard_low, hard_high, progress, exact, confidence, error, "missing", stats,
            complete=True, unseen=NO_ROWS,
        )  # fmt: skip

    def _ends(self, call: AggregateCall, certain: Bounds) -> Bounds:
        place = self.query.items.index(next(item for item in self.query.items if item.call is call))
        type_ = self.types[place]
        if call.where is not None:
            raise Unsupported("a range over a join of an aggregate with FILTER; put the condition into WHERE")
        argument = call.arguments[0] if call.arguments else None
        match call.function:
            case "count":
                return self._total(certain, self._added("rows", None), self._whole("rows", None), (0.0, 0.0), type_)
            case "sum":
                below = self._added("below", argument), self._whole("below", argument)
                return self._total(certain, self._added("above", argument), self._whole("above", argument), below, type_)
        return self._extremes(call, argument, certain, type_)

    def _total(self, certain: Bounds, added: float, whole: float, below: tuple[float, float], type_: DataType) -> Bounds:
        """The certain total plus what joins with missing rows add above and below zero; the whole join's parts bound it too."""
        low = max(_minus(certain.low, below[0]), -below[1] if below[0] else -math.inf)
        high = min(_plus(certain.high, added), whole)
        return Bounds(_value(low, type_, -1), _value(high, type_, 1))

    def _extremes(self, call: AggregateCall, argument: Expression | None, certain: Bounds, type_: DataType) -> Bounds:
        """Every value of a join is one of the table it comes from; what the certain join has, every instance has."""
        if argument is None:
            raise Unsupported(f"a range of {call.function}() without a column")
        table = self._owner(argument)
        inner = [certain.low, certain.high]
        ends = [self._reach(table, argument, side, type_) for side in ("low", "high")]
        if call.function == "max" and inner[0] is not None:
            ends[0] = inner[0]
        if call.function == "min" and inner[1] is not None:
            ends[1] = inner[1]
        return Bounds(*ends)

    def _reach(self, table: JoinTable, argument: Expression, side: str, type_: DataType) -> Any:
        """The least or greatest value in a table, certain and missing rows together."""
        function = "min" if side == "low" else "max"
        certain = table.certain_ends(argument)[0 if side == "low" else 1]
        if table.problem is None:
            return certain
        question = Question(table.region, MissingMeasure(table.regions, argument))
        found = Ranger(table.problem, self.deadline)(function, question, Certain(Bounds(certain, certain)))
        return end_value(found, side, type_)

    def _added(self, quantity: str, measure: Expression | None) -> float:
        """A bound on what the joins with missing rows of some table add."""
        with_missing = [place for place, table in enumerate(self.tables) if table.problem is not None]
        if 1 << len(with_missing) > MOST_CHOICES:
            return math.inf
        total = 0.0
        for chosen in choices((False, True), repeat=len(with_missing)):
            missing = {place for place, wanted in zip(with_missing, chosen, strict=True) if wanted}
            if missing:
                total += self._bound([
                    self._missing(place, quantity, measure, missing) if place in missing else self._certain(place, quantity,
                    measure) for place in range(len(self.tables))
                ], measure)  # fmt: skip
        return total

    def _whole(self, quantity: str, measure: Expression | None) -> float:
        """A bound on the join of all rows, certain and missing."""
        sizes = [
            self._certain(place, quantity, measure) + self._missing(place, quantity, measure, {place})
            for place in range(len(self.tables))
        ]
        return self._bound(sizes, measure)

    def _bound(self, sizes: list[float], measure: Expression | None) -> float:
        fixed = None if measure is None else self.tables.index(self._owner(measure))
        cover = edge_cover([table.relation for table in self.tables], sizes, fixed)
        return min(product(sizes), cover.bound)

    def _certain(self, place: int, quantity: str, measure: Expression | None) -> float:
        wanted, of = self._quantity(place, quantity, measure)
        key = place, wanted, of
        if key not in self._known:
            self._known[key] = self.tables[place].certain(wanted, of)
        return self._known[key]

    def _missing(self, place: int, quantity: str, measure: Expression | None, together: set[int]) -> float:
        """The most of a quantity among a table's missing rows that can join with missing rows of the other tables."""
        within = self._common_values(together)
        if any(not values.pieces for values in within.values()):
            return 0.0
        wanted, of = self._quantity(place, quantity, measure)
        return self.tables[place].missing(wanted, of, within)

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

    def _owner(self, measure: Expression) -> JoinTable:
        for table in self.tables:
            if belongs_to(measure, table.scan):
                return table
        raise Unsupported("a range over a join of an expression over several tables; take the columns of one")

    @cached_property
    def tables(self) -> tuple[JoinTable, ...]:
        return join_tables(self.query, self.problems, self.engine, self.deadline)

    @cached_property
    def _values(self) -> list[dict[str, OrderedSet]]:
        return [table.attribute_values() for table in self.tables]

    @cached_property
    def _known(self) -> dict[Any, float]:
        return {}

    @property
    def _sizes(self) -> dict[str, Any]:
        """The rows of the whole join by either bound, for comparison."""
        sizes = [self._certain(p, "rows", None) + self._missing(p, "rows", None, {p}) for p in range(len(self.tables))]
        cover = edge_cover([table.relation for table in self.tables], sizes)
        return {"naive_rows": product(sizes), "cover_rows": cover.bound, "cover": cover.weights}


def _one_row(schema: pa.Schema, values: list[Any]) -> pa.Table:
    return pa.Table.from_arrays([pa.array([value], field.type) for value, field in zip(values, schema, strict=True)], schema=schema)


def _plus(certain: Any, added: float) -> float:
    return added if certain is None else float(number(certain)) + added


def _minus(certain: Any, taken: float) -> float:
    return -taken if certain is None else float(number(certain)) - taken


def _value(bound: float, type_: DataType, sign: int) -> Any:
    """A bound as a value of the type, rounded outwards for what logarithms and doubles may have lost."""
    if math.isinf(bound):
        return None
    outward = Fraction(bound + sign * abs(bound) * SAFETY)
    if type_ == LONG:
        outward = Fraction(math.floor(outward) if sign > 0 else math.ceil(outward))
    return rounded(outward, type_)
