"""The synopses of a catalog: built by Spark, kept on disk beside the tables, opened when first asked for."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nearly.engine.engine import Engine
from nearly.engine.row_scan import scan_rows
from nearly.engine.spark.cluster import GetSpark
from nearly.engine.storage.catalog import check_name
from nearly.engine.storage.layouts import Table
from nearly.errors import EngineError, SchemaError, unknown
from nearly.synopsis.build.definition import Definition, Options
from nearly.synopsis.build.drafting import Draft, LeafCounts
from nearly.synopsis.build.passes import Contents, Progress, blocks_of, build, census
from nearly.synopsis.structure.rows import Hashes
from nearly.synopsis.structure.state import Changes
from nearly.synopsis.synopsis import Synopsis
from nearly.synopsis.upkeep.live import Archive
from nearly.synopsis.upkeep.store import DESCRIPTION, Store


class TableArchive:
    """The archive of a stored synopsis: its table as it was when built, and the log of batches since."""

    def __init__(self, engine: Engine, definition: Definition, store: Store) -> None:
        self._engine = engine
        self._definition = definition
        self._store = store

    def base(self, draft: Draft) -> LeafCounts:
        table = self._table("planned again")
        schema = self._definition.schema
        (part,) = census(self._engine, table, schema, [draft], blocks_of(table, schema, draft))
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
        for _, batch in self._store.log.after(0, upto):
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
        self, name: str, table: str, measure: str | Sequence[str], on: Any, key: Sequence[str] | None, options: Options,
        progress: Progress | None,
    ) -> Synopsis:  # fmt: skip
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
    found = Synopsis(definition, states, archive(definition, store), store, number, streams, spark)
    found.intake.replay()
    return found
