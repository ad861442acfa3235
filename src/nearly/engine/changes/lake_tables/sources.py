"""Which sources have versions of their own, and how a session finds the one of a table again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nearly.engine.changes.lake_tables.lakes import refresh_lake, register_lake
from nearly.engine.engine import Engine
from nearly.engine.storage.lake_logs.delta import DeltaLog, is_delta, version_of
from nearly.engine.storage.lake_logs.iceberg import IcebergLog, is_iceberg, opened_iceberg, snapshot_of
from nearly.engine.storage.lake_logs.lakes import Lake
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.listing import local_path
from nearly.errors import SchemaError, Unsupported


def lake_of(source: Any) -> Lake | None:
    """The source with versions that a user names, by a path or a table of `pyiceberg`; None when it is none."""
    text = os.fspath(source) if isinstance(source, os.PathLike) else source
    if isinstance(text, str):
        path = local_path(text)
        if path is not None and is_delta(path):
            return DeltaLog(path)
    return opened_iceberg(text) if is_iceberg(text) else None


class Lakes:
    """Registers and refreshes such sources for a session, which remembers where an Iceberg table is."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[str, Lake] = {}

    def register(self, name: str, lake: Lake, key: Sequence[str], clustered_by: Sequence[str] | None, version: object) -> Table:
        self._engine.life.refuse_over()
        named = version_of(version) if lake.kind == "delta" else snapshot_of(version)
        table = register_lake(self._engine, name, lake, key, clustered_by, named)
        self._known[name.lower()] = lake
        return table

    def refresh(self, name: str, source: Any) -> Table:
        """Take the later versions of the source of a table."""
        self._engine.life.refuse_over()
        table = self._engine.catalog.table(name)
        lake = _lake_again(table, self._known.get(name.lower()), source)
        self._known[name.lower()] = lake
        return refresh_lake(self._engine, table, lake)


def _lake_again(table: Table, known: Lake | None, source: Any) -> Lake:
    """The source of a table as it is now."""
    if source is not None:
        found = lake_of(source)
        if found is None or found.kind != table.origin.kind:
            raise SchemaError(f"table {table.name!r} comes from {table.origin}, and {source!r:.100} is no such source")
        return found
    (location,) = table.origin.locations
    if table.origin.kind == "delta":
        return DeltaLog(location)
    if isinstance(known, IcebergLog):
        return opened_iceberg(known.table)
    directory = Path(location.removeprefix("file://")).parent.parent
    if is_iceberg(directory):
        return opened_iceberg(directory)
    raise Unsupported(
        f"which snapshot of {location} is the present one is known to its catalog alone; give the table as the catalog has it, "
        f"or its metadata file: refresh({table.name!r}, source=...)"
    )
