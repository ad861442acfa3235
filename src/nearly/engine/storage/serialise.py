"""Tables, and what changed in them, as JSON text and back, with a checksum.

Law: what was encoded is decoded again; damaged text is an error, never another table.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from nearly.engine.storage.batches import Batch, LayoutChange
from nearly.engine.storage.blocks import Block, ColumnStatistics, FilePart, PartitionValue
from nearly.engine.storage.clustering import Clustering
from nearly.engine.storage.footers import checksum_of
from nearly.engine.storage.layouts import Layout, Origin, Table
from nearly.engine.storage.manifest import FileEntry, Manifest
from nearly.engine.storage.view_definition import read_definition
from nearly.errors import EngineError, NearlyError
from nearly.plan import types
from nearly.plan.schema import SchemaColumn
from nearly.plan.types import DataType

FORMAT = 3
Opened = TypeVar("Opened")
_INSIDE = "./"
"""Starts paths inside the catalog, so that the catalog can be moved."""


def encode(table: Table, root: str) -> str:
    """The table as text; `root` is the directory of the catalog."""
    return sealed(_table(table, root))


def decode(text: str, root: str) -> Table:
    """The table of a text; `EngineError` when it is not what `encode` wrote."""
    return opened(text, lambda read: _read_table(read, root))


def sealed(content: Any) -> str:
    """Something that JSON can hold as text that tells whether it was damaged."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return json.dumps({"format": FORMAT, "checksum": checksum_of(body.encode()), "body": body}, ensure_ascii=False)


def opened(text: str, read: Callable[[Any], Opened]) -> Opened:
    """What `read` makes of what was sealed; `EngineError` when it is not what it was."""
    try:
        outer = json.loads(text)
        if outer["format"] != FORMAT:
            raise EngineError(f"it has format {outer['format']}, this version of nearly reads format {FORMAT}")
        if checksum_of(outer["body"].encode()) != outer["checksum"]:
            raise EngineError("its checksum does not match")
        return read(json.loads(outer["body"]))
    except NearlyError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise EngineError(f"it is not the text of a table ({type(error).__name__}: {error})") from error


def batch_content(batch: Batch, columns: Sequence[SchemaColumn], root: str) -> list[Any]:
    """A batch as JSON can hold it."""
    kinds = {column.name: column.type for column in columns}
    return [
        batch.version, batch.time.isoformat(), batch.operation, batch.came, batch.gone, batch.updated,
        [_layout_change(each, kinds, root) for each in batch.layouts], batch.went and _file(batch.went, root), batch.stream,
        batch.source,
    ]  # fmt: skip


def read_batch(read: Any, columns: Sequence[SchemaColumn], root: str) -> Batch:
    """The batch of which `batch_content` was made."""
    kinds = {column.name: column.type for column in columns}
    version, time, operation, came, gone, updated, layouts, went, stream, source = read
    return Batch(
        version, dt.datetime.fromisoformat(time), operation, came, gone, updated,
        tuple(_read_layout_change(each, kinds, root) for each in layouts), went and _read_file(went, root),
        stream and (stream[0], stream[1]), source,
    )  # fmt: skip


def _layout_change(change: LayoutChange, kinds: Mapping[str, DataType], root: str) -> list[Any]:
    places = {file.path: number for number, file in enumerate(change.files)}
    blocks = [_block(block, places, kinds) for block in change.blocks]
    files = [_file(file, root) for file in change.files]
    return [change.layout, files, blocks, change.vector and _file(change.vector, root), change.gone]


def _read_layout_change(read: Any, kinds: Mapping[str, DataType], root: str) -> LayoutChange:
    layout, listed, blocks, vector, gone = read
    files = tuple(_read_file(each, root) for each in listed)
    return LayoutChange(
        layout, files, tuple(_read_block(number, block, files, kinds) for number, block in enumerate(blocks)),
        vector and _read_file(vector, root), tuple((file, group, rows) for file, group, rows in gone),
    )  # fmt: skip


def _table(table: Table, root: str) -> dict[str, Any]:
    kinds = {column.name: column.type for column in table.columns}
    return {
        "name": table.name,
        "columns": [[column.name, column.type.name, column.nullable] for column in table.columns],
        "key": table.key,
        "content": table.content,
        "version": table.version,
        "origin": [table.origin.kind, table.origin.locations, table.origin.version],
        "layouts": [_layout(layout, kinds, root) for layout in table.layouts],
        "behind": [_layout(layout, kinds, root) for layout in table.behind],
        "view": table.view and table.view.content,
    }


def _read_table(read: Any, root: str) -> Table:
    columns = tuple(SchemaColumn(name, types.from_name(kind), nullable) for name, kind, nullable in read["columns"])
    kinds = {column.name: column.type for column in columns}
    layouts = tuple(_read_layout(layout, kinds, root) for layout in read["layouts"])
    behind = tuple(_read_layout(layout, kinds, root) for layout in read["behind"])
    kind, locations, version = read["origin"]
    origin = Origin(kind, tuple(locations), version)
    view = read_definition(read["view"]) if read.get("view") else None
    return Table(read["name"], columns, tuple(read["key"]), layouts, read["content"], origin, read["version"], behind, view)


def _layout(layout: Layout, kinds: Mapping[str, DataType], root: str) -> dict[str, Any]:
    places = {file.path: number for number, file in enumerate(layout.manifest.files)}
    clustering = layout.clustering
    return {
        "name": layout.name,
        "path": _shorten(layout.path, root),
        "shuffled": layout.shuffled,
        "clustering": clustering and [clustering.kind, clustering.columns, clustering.buckets],
        "files": [_file(file, root) for file in layout.manifest.files],
        "vectors": [_file(file, root) for file in layout.vectors],
        "blocks": [_block(block, places, kinds) for block in layout.blocks],
    }


def _read_layout(read: Any, kinds: Mapping[str, DataType], root: str) -> Layout:
    files = tuple(_read_file(each, root) for each in read["files"])
    vectors = tuple(_read_file(each, root) for each in read["vectors"])
    clustering = None
    if read["clustering"]:
        kind, columns, buckets = read["clustering"]
        clustering = Clustering(kind, tuple(columns), buckets)
    blocks = tuple(_read_block(number, block, files, kinds) for number, block in enumerate(read["blocks"]))
    return Layout(read["name"], _lengthen(read["path"], root), Manifest(files), blocks, clustering, read["shuffled"], vectors)


def _file(file: FileEntry, root: str) -> list[Any]:
    return [
        _shorten(file.path, root), file.bytes, file.rows, file.footer_checksum, file.modified_ns, file.schema,
        file.content_checksum,
    ]  # fmt: skip


def _read_file(read: Any, root: str) -> FileEntry:
    path, *rest = read
    return FileEntry(_lengthen(path, root), *rest)


def _block(block: Block, places: Mapping[str, int], kinds: Mapping[str, DataType]) -> list[Any]:
    return [
        [[places[part.path], part.first_row_group, part.row_groups, part.first_row, part.rows] for part in block.parts],
        block.bytes,
        [_statistics(each, kinds[each.column]) for each in block.statistics],
        [[each.column, _text(each.value, kinds[each.column])] for each in block.partition],
        block.bucket,
        block.gone,
    ]


def _read_block(number: int, read: Any, files: tuple[FileEntry, ...], kinds: Mapping[str, DataType]) -> Block:
    places, size, statistics, partition, bucket, gone = read
    parts = tuple(_read_part(part, files) for part in places)
    return Block(
        id=number,
        parts=parts,
        rows=sum(part.rows for part in parts) - gone,
        bytes=size,
        statistics=tuple(_read_statistics(each, kinds[each[0]]) for each in statistics),
        partition=tuple(PartitionValue(column, _value(text, kinds[column])) for column, text in partition),
        bucket=bucket,
        gone=gone,
    )


def _read_part(read: Any, files: tuple[FileEntry, ...]) -> FilePart:
    place, first_row_group, row_groups, first_row, rows = read
    return FilePart(files[place].path, first_row_group, row_groups, first_row, rows, files[place].rows)


def _statistics(each: ColumnStatistics, kind: DataType) -> list[Any]:
    return [each.column, _text(each.low, kind), _text(each.high, kind), each.nulls, _text(each.high_number, kind)]


def _read_statistics(read: Any, kind: DataType) -> ColumnStatistics:
    column, low, high, nulls, high_number = read
    return ColumnStatistics(column, _value(low, kind), _value(high, kind), nulls, _value(high_number, kind))


def _text(value: Any, kind: DataType) -> Any:
    """A value as JSON has it: numbers, booleans and strings as they are, all else as text."""
    if value is None:
        return None
    if isinstance(kind, types.Decimal):
        return str(value)
    return value.isoformat() if kind in _READ_TEXT else value


def _value(text: Any, kind: DataType) -> Any:
    if text is None:
        return None
    if isinstance(kind, types.Decimal):
        return Decimal(text)
    read = _READ_TEXT.get(kind)
    return read(text) if read else text


_READ_TEXT: dict[DataType, Callable[[str], Any]] = {
    types.DATE: dt.date.fromisoformat,
    types.TIMESTAMP: dt.datetime.fromisoformat,
    types.TIMESTAMP_NTZ: dt.datetime.fromisoformat,
}


def _shorten(path: str, root: str) -> str:
    return _INSIDE + os.path.relpath(path, root) if path.startswith(root + os.sep) else path


def _lengthen(path: str, root: str) -> str:
    return f"{root}{os.sep}{path.removeprefix(_INSIDE)}" if path.startswith(_INSIDE) else path
