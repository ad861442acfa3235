"""Delta Lake tables by their log, read with the package `deltalake`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from nearly.engine.storage.hive_partitions import directory_names, partition_values
from nearly.engine.storage.lake_logs.lakes import LakeSnapshot, Rows, local_file
from nearly.engine.storage.listing import FoundFile
from nearly.engine.storage.parquet_types import simple_string
from nearly.errors import EngineError, SchemaError, Unsupported
from nearly.plan import types
from nearly.plan.schema import SchemaColumn

LOG = "_delta_log"
_READ = {"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "columnMapping"}
"""Features of tables that are understood; column mapping only where it is switched off."""


def is_delta(path: str) -> bool:
    """Whether a directory is a Delta table."""
    return (Path(path) / LOG).is_dir()


@dataclass(frozen=True, slots=True)
class DeltaLog:
    """A Delta table in a local directory."""

    location: str

    @property
    def kind(self) -> str:
        return "delta"

    def snapshot(self, version: str | None = None) -> LakeSnapshot:
        table = self._at(version)
        _refuse_features(table, self.location)
        fields = json.loads(table.schema().to_json())["fields"]
        columns = tuple(SchemaColumn(each["name"], types.from_name(simple_string(each["type"]))) for each in fields)
        partitions = tuple(table.metadata().partition_columns)
        names = {column.name: column for column in columns}
        files = self._files(table, [names[each] for each in partitions])
        gone = _deleted(table, {file.path for file in files})
        return LakeSnapshot(str(table.version()), self._operation(table.version()), columns, files, partitions, gone)

    def later(self, version: str) -> list[str]:
        return [str(each) for each in range(int(version) + 1, self._at(None).version() + 1)]

    def feed(self, version: str) -> pa.Table | None:
        table = self._at(version)
        if table.metadata().configuration.get("delta.enableChangeDataFeed", "false").lower() != "true":
            return None
        try:
            return pa.table(table.load_cdf(starting_version=int(version), ending_version=int(version)).read_all())
        except Exception:  # noqa: BLE001  whatever is wrong with the feed, the files tell the same
            return None

    def _operation(self, version: int) -> str:
        """What made a version, as the log tells where it is still kept."""
        commit = Path(self.location, LOG, f"{version:020}.json")
        for line in commit.read_text(encoding="utf-8").splitlines() if commit.exists() else ():
            if '"commitInfo"' in line:
                return str(json.loads(line).get("commitInfo", {}).get("operation", "")).lower()
        return ""

    def _at(self, version: str | None) -> Any:
        deltalake = load_deltalake()
        try:
            return deltalake.DeltaTable(self.location, version=None if version is None else int(version))
        except Exception as error:
            at = "" if version is None else f" at version {version}"
            raise EngineError(f"the Delta table {self.location} cannot be read{at}: {error}") from error

    def _files(self, table: Any, partitions: list[SchemaColumn]) -> tuple[FoundFile, ...]:
        """The files of a version; the values of partition columns must be those that their directories tell."""
        found = []
        actions = pa.table(table.get_add_actions(flatten=False)).to_pylist()
        for add in sorted(actions, key=lambda each: (each["modification_time"], each["path"])):
            path = add["path"]
            whole = local_file(path, "Delta") if ":/" in path else str(Path(self.location, unquote(path)))
            file = FoundFile(whole, self.location)
            if not Path(whole).is_relative_to(self.location):
                raise Unsupported(
                    f"the Delta table {self.location} has files elsewhere, such as {whole}; register it through Spark"
                )
            if partitions:
                _refuse_other_directories(file, partitions, add["partition"])
            found.append(file)
        return tuple(found)


def _refuse_other_directories(file: FoundFile, partitions: list[SchemaColumn], logged: dict[str, Any]) -> None:
    if directory_names(file) == tuple(column.name for column in partitions):
        told = {each.column: each.value for each in partition_values(file, partitions)}
        if all(told[name] == (value if value != "" else None) for name, value in logged.items()):
            return
    raise Unsupported(f"the directories of {file.path} do not tell the values of its partition columns; register it through Spark")


def _deleted(table: Any, paths: set[str]) -> dict[str, Rows]:
    """The rows of each file that its deletion vector names."""
    found = {}
    for batch in table.deletion_vectors():
        read = pa.record_batch(batch)
        for address, kept in zip(read["filepath"].to_pylist(), read["selection_vector"], strict=True):
            path = local_file(address, "Delta")
            if path not in paths:
                raise EngineError(f"a deletion vector names {path}, which is no file of the Delta table")
            found[path] = np.flatnonzero(~kept.values.to_numpy(zero_copy_only=False)).astype(np.int64)
    return {path: rows for path, rows in found.items() if len(rows)}


def _refuse_features(table: Any, location: str) -> None:
    protocol, settings = table.protocol(), table.metadata().configuration
    mode = settings.get("delta.columnMapping.mode", "none")
    unread = sorted(set(protocol.reader_features or ()) - _READ)
    if mode != "none":
        unread.append(f"column mapping by {mode}")
    if unread:
        raise Unsupported(
            f"the Delta table {location} uses {', '.join(unread)}, which is not read in place; register it through Spark"
        )


def load_deltalake() -> Any:
    """The package, which is an extra."""
    try:
        import deltalake  # noqa: PLC0415
    except ImportError as error:
        raise EngineError("Delta tables need the package deltalake: pip install 'nearly[delta]'") from error
    return deltalake


def version_of(given: object) -> str | None:
    """A version of the log as the user names it."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise SchemaError(f"version={given!r} must be the number of a version of the Delta table")
    return str(given)
