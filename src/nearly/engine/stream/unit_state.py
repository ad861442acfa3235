"""What a progressive query knows so far: the rows and partial aggregates of the units read, in the driver's native engine."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa
from sqlglot import exp

from nearly.engine.native.engine import Native, Settings
from nearly.engine.native.failures import NativeFailure, explained
from nearly.engine.native.spare_engines import SpareEngines
from nearly.plan.nodes import GroupBy, Input, Plan, Scan
from nearly.plan.render import NATIVE, render
from nearly.rewrite.sites.split_aggregate import merged_parts
from nearly.rewrite.stream.cut import Gathered

COMPACT_ABOVE = 100_000
"""Partial rows up to this many are left as they came."""


@dataclass(slots=True)
class UnitState:
    """Tables named after the stages. Law: merging the parts of a stage never changes what the tail gives."""

    stages: tuple[Gathered, ...]
    settings: Settings
    spare: SpareEngines = field(default_factory=SpareEngines)
    bytes: int = 0
    _native: Native | None = None
    _rows: dict[str, int] = field(default_factory=dict)
    _compact: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def engine(self) -> Native:
        """An engine of its own; opening one takes a while, so it is done when it is first needed, and one of before is taken."""
        if self._native is None:
            self._native = self.spare.take()
            self._native.configure(self.settings)
        return self._native

    def close(self) -> None:
        """Know nothing any more, and leave the engine to another query."""
        with self._lock:
            engine, self._native = self._native, None
            if engine is not None:
                self.spare.give_back(engine)

    @property
    def rows(self) -> int:
        """Rows kept for all stages together."""
        return sum(self._rows.values())

    def rows_of(self, stages: Iterable[str]) -> int:
        """Rows kept for some stages."""
        return sum(self._rows.get(name, 0) for name in stages)

    def open(self) -> None:
        """Be ready for the first batch."""
        with self._lock:
            self.engine  # noqa: B018

    def add(self, tables: dict[str, pa.Table]) -> None:
        """Take in the results of a batch."""
        with self._lock:
            for name, table in tables.items():
                self.engine.append(name, table)
                self._rows[name] = self._rows.get(name, 0) + table.num_rows
                self.bytes += table.nbytes
        for stage in self.stages:
            self._compact_stage(stage)

    def replace(self, stage: Gathered, plan: Plan, inputs: dict[str, pa.Table]) -> None:
        """Have the rows of a plan as the stage's rows."""
        table = self.run(plan, inputs)
        with self._lock:
            self.engine.replace(stage.name, table)
        self._rows[stage.name] = table.num_rows

    def clear(self) -> None:
        """Know nothing again."""
        with self._lock:
            self.engine.forget()
        self._rows.clear()
        self._compact.clear()

    def run(self, plan: Plan, inputs: dict[str, pa.Table] | None = None) -> pa.Table:
        """A plan over the stages and further inputs."""

        def source(leaf: Scan | Input) -> exp.Expr:
            if isinstance(leaf, Scan):
                raise NativeFailure(f"the tail of a progressive query reads table {leaf.table}")
            return exp.Table(this=exp.to_identifier(leaf.source, quoted=True))

        try:
            with self._lock:
                return self.engine.run(render(plan, NATIVE, source), (), inputs or {})
        except duckdb.Error as trouble:
            raise explained(trouble) from trouble

    def _compact_stage(self, stage: Gathered) -> None:
        """Merge parts with equal keys when they have doubled since the last time."""
        rows = self._rows.get(stage.name, 0)
        if (
            not stage.partial
            or not isinstance(stage.plan, GroupBy)
            or rows <= max(COMPACT_ABOVE, 2 * self._compact.get(stage.name, 0))
        ):
            return
        merged = self.run(merged_parts(stage.plan, Input(stage.name, stage.plan.columns)))
        with self._lock:
            self.engine.replace(stage.name, merged.select([column.name for column in stage.plan.columns]))
        self._rows[stage.name] = self._compact[stage.name] = merged.num_rows
