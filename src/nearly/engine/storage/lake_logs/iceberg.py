"""Iceberg tables by their metadata, read with the package `pyiceberg`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nearly.engine.storage.lake_logs.lakes import EqualRows, LakeSnapshot, Rows
from nearly.engine.storage.listing import FoundFile
from nearly.errors import EngineError, SchemaError, Unsupported
from nearly.plan import types
from nearly.plan.schema import SchemaColumn
from nearly.plan.types import DataType

NOTHING = "0"
"""The version of a table without a snapshot: no row was ever written to it."""
_FIELD_ID = b"PARQUET:field_id"
_TYPES = {
    "boolean": types.BOOLEAN, "int": types.INT, "long": types.LONG, "float": types.FLOAT, "double": types.DOUBLE,
    "string": types.STRING, "binary": types.BINARY, "date": types.DATE, "timestamp": types.TIMESTAMP_NTZ,
    "timestamptz": types.TIMESTAMP,
}  # fmt: skip


def is_iceberg(source: object) -> bool:
    """Whether something is a table of `pyiceberg`, or names the metadata or the directory of an Iceberg table."""
    if isinstance(source, str | Path):
        return str(source).endswith(".metadata.json") or (Path(source) / "metadata" / "version-hint.text").is_file()
    return type(source).__module__.startswith("pyiceberg.table")


@dataclass(frozen=True, slots=True)
class _File:
    """A file of a snapshot: its place in the order of commits, and its partition."""

    path: str
    sequence: int
    spec: int
    partition: Any
    data: Any


@dataclass(frozen=True, slots=True)
class IcebergLog:
    """An Iceberg table whose files are local; `table` is `pyiceberg`'s."""

    table: Any

    @property
    def kind(self) -> str:
        return "iceberg"

    @property
    def location(self) -> str:
        return str(self.table.metadata_location)

    def snapshot(self, version: str | None = None) -> LakeSnapshot:
        found = self.table.current_snapshot() if version is None else self._by_id(version)
        if found is None:
            return LakeSnapshot(NOTHING, "create", _columns(self.table.schema()), ())
        schema = self.table.schemas().get(found.schema_id, self.table.schema())
        data, positions, equalities = self._files(found)
        if len(self.table.schemas()) > 1:
            _refuse_renamed(schema, data)
        return LakeSnapshot(
            str(found.snapshot_id),
            str(found.summary.operation.value) if found.summary else "",
            _columns(schema),
            tuple(FoundFile(each.path, str(Path(each.path).parent)) for each in data),
            gone=_deleted(data, positions),
            equal=tuple(self._equal(each, data, schema) for each in equalities),
        )

    def later(self, version: str) -> list[str]:
        from pyiceberg.table.snapshots import ancestors_of  # noqa: PLC0415  an extra

        found: list[str] = []
        for each in ancestors_of(self.table.current_snapshot(), self.table.metadata):
            if str(each.snapshot_id) == version:
                return found[::-1]
            found.append(str(each.snapshot_id))
        return found[::-1] if version == NOTHING else found[:1]  # its past is gone, or it was rolled back

    def feed(self, version: str) -> pa.Table | None:  # noqa: ARG002  Iceberg keeps no record of rows
        return None

    def _by_id(self, version: str) -> Any:
        if version == NOTHING:
            return None
        found = self.table.metadata.snapshot_by_id(int(version))
        if found is None:
            raise EngineError(f"the Iceberg table {self.location} has no snapshot {version}; it may have expired")
        return found

    def _files(self, snapshot: Any) -> tuple[list[_File], list[_File], list[_File]]:
        """The files of rows, of positions of deleted rows, and of values of deleted rows."""
        found: tuple[list[_File], list[_File], list[_File]] = ([], [], [])
        for manifest in snapshot.manifests(self.table.io):
            for entry in manifest.fetch_manifest_entry(self.table.io, discard_deleted=True):
                data = entry.data_file
                path = local_file(data.file_path)
                if data.file_format.value != "PARQUET":
                    raise Unsupported(
                        f"the Iceberg table has files that are not Parquet, such as {path}; register it through Spark"
                    )
                kind = int(data.content)
                found[kind].append(_File(path, entry.sequence_number or 0, manifest.partition_spec_id, data.partition, data))
        return found

    def _equal(self, file: _File, data: Sequence[_File], schema: Any) -> EqualRows:
        """Rows deleted by their values: those of files written before, in the same partition, or in all."""
        everywhere = not self.table.specs()[file.spec].fields
        names = tuple(str(schema.find_column_name(each)) for each in file.data.equality_ids or ())
        stored = pq.read_schema(file.path)
        ids = {_id_of(stored.field(name)): name for name in stored.names}
        if [ids.get(each) for each in file.data.equality_ids or ()] != list(names) or not names:
            raise Unsupported(f"{file.path} deletes rows by columns that the table has no longer; register it through Spark")
        reached = [
            each.path
            for each in data
            if each.sequence < file.sequence and (everywhere or (each.spec == file.spec and each.partition == file.partition))
        ]
        return EqualRows(file.path, names, tuple(reached))


def local_file(location: str) -> str:
    """The path of a file that the metadata names; what stands after the scheme is taken literally."""
    path = re.sub(r"^file:/*", "/", location)
    if not path.startswith("/"):
        raise Unsupported(f"the Iceberg table has files that are not local, such as {location}; register it through Spark")
    return path


def opened_iceberg(source: Any) -> IcebergLog:
    """The table that a user names: `pyiceberg`'s, as its catalog has it now, or the one of a metadata file or of a directory."""
    if not isinstance(source, str | Path):
        return IcebergLog(source.refresh() if hasattr(source, "catalog") and not _is_static(source) else source)
    try:
        from pyiceberg.table import StaticTable  # noqa: PLC0415  an extra
    except ImportError as error:
        raise EngineError("Iceberg tables need the package pyiceberg: pip install 'nearly[iceberg]'") from error
    path = Path(local_file(str(Path(source).expanduser().absolute() if "://" not in str(source) else source)))
    try:
        return IcebergLog(StaticTable.from_metadata(f"file://{_metadata_of(path)}"))
    except OSError as error:
        raise EngineError(f"the Iceberg table {source} cannot be read: {error}") from error


def _is_static(table: Any) -> bool:
    return type(table).__name__ == "StaticTable"


def _metadata_of(path: Path) -> Path:
    """The metadata file of a table that is named by it or by its directory, whose hint tells which one is the present."""
    if path.suffix == ".json":
        return path
    version = (path / "metadata" / "version-hint.text").read_text(encoding="utf-8").strip()
    name = f"v{version}.metadata.json" if version.isdigit() else version
    return path / "metadata" / name


def _columns(schema: Any) -> tuple[SchemaColumn, ...]:
    return tuple(SchemaColumn(field.name, _type(field), not field.required) for field in schema.fields)


def _type(field: Any) -> DataType:
    text = str(field.field_type)
    if text.startswith("decimal"):
        return types.from_name(text.replace(" ", ""))
    if text.startswith("fixed"):
        return types.BINARY
    if text not in _TYPES:
        raise Unsupported(
            f"column {field.name!r} of the Iceberg table is {text}, which is not read in place; register it through Spark"
        )
    return _TYPES[text]


def _deleted(data: Sequence[_File], positions: Sequence[_File]) -> dict[str, Rows]:
    """The rows of each file that position deletes name; they reach files written before them or with them."""
    written = {each.path: each.sequence for each in data}
    found: dict[str, list[Rows]] = {}
    for each in positions:
        for path, rows in _positions(each.path):
            if path in written and written[path] <= each.sequence:
                found.setdefault(path, []).append(rows)
    return {path: np.unique(np.concatenate(rows)) for path, rows in found.items()}


def _positions(path: str) -> Iterator[tuple[str, Rows]]:
    table = pq.read_table(path, columns=["file_path", "pos"], partitioning=None)
    if not table.num_rows:
        return
    coded = table["file_path"].combine_chunks().dictionary_encode()
    codes, rows = coded.indices.to_numpy(), table["pos"].to_numpy().astype(np.int64)
    order = np.argsort(codes, kind="stable")
    parts = np.split(rows[order], np.flatnonzero(np.diff(codes[order])) + 1)
    for location, part in zip(coded.dictionary.to_pylist(), parts, strict=True):
        yield local_file(location), part


def _refuse_renamed(schema: Any, data: Sequence[_File]) -> None:
    """Columns are the same by their number, not by their name, once the schema was changed."""
    wanted = {field.name: field.field_id for field in schema.fields}
    for file in data:
        stored = pq.read_schema(file.path)
        for name in stored.names:
            if wanted.get(name) != _id_of(stored.field(name)):
                raise Unsupported(
                    f"{file.path} was written before column {name!r} was renamed, added or dropped; rewrite the table's files, or "
                    f"register it through Spark"
                )


def _id_of(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_FIELD_ID)
    return None if text is None else int(text)


def snapshot_of(given: object) -> str | None:
    """A snapshot as the user names it."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int):
        raise SchemaError(f"version={given!r} must be the id of a snapshot of the Iceberg table")
    return str(given)
