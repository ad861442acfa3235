"""Tables as JSON text and back, with a checksum.

Law: `decode(encode(table)) == table`; damaged text is an error, never another table.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from nearly.engine.storage.blocks import Block, ColumnStatistics, FilePart, PartitionValue
from nearly.engine.storage.clustering import Clustering
from nearly.engine.storage.footers import checksum_of
from nearly.engine.storage.layouts import Layout, Origin, Table
from nearly.engine.storage.manifest import FileEntry, Manifest
from nearly.errors import EngineError, NearlyError
from nearly.plan import types
from nearly.plan.schema import SchemaColumn
from nearly.plan.types import DataType

FORMAT = 2
_INSIDE = "./"
"""Starts paths inside the catalog, so that the catalog can be moved."""


def encode(table: Table, root: str) -> str:
    """The table as text; `root` is the directory of the catalog."""
    body = json.dumps(_table(table, root), ensure_ascii=False, separators=(",", ":"))
    return json.dumps({"format": FORMAT, "checksum": checksum_of(body.encode()), "table": body}, ensure_ascii=False)


def decode(text: str, root: str) -> Table:
    """The table of a text; `EngineError` when it is not what `encode` wrote."""
    try:
        outer = json.loads(text)
        if outer["format"] != FORMAT:
            raise EngineError(f"it has format {outer['format']}, this version of nearly reads format {FORMAT}")
        if checksum_of(outer["table"].encode()) != outer["checksum"]:
            raise EngineError("its checksum does not match")
        return _read_table(json.loads(outer["table"]), root)
    except NearlyError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise EngineError(f"it is not the text of a table ({type(error).__name__}: {error})") from error


def _table(table: Table, root: str) -> dict[str, Any]:
    kinds = {column.name: column.type for column in table.columns}
    return {
        "name": table.name,
        "columns": [[column.name, column.type.name, column.nullable] for column in table.columns],
        "key": table.key,
        "content": table.content,
        "version": table.version,
        "origin": [table.origin.kind, table.origin.locations],
        "layouts": [_layout(layout, kinds, root) for layout in table.layouts],
    }


def _read_table(read: Any, root: str) -> Table:
    columns = tuple(SchemaColumn(name, types.from_name(kind), nullable) for name, kind, nullable in read["columns"])
    kinds = {column.name: column.type for column in columns}
    layouts = tuple(_read_layout(layout, kinds, root) for layout in read["layouts"])
    kind, locations = read["origin"]
    return Table(
        read["name"], columns, tuple(read["key"]), layouts, read["content"], Origin(kind, tuple(locations)), read["version"]
    )


def _layout(layout: Layout, kinds: Mapping[str, DataType], root: str) -> dict[str, Any]:
    places = {file.path: number for number, file in enumerate(layout.manifest.files)}
    clustering = layout.clustering
    return {
        "name": layout.name,
        "path": _shorten(layout.path, root),
        "shuffled": layout.shuffled,
        "clustering": clustering and [clustering.kind, clustering.columns, clustering.buckets],
        "files": [_file(file, root) for file in layout.manifest.files],
        "blocks": [_block(block, places, kinds) for block in layout.blocks],
    }


def _read_layout(read: Any, kinds: Mapping[str, DataType], root: str) -> Layout:
    files = tuple(FileEntry(_lengthen(path, root), *rest) for path, *rest in read["files"])
    clustering = None
    if read["clustering"]:
        kind, columns, buckets = read["clustering"]
        clustering = Clustering(kind, tuple(columns), buckets)
    blocks = tuple(_read_block(number, block, files, kinds) for number, block in enumerate(read["blocks"]))
    return Layout(read["name"], _lengthen(read["path"], root), Manifest(files), blocks, clustering, read["shuffled"])


def _file(file: FileEntry, root: str) -> list[Any]:
    return [
        _shorten(file.path, root), file.bytes, file.rows, file.footer_checksum, file.modified_ns, file.schema,
        file.content_checksum,
    ]  # fmt: skip


def _block(block: Block, places: Mapping[str, int], kinds: Mapping[str, DataType]) -> list[Any]:
    return [
        [[places[part.path], part.first_row_group, part.row_groups, part.first_row, part.rows] for part in block.parts],
        block.bytes,
        [_statistics(each, kinds[each.column]) for each in block.statistics],
        [[each.column, _text(each.value, kinds[each.column])] for each in block.partition],
        block.bucket,
    ]


def _read_block(number: int, read: Any, files: tuple[FileEntry, ...], kinds: Mapping[str, DataType]) -> Block:
    places, size, statistics, partition, bucket = read
    parts = tuple(_read_part(part, files) for part in places)
    return Block(
        id=number,
        parts=parts,
        rows=sum(part.rows for part in parts),
        bytes=size,
        statistics=tuple(_read_statistics(each, kinds[each[0]]) for each in statistics),
        partition=tuple(PartitionValue(column, _value(text, kinds[column])) for column, text in partition),
        bucket=bucket,
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
