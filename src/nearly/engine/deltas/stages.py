"""Runs the stages of a delta one after the other in the driver's engine, where their rows stay until the last one is done.

A stage all of whose branches end in empty ones is not run. What is known of a stage's rows makes the next ones cheaper: keys
without nulls are compared by `=`, which the engine turns into filters of the files it reads. The SQL of a stage names tables, never
their files, so that it is rendered once for all versions.
"""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache

from sqlglot import exp

from nearly.engine.deltas.reading import TableReader, shown_name
from nearly.engine.deltas.sites import DeltaSites
from nearly.engine.deltas.slices import Slices
from nearly.engine.deltas.workspace import Workspace
from nearly.plan.dialects import native
from nearly.plan.nodes import Input, Plan, Scan
from nearly.plan.quoting import native_name
from nearly.plan.render import NATIVE, render
from nearly.rewrite.delta.empty import Known, without_empty
from nearly.rewrite.delta.sharpen import sharpen

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StageRun:
    """What became of a stage: its rows, and the seconds it took; one that was not run has none."""

    name: str
    rows: int
    seconds: float


@dataclass(slots=True)
class StageRunner:
    """The rows of stages as temporary tables."""

    tables: TableReader
    space: Workspace
    sites: DeltaSites | None = None
    runs: list[StageRun] = field(default_factory=list)
    _empty: set[str] = field(default_factory=set)
    _filled: dict[str, int] = field(default_factory=dict)
    _plans: dict[str, Plan] = field(default_factory=dict)
    _present: dict[tuple[str, str], bool] = field(default_factory=dict)
    _shown: set[str] = field(default_factory=set)
    _held: ExitStack = field(default_factory=ExitStack)
    _slices: Slices = field(init=False)

    def __post_init__(self) -> None:
        self._slices = Slices(self.tables, self.space, self._filled, self._plans)

    def read_changes(self) -> None:
        """Have what came and went in each table, with the columns that the plan reads."""
        for name, moved in self.tables.moved.items():
            began = time.perf_counter()
            rows = self.tables.change(moved, name)
            kept = self.space.keep if isinstance(rows, str) else self.space.keep_given
            self._note(moved.names.source, kept(moved.names.source, rows), began)

    def run(self, name: str, plan: Plan) -> None:
        """Have the rows of a stage."""
        began = time.perf_counter()
        left = without_empty(plan, Known(self._empty, self._filled))
        if left is None:
            self._note(name, 0, began)
            return
        ready = self._plans[name] = sharpen(left, self._holds_no_null)
        if self.sites is not None and self.sites.takes(ready):
            self._make_empty(ready)
            given = self.sites.run(ready, self.space.rows)
            self._note(name, self.space.keep_given(name, given), began)
            return
        ready = self._slices.applied(ready)
        sql = self.sql(ready)
        logger.debug("%s: %s", name, sql)
        self._note(name, self.space.keep(name, sql), began)

    def sql(self, plan: Plan) -> str:
        """The query of a plan, whose tables can be read from now on."""
        self._make_empty(plan)
        for scan in plan.walk():
            if isinstance(scan, Scan):
                self._show(scan.table)
        return _sql(plan)

    def close(self) -> None:
        """Let go of tables that were held in memory."""
        self._held.close()

    def _show(self, name: str) -> None:
        """Let a table be read by its name; a small one from memory."""
        if name not in self._shown:
            body, statics = self.tables.query(name)
            self._held.enter_context(self.tables.kernel.local.loaded(statics))
            self.space.execute(f"CREATE OR REPLACE TEMP VIEW {native_name(shown_name(name))} AS {body}")
            self._shown.add(name)

    def _make_empty(self, plan: Plan) -> None:
        """Tables without rows, for inputs that have none and are read nevertheless, as the right side of a left join may be."""
        wanted: dict[str, dict[str, str]] = {}
        for node in plan.walk():
            if isinstance(node, Input) and node.source in self._empty:
                types = {column.name: native.type_sql(column.type).sql(dialect="duckdb") for column in node.given}
                wanted.setdefault(node.source, {}).update(types)
        for name, columns in wanted.items():
            described = ", ".join(f"{native_name(column)} {kind}" for column, kind in columns.items())
            self.space.execute(f"CREATE OR REPLACE TEMP TABLE {native_name(name)} ({described})")

    def _holds_no_null(self, name: str, column: str) -> bool:
        """Whether a column of a stage holds no null; of what is no stage nothing is known."""
        known = (name, column)
        if known not in self._present:
            nulls = f"SELECT 1 FROM {native_name(name)} WHERE {native_name(column)} IS NULL LIMIT 1"
            self._present[known] = name in self._filled and not self.space.execute(nulls)
        return self._present[known]

    def _note(self, name: str, rows: int, began: float) -> None:
        self._present = {known: found for known, found in self._present.items() if known[0] != name}
        if rows:
            self._filled[name] = rows
        else:
            self._empty.add(name)
        self.runs.append(StageRun(name, rows, time.perf_counter() - began))


@lru_cache(maxsize=1024)
def _sql(plan: Plan) -> str:
    return render(plan, NATIVE, _named)


def _named(leaf: Scan | Input) -> exp.Expr:
    return exp.Table(this=exp.to_identifier(shown_name(leaf.table) if isinstance(leaf, Scan) else leaf.source, quoted=True))
