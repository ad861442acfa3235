"""The synopses of a catalog: built by Spark, kept on disk beside the tables, opened when first asked for."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nearly.engine.changes.changes import Changes
from nearly.engine.engine import Engine
from nearly.engine.storage.catalog import check_name
from nearly.errors import SchemaError, unknown
from nearly.synopsis.build.definition import Options, TablePlace
from nearly.synopsis.build.passes import Progress, build
from nearly.synopsis.synopsis import Synopsis
from nearly.synopsis.upkeep.store import DESCRIPTION, Store


class Synopses:
    """All synopses below one catalog."""

    def __init__(self, engine: Engine, changes: Changes) -> None:
        self._engine = engine
        self._changes = changes
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
            stored.refuse_derived("a synopsis")
            definition, states = build(self._engine, name, stored, measure, on, key, options, progress)
            place, store = TablePlace.of(stored), Store(self.directory / name.lower())
            store.create(definition, states, place)
            self._open[name.lower()] = Synopsis(self._engine, self._changes, definition, states, place, store)
            return self._open[name.lower()]

    def get(self, name: str) -> Synopsis:
        """A synopsis by name, as it was last saved when it is first asked for; whatever it is asked, it follows its table first."""
        lowered = name.lower()
        with self._lock:
            if lowered not in self._open:
                if lowered not in self.names:
                    raise unknown("synopsis", name, self.names)
                store = Store(self.directory / lowered)
                self._open[lowered] = Synopsis(self._engine, self._changes, *store.load(), store)
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
            Store(self.directory / lowered).drop()

    def close(self) -> None:
        """Close all that are open. It raises nothing that has to do with their files (see `Synopsis.close`)."""
        with self._lock:
            for each in self._open.values():
                each.close()
            self._open.clear()
