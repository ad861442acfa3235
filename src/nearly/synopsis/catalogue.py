"""The synopses of a catalog: built by Spark, kept on disk beside the tables, opened when first asked for."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from nearly.engine.engine import Engine
from nearly.engine.row_scan import scan_rows
from nearly.engine.spark.cluster import GetSpark
from nearly.engine.storage.catalog import check_name
from nearly.engine.storage.layouts import Table, resolve
from nearly.errors import EngineError, SchemaError, unknown
from nearly.synopsis.build.definition import Budget, Definition, column_sets, partial_leaves
from nearly.synopsis.build.drafting import Draft, LeafCounts, Shape, draft, finished
from nearly.synopsis.build.packing import from_bytes, unpack_part
from nearly.synopsis.build.passes import Census, Contents, Survey, surveyed
from nearly.synopsis.columns.domain import domains_for
from nearly.synopsis.columns.reading import Schema
from nearly.synopsis.structure.rows import Hashes, Rows, empty
from nearly.synopsis.structure.state import TreeState
from nearly.synopsis.synopsis import Synopsis
from nearly.synopsis.upkeep.archive import Archive, Changes
from nearly.synopsis.upkeep.store import DESCRIPTION, Store

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How a synopsis is to be made. `sample` is the share of rows that is stored as samples; `per_query` sets it instead by the
    share of rows a query looks at."""

    leaves: int = 64
    sample: float = 0.005
    per_query: float | None = None
    method: str = "sampled"
    focus: str = "all"
    pooled: bool = False
    seed: int = 0
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        for name in ("sample", "per_query"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise SchemaError(f"{name}={value} must be above 0 and at most 1")
        if not isinstance(self.leaves, int) or isinstance(self.leaves, bool):
            raise SchemaError(f"leaves={self.leaves!r} must be a whole number")

    def shape(self, columns: tuple[int, ...], all_columns: int, rows: int) -> Shape:
        """The shape of one tree."""
        leaves = self.budget.leaves(self.leaves)
        share = self.sample
        if self.per_query is not None:
            share = self.per_query * leaves / partial_leaves(leaves, len(columns))
        wanted = min(rows, int(np.ceil(share * rows)))
        target = self.budget.samples(max(2, wanted), leaves, all_columns, len(columns))
        return Shape(columns, leaves, target, self.method, self.focus, self.pooled)


def options_from(given: dict[str, Any]) -> Options:
    """Options by name; one that does not exist is an error that offers those that do."""
    known = [each.name for each in fields(Options)]
    for name in given:
        if name not in known:
            raise unknown("option", name, known)
    return Options(**given)


class TableArchive:
    """The archive of a stored synopsis: its table as it was when built, and the log of batches since."""

    def __init__(self, engine: Engine, definition: Definition, store: Store) -> None:
        self._engine = engine
        self._definition = definition
        self._store = store

    def base(self, draft: Draft) -> LeafCounts:
        table = self._table("planned again")
        (part,) = census(self._engine, table, self._definition.schema, [draft])
        return part

    def contents(self) -> Hashes:
        table, schema = self._table("asked whether it has a row that is to be deleted"), self._definition.schema
        findings = scan_rows(self._engine, table, schema.columns, Contents(schema)) if table.rows else []
        return np.concatenate([np.empty(0, np.uint64), *(np.frombuffer(each, np.uint64) for each in findings)])

    def _table(self, purpose: str) -> Table:
        table = self._engine.catalog.table(self._definition.table)
        if table.content != self._definition.version:
            raise EngineError(
                f"table {table.name!r} changed since synopsis {self._definition.name!r} was built, so it cannot be {purpose}; "
                f"drop it and build it anew"
            )
        return table

    def changes(self, upto: int) -> Iterator[Changes]:
        for _, batch in self._store.after(0, upto):
            yield batch.changes


class Synopses:
    """All synopses below one catalog."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: dict[str, Synopsis] = {}
        self._lock = threading.RLock()

    @property
    def directory(self) -> Path:
        return self._engine.catalog.path / "synopses"

    @property
    def names(self) -> tuple[str, ...]:
        if not self.directory.is_dir():
            return ()
        return tuple(sorted(each.name for each in self.directory.iterdir() if (each / DESCRIPTION).exists()))

    def create(
        self, name: str, table: str, measure: str, on: Any, key: Sequence[str] | None, options: Options, progress: Progress | None
    ) -> Synopsis:
        """Build a synopsis in two passes over the table and keep it; one of the same name is an error."""
        check_name(name)
        with self._lock:
            if name.lower() in self.names:
                raise SchemaError(f"there is a synopsis {name!r} already; drop it first, or take another name")
            stored = self._engine.catalog.table(table)
            definition, states = build(self._engine, name, stored, measure, on, key, options, progress)
            store = Store(self.directory / name.lower())
            store.clear()
            store.save(definition, states, 0, {})
            cluster = self._engine.cluster
            made = Synopsis(definition, states, TableArchive(self._engine, definition, store), store, spark=lambda: cluster.spark)
            self._open[name.lower()] = made
            return made

    def get(self, name: str) -> Synopsis:
        """A synopsis by name, opened with its log replayed."""
        lowered = name.lower()
        with self._lock:
            if lowered not in self._open:
                if lowered not in self.names:
                    raise unknown("synopsis", name, self.names)
                self._open[lowered] = opened(self._engine, self.directory / lowered)
            return self._open[lowered]

    def drop(self, name: str) -> None:
        """Forget a synopsis and remove its files."""
        lowered = name.lower()
        with self._lock:
            if lowered not in self.names:
                raise unknown("synopsis", name, self.names)
            known = self._open.pop(lowered, None)
            if known is not None:
                known.settle()
                if known.store is not None:
                    known.store.close()
            store = Store(self.directory / lowered)
            store.own()
            (store.directory / DESCRIPTION).unlink()
            shutil.rmtree(store.directory, ignore_errors=True)
            store.close()

    def close(self) -> None:
        """Close all that are open. It raises nothing that has to do with their files (see `Synopsis.close`)."""
        with self._lock:
            for each in self._open.values():
                each.close()
            self._open.clear()


def opened(engine: Engine, directory: Path) -> Synopsis:
    """A synopsis from disk, able to read its table again."""
    return reopened(directory, lambda definition, store: TableArchive(engine, definition, store), lambda: engine.cluster.spark)


def reopened(directory: Path, archive: Callable[[Definition, Store], Archive], spark: GetSpark | None = None) -> Synopsis:
    """A synopsis from disk: the snapshot, then the log."""
    store = Store(directory)
    store.tidy()
    definition, states, number, streams = store.load()
    found = Synopsis(definition, states, archive(definition, store), store, number, spark)
    found.remember(streams)
    for following, batch in store.after(number):
        found.replay(following, batch)
    return found


def build(
    engine: Engine, name: str, table: Table, measure: str, on: Any, key: Sequence[str] | None, options: Options,
    progress: Progress | None = None,
) -> tuple[Definition, list[TreeState]]:  # fmt: skip
    """Two passes: a survey that plans the trees, a census that counts every row."""
    sets = [resolve(table.columns, each, "on") for each in column_sets(on)]
    names = list(dict.fromkeys(each for columns in sets for each in columns))
    identity = table.key if key is None else resolve(table.columns, key, "key")
    measured = table.column(measure)
    columns = [(each, table.column(each).type) for each in names]
    schema = Schema(domains_for(columns), measured.name, measured.type, identity, options.seed)
    shapes = tuple(options.shape(tuple(names.index(each) for each in columns), len(names), table.rows) for columns in sets)
    report = progress or (lambda _: None)
    drafts = [draft(shape, sample, table.rows) for shape, sample in _planned(engine, table, schema, shapes)]
    report(0.5)
    parts = census(engine, table, schema, drafts)
    report(1.0)
    states = [finished(each, part) for each, part in zip(drafts, parts, strict=True)]
    return Definition(name, table.name, table.content, table.rows, schema, shapes), states


def _planned(engine: Engine, table: Table, schema: Schema, shapes: Sequence[Shape]) -> list[tuple[Shape, Rows]]:
    """The planning sample for each tree, from the first pass."""
    if not table.rows:
        return [(shape, empty(len(schema.domains))) for shape in shapes]
    wanted = max(shape.optimisation_rows for shape in shapes)
    survey = Survey(schema, min(1.0, 1.1 * wanted / table.rows))
    sampled = surveyed(schema, scan_rows(engine, table, schema.columns, survey))
    rows = empty(len(schema.domains)) if sampled is None else schema.rows(sampled)
    return [(shape, rows) for shape in shapes]


def census(engine: Engine, table: Table, schema: Schema, drafts: Sequence[Draft]) -> list[LeafCounts]:
    """The second pass: one part per tree, merged over all tasks."""
    parts = [LeafCounts.nothing(each) for each in drafts]
    if not table.rows:
        return parts
    for finding in scan_rows(engine, table, schema.columns, Census(schema, list(drafts))):
        arrays = from_bytes(finding)
        for place, (each, part) in enumerate(zip(drafts, parts, strict=True)):
            part.merge(each, unpack_part(arrays[f"part_{place}"].tobytes()))
    return parts
