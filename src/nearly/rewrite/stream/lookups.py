"""What rows of units find at the driver: at most one row each, by equal keys, with values that may still move.

A lookup keeps its rows: what picks rows by values that move (HAVING) is taken out of it and becomes a test like any other. Law: the
rows that the driver found are those of the lookup that pass its tests.
"""

from __future__ import annotations

from dataclasses import dataclass

from nearly.plan.expressions import TRUE, AggregateCall, Cast, Column, Expression, columns_of, conjunction, conjuncts
from nearly.plan.functions import call
from nearly.plan.functions.casting import coerce
from nearly.plan.nodes import Filter, GroupBy, Input, Join, Output, Plan, Project, Scan, SetOperation, Sort, Values, passed
from nearly.plan.properties import keys, origins
from nearly.plan.schema import FindTable
from nearly.plan.types import DOUBLE

Pairs = tuple[tuple[Column, Column], ...]
"""Columns of rows and those of what they find that must be equal."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Values of `found`, by equal keys; rows are compared with the expressions in `compared`.

    `name` is the input with their variation ranges: the keys `key@0_0`, ..., then `low@0_0`, `high@0_0`, ...; the first number is
    the place of the lookup among those of a decision. No column of a query has such a name.
    """

    name: str
    place: int
    found: Plan
    keys: Pairs
    compared: tuple[Expression, ...] = ()

    @property
    def ranges(self) -> Input:
        ends = (end for value in range(len(self.compared)) for end in self.ends(value))
        return Input(self.name, (*(self.key(place) for place in range(len(self.keys))), *ends))

    @property
    def values(self) -> Plan:
        """The keys and the compared values, as doubles: what ranges are made for."""
        names = [Output(f"key_{place}", right) for place, (_, right) in enumerate(self.keys)]
        values = [Output(f"value_{place}", coerce(each, DOUBLE)) for place, each in enumerate(self.compared)]
        return Project(self.found, (*names, *values))

    @property
    def extremes(self) -> dict[int, str]:
        """Which of the compared values, by place, are a least or greatest value (`min`, `max`) of rows of units."""
        below = origins(self.found)
        calls = {
            each.name: each.expression.function
            for node in self.found.walk()
            if isinstance(node, GroupBy) and isinstance(node.child, Input)
            for each in node.aggregates
            if isinstance(each.expression, AggregateCall)
        }
        functions = ((place, calls.get(below.get(_column(each), ""))) for place, each in enumerate(self.compared))
        return {place: function for place, function in functions if function in ("min", "max")}

    def key(self, place: int) -> Column:
        return Column(self.keys[place][1].type, f"key@{self.place}_{place}")

    def ends(self, value: int) -> tuple[Column, Column]:
        return Column(DOUBLE, f"low@{self.place}_{value}"), Column(DOUBLE, f"high@{self.place}_{value}")

    @property
    def present(self) -> Expression:
        """Whether a row finds something whose ranges are known."""
        return call("isnotnull", (self.key(0) if self.keys else self.ends(0)[0],))

    def merged(self, rows: Plan) -> Plan:
        """The rows with the ranges they fall under; null where the key has none yet."""
        pairs = [call("=", (own, self.key(place))) for place, (own, _) in enumerate(self.keys)]
        return Join(rows, self.ranges, "left", conjunction(pairs) or TRUE)


def _column(expression: Expression) -> str:
    while isinstance(expression, Cast):
        expression = expression.operand
    return expression.name if isinstance(expression, Column) else ""


def finds_one(found: Plan, by: frozenset[str], find_table: FindTable) -> bool:
    """Whether at most one row of a lookup has the same values in some columns, and none that was found goes again."""
    unique = keys(found, find_table)
    return frozenset() in unique or (any(key <= by for key in unique) and _keeps_rows(found))


def without_tests(found: Plan) -> tuple[Plan, tuple[Expression, ...]]:
    """What the driver found before anything picks rows by values that evolve, and the tests that do."""
    return _without_tests(found, evolving(found))


def _without_tests(plan: Plan, moving: frozenset[str]) -> tuple[Plan, tuple[Expression, ...]]:
    match plan:
        case Filter():
            below, tests = _without_tests(plan.child, moving)
            mine = tuple(part for part in conjuncts(plan.predicate) if columns_of(part) & moving)
            rest = conjunction([part for part in conjuncts(plan.predicate) if part not in mine])
            return below if rest is None else Filter(below, rest), (*tests, *mine)
        case Project() | GroupBy(aggregates=(), sets=None):
            below, tests = _without_tests(plan.child, moving)
            outputs = plan.outputs if isinstance(plan, Project) else plan.keys
            read = {name for test in tests for name in columns_of(test)} - {output.name for output in outputs}
            if not tests:
                return plan, ()
            return Project(below, (*outputs, *passed(column for column in below.columns if column.name in read))), tests
    return plan, ()


def evolving(plan: Plan) -> frozenset[str]:
    """Columns whose values may still move: results of aggregates, and what is made of them."""
    names: set[str] = set()
    for node in reversed(list(plan.walk())):
        match node:
            case GroupBy():
                names |= {each.name for each in node.aggregates} | _made_of(node.keys, names)
            case Project():
                names |= _made_of(node.outputs, names)
            case SetOperation():
                names |= {column.name for column in node.given}
    return frozenset(names)


def _made_of(outputs: tuple[Output, ...], names: set[str]) -> set[str]:
    return {output.name for output in outputs if columns_of(output.expression) & names}


def _keeps_rows(plan: Plan) -> bool:
    """Whether rows only ever come: nothing picks them, or groups them, by values that evolve."""
    moving = evolving(plan)
    for node in plan.walk():
        match node:
            case Join(kind="inner" | "left" | "cross", condition=condition):
                picks = condition is not None and bool(columns_of(condition) & moving)
            case Filter():
                picks = bool(columns_of(node.predicate) & moving)
            case GroupBy():
                picks = any(columns_of(key.expression) & moving for key in node.keys)
            case Project() | Sort() | Input() | Scan() | Values():
                picks = False
            case _:
                picks = True
        if picks:
            return False
    return True
