"""Runs the stages of a delta one after the other in the driver's engine, where their rows stay until the last one is done.

A stage all of whose branches end in empty ones is not run. What is known of a stage's rows makes the next ones cheaper: keys
without nulls are compared by `=`, which the engine turns into filters of the files it reads. The SQL of a stage names tables, never
their files, so that it is rendered once for all versions.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa
from sqlglot import exp

from nearly.engine.deltas.reading import TableReader, shown_name
from nearly.engine.deltas.sites import DeltaSites
from nearly.engine.deltas.slices import Slices
from nearly.engine.deltas.workspace import Workspace
from nearly.plan.dialects import native
from nearly.plan.nodes import Input, Plan, Scan
from nearly.plan.quoting import native_name
from nearly.plan.render import NATIVE, rendered, text_of
from nearly.plan.types import NULL, DataType
from nearly.rewrite.delta.empty import Known, without_empty
from nearly.rewrite.delta.sharpen import sharpen

logger = logging.getLogger(__name__)

ASKED_FOR = "rows asked for"


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
    _shown: dict[str, str] = field(default_factory=dict)
    _given: dict[str, str] = field(default_factory=dict)
    """Changes that are read where they lie, by the stage that asks for them."""
    _held: ExitStack = field(default_factory=ExitStack)
    _slices: Slices = field(init=False)

    def __post_init__(self) -> None:
        self._slices = Slices(self.tables, self.space, self._filled, self._plans, self._show_changes)

    def read_changes(self, readers: Iterable[Plan]) -> None:
        """Have what came and went in each table that is asked for it, with the columns that the plan reads.

        What one reader asks for stays where it lies.
        """
        asked = Counter(node.source for plan in readers for node in plan.walk() if isinstance(node, Input))
        for name, moved in self.tables.moved.items():
            began, source = time.perf_counter(), moved.names.source
            if source not in asked:
                continue
            rows = self.tables.change(moved, name)
            if not isinstance(rows, str):
                self._note(source, rows.num_rows, began)
                self._present |= {(source, each): not rows[each].null_count for each in rows.column_names}
                if rows.num_rows:
                    self.space.show(source, rows)
            elif asked[source] > 1 or not moved.is_counted:
                self._note(source, self.space.keep(source, rows), began)
            else:
                self._note(source, moved.most_rows, began)
                self._given[source] = rows

    def run(self, name: str, plan: Plan) -> None:
        """Have the rows of a stage."""
        began = time.perf_counter()
        left = self._left(plan)
        if left is None:
            self._note(name, 0, began)
            return
        self._plans[name] = left
        if self.sites is not None and self.sites.takes(left):
            self._note(name, self.space.keep_given(name, self._on_sites(left)), began)
            return
        sql = self.sql(self._slices.applied(left))
        logger.debug("%s: %s", name, sql)
        self._note(name, self.space.keep(name, sql), began)

    def rows(self, plan: Plan) -> pa.Table:
        """The rows of a plan that no stage reads, in its order."""
        began, left = time.perf_counter(), self._left(plan) or plan
        if self.sites is not None and self.sites.takes(left):
            found = self._on_sites(left)
        else:
            self.space.keep(ASKED_FOR, self.sql(self._slices.applied(left)))  # DuckDB plans twice what is asked for as Arrow
            found = self.space.rows(ASKED_FOR)
        self.runs.append(StageRun(ASKED_FOR, found.num_rows, time.perf_counter() - began))
        return found

    def query(self, plan: Plan) -> str | None:
        """The query of a plan for a statement of its own; None where it has no rows."""
        left = self._left(plan)
        if left is not None and self.sites is not None and self.sites.takes(left):
            name = f"on sites {len(self.runs)}"
            self.run(name, plan)
            return f"SELECT * FROM {native_name(name)}"
        return None if left is None else self.sql(self._slices.applied(left))

    def _left(self, plan: Plan) -> Plan | None:
        """A plan without what is known to be empty, and with what is known of keys."""
        left = without_empty(plan, Known(self._empty, self._filled))
        return None if left is None else sharpen(left, self._holds_no_null)

    def _on_sites(self, plan: Plan) -> pa.Table:
        if self.sites is None:
            raise AssertionError("asked for one site only")
        self._show_changes()
        self._make_empty(plan)
        return self.sites.run(plan, self.space.rows)

    def sql(self, plan: Plan) -> str:
        """The query of a plan, which says itself how its tables are read: a view would be planned twice."""
        self._make_empty(plan)
        read: dict[str, str] = {}
        for leaf in plan.walk():
            if isinstance(leaf, Scan):
                read[shown_name(leaf.table)] = self._show(leaf.table)
            elif isinstance(leaf, Input) and leaf.source in self._given:
                read[leaf.source] = self._given[leaf.source]
        shown = [f"{native_name(name)} AS NOT MATERIALIZED ({query})" for name, query in read.items()]
        repeated, sql = _sql(plan)
        return f"WITH {', '.join((*shown, *repeated))} {sql}" if shown or repeated else sql

    def close(self) -> None:
        """Let go of tables that were held in memory."""
        self._held.close()

    def _show(self, name: str) -> str:
        """How a table is read; a small one from memory."""
        if name not in self._shown:
            self._shown[name], statics = self.tables.query(name)
            self._held.enter_context(self.tables.kernel.local.loaded(statics))
        return self._shown[name]

    def _show_changes(self) -> None:
        """Let all changes be read by name."""
        for name, query in self._given.items():
            self.space.show(name, query)
        self._given.clear()

    def _make_empty(self, plan: Plan) -> None:
        """Tables without rows, for inputs that have none and are read nevertheless, as the right side of a left join may be."""
        wanted: dict[str, dict[str, str]] = {}
        for node in plan.walk():
            if isinstance(node, Input) and node.source in self._empty:
                types = {column.name: _type(column.type) for column in node.given}
                wanted.setdefault(node.source, {}).update(types)
        for name, columns in wanted.items():
            described = ", ".join(f"{native_name(column)} {kind}" for column, kind in columns.items())
            self.space.execute(f"CREATE OR REPLACE TEMP TABLE {native_name(name)} ({described})")

    def _holds_no_null(self, name: str, column: str) -> bool:
        """Whether a column of a stage holds no null; of what is no stage nothing is known."""
        known = (name, column)
        if known not in self._present:
            if name in self._given:
                self._show_changes()
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


def _type(type_: DataType) -> str:
    """What the engine calls a type; that of NULL alone, too."""
    return '"NULL"' if type_ == NULL else native.type_sql(type_).sql(dialect="duckdb")


@lru_cache(maxsize=1024)
def _sql(plan: Plan) -> tuple[tuple[str, ...], str]:
    """What a query reads several times, each under a name, and the query."""
    tree = rendered(plan, NATIVE, _named)
    repeated = tree.args.get("with_")
    tree.set("with_", None)
    return tuple(text_of(each, NATIVE) for each in (repeated.expressions if repeated is not None else ())), text_of(tree, NATIVE)


def _named(leaf: Scan | Input) -> exp.Expr:
    return exp.Table(this=exp.to_identifier(shown_name(leaf.table) if isinstance(leaf, Scan) else leaf.source, quoted=True))
