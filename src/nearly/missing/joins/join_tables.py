"""The tables of a join: what they share, how many certain rows each gives, and how many missing ones it may."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

from nearly.algebra.boxes import EVERYWHERE, NOWHERE, Region, box, hull, intersection
from nearly.algebra.ordered_sets import OrderedSet
from nearly.engine.engine import Engine
from nearly.errors import Unsupported
from nearly.missing.joins.edge_cover import JoinRelation
from nearly.missing.programmes.aggregate_range import Ranger
from nearly.missing.programmes.cells import TimeLimit
from nearly.missing.programmes.effects import AMOUNTS, Effect, MissingMeasure, RangeQuestion
from nearly.missing.programmes.ends import total_end
from nearly.missing.programmes.problem import AffectedPart, Problem
from nearly.missing.range_answer import number
from nearly.missing.range_query import RangeQuery, belongs_to
from nearly.missing.statements.bound_set import sources_of
from nearly.plan import functions
from nearly.plan.expressions import Call, Column, Expression, Literal, conjunction
from nearly.plan.nodes import Filter, GroupBy, Limit, Output, Plan, Scan
from nearly.plan.types import INT
from nearly.plan.values.regions import Regions

MOST_CELLS = 300
"""Tables with more cells are bounded as a whole."""

Values = Mapping[str, OrderedSet]
"""The values that shared attributes can have."""
Partners = Callable[[Values], float]
"""How many rows of the other tables together a row with such values may meet."""


@dataclass(frozen=True)
class JoinTable:
    """One table of a join with the conditions that are about it alone; `problem` is None for a table without missing rows."""

    scan: Scan
    local: tuple[Expression, ...]
    relation: JoinRelation
    shared: Mapping[str, str]
    """The table's column for each attribute that the join shares."""
    problem: Problem | None
    engine: Engine
    deadline: TimeLimit

    def certain(self, quantity: str, measure: Expression | None) -> float:
        """The quantity over the certain rows."""
        if quantity == "rows" or measure is None:
            return float(self._run([functions.aggregate("count", [])])[0])
        sign = ">" if quantity == "above" else "<"
        condition = functions.call(sign, [measure, Literal(INT, 0)])
        return abs(float(number(self._run([functions.aggregate("sum", [measure], where=condition)])[0])))

    def certain_ends(self, measure: Expression) -> tuple[Any, Any]:
        """The least and greatest value over the certain rows."""
        low, high = self._run([functions.aggregate("min", [measure]), functions.aggregate("max", [measure])])
        return low, high

    def missing(self, quantity: str, measure: Expression | None, within: Values, partners: Partners | None = None) -> float:
        """The most that the quantity can be over the missing rows whose shared attributes lie in `within`.

        With `partners` each row counts as often as it may meet others; tables of very many cells have no limit then.
        """
        if self.problem is None:
            return 0.0
        sides = {self.shared[name]: values for name, values in within.items() if name in self.shared}
        question = RangeQuestion(intersection(self.region, box(sides)), MissingMeasure(self.regions, measure))
        affected = Ranger(self.problem, self.deadline).affected(question, AMOUNTS)
        if quantity == "rows":
            affected = [AffectedPart(one.part, [replace(each, low=1, high=1) for each in one.effects]) for one in affected]
        if partners is not None:
            if self.deadline.is_over or sum(len(one.effects) for one in affected) > MOST_CELLS:
                return math.inf
            affected = [self._weighed(one, quantity, question.region, partners) for one in affected]
        end = total_end(affected, "high", _below if quantity == "below" else _above)
        return math.inf if end.value is None else float(end.value)

    def _weighed(self, one: AffectedPart, quantity: str, region: Region, partners: Partners) -> AffectedPart:
        """The effects of a part's rows, as often as rows of each cell may meet others."""
        effects = []
        for cell, effect in zip(one.part.cells, one.effects, strict=True):
            times = partners(self._shared_values(intersection(cell.region, region))) if effect.counts else 0.0
            value = (_below if quantity == "below" else _above)(effect)
            most = 0 if value == 0 or times == 0 else None if value is None or math.isinf(times) else value * math.ceil(times)
            effects.append(replace(effect, low=None if most is None else -most, high=most))
        return AffectedPart(one.part, effects, one.unit)

    def _shared_values(self, region: Region) -> dict[str, OrderedSet]:
        """The values of shared attributes in a region; null meets nothing."""
        space = {} if self.problem is None else self.problem.bound.rows.everything
        return {name: hull(region, column, space).without_null for name, column in self.shared.items()}

    def attribute_values(self) -> dict[str, OrderedSet]:
        """The values of shared attributes among the missing rows."""
        if self.problem is None:
            return {}
        allowed: Region = NOWHERE
        for constraint in self.problem.bound.constraints:
            if constraint.high != 0:
                allowed = (*allowed, *intersection(constraint.allowed, self.region))
        return self._shared_values(allowed)

    @cached_property
    def regions(self) -> Regions:
        if self.problem is None:
            raise Unsupported(f"table {self.scan.table!r} has no constraints")
        return Regions(self.problem.bound.rows, sources_of(self.scan))

    @cached_property
    def region(self) -> Region:
        """Where missing rows satisfy the table's own conditions; those that cannot be decided are left out."""

        def decided(predicate: Expression) -> Region:
            try:
                return self.regions.true(predicate)
            except Unsupported:
                return EVERYWHERE

        return reduce(intersection, map(decided, self.local), EVERYWHERE)

    def keys(self, columns: Sequence[Column], most: int) -> list[tuple[Any, ...]] | None:
        """The different values of some columns in the certain rows; None when they are more than so many."""
        names = tuple(Output(f"key_{place}", column) for place, column in enumerate(columns))
        table = self.engine.rows(Limit(GroupBy(self._rows, names, ()), most + 1))
        found = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        return found if len(found) <= most else None

    @property
    def _rows(self) -> Plan:
        condition = conjunction(self.local)
        return self.scan if condition is None else Filter(self.scan, condition)

    def _run(self, calls: Sequence[Any]) -> list[Any]:
        outputs = tuple(Output(f"value_{place}", call) for place, call in enumerate(calls))
        table = self.engine.rows(GroupBy(self._rows, (), outputs))
        return [column[0].as_py() for column in table.columns]


def _above(effect: Effect) -> int | None:
    return None if effect.high is None else max(effect.high, 0)


def _below(effect: Effect) -> int | None:
    return None if effect.low is None else max(-effect.low, 0)


def join_tables(query: RangeQuery, problems: Mapping[str, Problem], engine: Engine, deadline: TimeLimit) -> tuple[JoinTable, ...]:
    """The tables of a join query and the attributes that its equalities make them share."""
    attribute = attributes(query)
    tables = []
    for place, scan in enumerate(query.scans):
        local = tuple(each for each in query.predicates if belongs_to(each, scan))
        shared = {attribute[field.name]: field.source for field in scan.fields if field.name in attribute}
        key = engine.catalog.schema(scan.table).key
        names = {source: name for name, source in shared.items()}
        known = frozenset(names[each] for each in key) if key and set(key) <= set(names) else None
        relation = JoinRelation(f"{scan.table} {place + 1}", frozenset(shared), known)
        tables.append(JoinTable(scan, local, relation, shared, problems.get(scan.table.lower()), engine, deadline))
    return tuple(tables)


def attributes(query: RangeQuery) -> dict[str, str]:
    """The shared attribute of every column that an equality joins with a column of another table."""
    owner = {name: place for place, scan in enumerate(query.scans) for name in scan.names}
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            name = parent[name]
        return name

    for predicate in query.predicates:
        match predicate:
            case Call(function="=", arguments=(Column() as left, Column() as right)):
                if owner.get(left.name) != owner.get(right.name):
                    parent[root(left.name)] = root(right.name)
    return {name: root(name) for name in parent}
