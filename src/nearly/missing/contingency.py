"""What a session knows about missing rows, and the ranges that follow from it. It is kept as long as the session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from nearly.answer import Answer
from nearly.engine.engine import Engine
from nearly.engine.history import frame_of
from nearly.errors import ConstraintError, SchemaError
from nearly.missing import DEFAULT_SECONDS
from nearly.missing.constraint_set import ConstraintSet, Violation, check
from nearly.missing.joins.join_bounds import JoinBounds
from nearly.missing.joins.join_range import JoinRange
from nearly.missing.programmes.cells import TimeLimit
from nearly.missing.programmes.conflicts import refuse_conflicts
from nearly.missing.programmes.problem import Problem
from nearly.missing.range_query import extended, range_query
from nearly.missing.statements.bound_set import region_of
from nearly.missing.statements.conditions import Gap, gaps
from nearly.missing.table_range import TableRange
from nearly.plan.binding.query import bind
from nearly.plan.syntax.parse import parse_query
from nearly.plan.values.regions import RowSpace

Ask = Callable[[str], Iterator[Answer]]
"""Answers of a query over the certain rows, tighter and tighter; the last one is the one to rely on."""


@dataclass(frozen=True, slots=True)
class MissingRows:
    """What is stated about the missing rows of a table, for as long as the session lives."""

    table: str
    constraints: ConstraintSet
    problem: Problem = field(repr=False)
    engine: Engine = field(repr=False)

    def gaps(self, where: str = "TRUE", most: int = 10) -> list[Gap]:
        """Regions (of the rows that satisfy `where`) that no constraint covers: no row is taken to be missing there."""
        return gaps(self.problem.bound, region_of(where, self.problem.bound.rows), most)

    def check(self, history: Any) -> list[Violation]:
        """Test the constraints on rows of the past: a registered table's name, a Spark DataFrame, an Arrow table or a path."""
        cluster = self.engine.cluster
        if isinstance(history, str) and history in self.engine.catalog:
            view = self.engine.spark.reader.view(self.engine.catalog.table(history))
            return check(cluster.spark.table(f"`{view}`"), self.problem.bound)
        return check(frame_of(history, cluster.given), self.problem.bound)


@dataclass(slots=True)
class Contingency:
    """The constraints of a session, by table."""

    engine: Engine
    _stated: dict[str, MissingRows] = field(default_factory=dict)

    def state(self, table: str, constraints: Any) -> MissingRows | None:
        """Replace what is known of a table's missing rows; None or no constraints forget it."""
        self.engine.catalog.table(table).refuse_derived("what is stated about missing rows")
        schema = self.engine.catalog.schema(table)
        given = ConstraintSet.of(constraints)
        if not given:
            self._stated.pop(schema.name.lower(), None)
            return None
        rows = RowSpace.of(schema, self.engine.cluster.time_zone)
        problem = Problem(given.bound_to(rows))
        refuse_conflicts(problem, TimeLimit(DEFAULT_SECONDS))
        self._stated[schema.name.lower()] = MissingRows(schema.name, given, problem, self.engine)
        return self._stated[schema.name.lower()]

    def ranges(self, text: str, ask: Ask, seconds: float | None = DEFAULT_SECONDS) -> Iterator[Answer]:
        """Range answers of a query: one for each answer over the certain rows. `seconds` limits the time spent on each range."""
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0):
            raise SchemaError(f"seconds={seconds!r} is no time limit")
        tree = parse_query(text)
        bound = bind(tree, self.engine.catalog.schema)
        query = range_query(bound)
        known = {scan.table.lower(): self._known(scan.table) for scan in query.scans}
        problems = {name: stated.problem for name, stated in known.items() if stated is not None}
        if not problems:
            names = ", ".join(sorted({scan.table for scan in query.scans}))
            raise ConstraintError(
                f"nothing is stated about missing rows of {names}; use db.missing(table, [nearly.Constraint(...)])"
            )
        wider, pieces = extended(tree, query.items)
        if len(query.scans) > 1:
            bounds = JoinBounds(query, problems, self.engine, TimeLimit(seconds))
            yield from JoinRange(query, bound.types, bounds).answers(ask(wider), pieces)
            return
        (problem,) = problems.values()
        for certain in ask(wider):
            yield TableRange(problem, query, bound.types, TimeLimit(seconds)).answer(certain, pieces)

    def _known(self, table: str) -> MissingRows | None:
        stated = self._stated.get(table.lower())
        if stated is not None and stated.problem.bound.rows.schema.columns != self.engine.catalog.schema(table).columns:
            raise ConstraintError(
                f"table {table!r} has other columns than when its missing rows were stated; call db.missing again"
            )
        return stated
