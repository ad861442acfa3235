"""Users' Python functions as the engines call them: Arrow arrays in, one Arrow array out, and errors that name the function.

An adapter travels to the workers as bytes and is called by the native engine, or by Spark, with the same meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pyarrow as pa

from nearly.engine import spark_names
from nearly.errors import EngineError

_FAILURE = re.compile(r"(Python function '.*?' failed: [^\n]*)")


class FunctionFailed(Exception):
    """A user's function raised, or gave something that does not fit what it was declared to give."""


def function_failure(text: str) -> EngineError | None:
    """The error of a user's function inside an engine's message, if there is one."""
    found = _FAILURE.search(text)
    return None if found is None else EngineError(found.group(1))


@dataclass(frozen=True, slots=True)
class ScalarAdapter:
    """A function from Arrow arrays, one per argument, to an Arrow array of the same length; it sees nulls."""

    name: str
    function: Callable[..., Any]
    returns: pa.DataType

    def __call__(self, *columns: pa.Array) -> pa.Array:
        given = [_combined(column) for column in columns]
        try:
            found = _array(self.function(*given), self.returns)
            if given and len(found) != len(given[0]):
                raise ValueError(f"it gave {len(found)} values for {len(given[0])} rows")  # noqa: TRY301  named below
        except Exception as trouble:
            raise FunctionFailed(_message(self.name, trouble)) from trouble
        return found


@dataclass(frozen=True, slots=True)
class TableAdapter:
    """A function from Arrow tables to Arrow tables, called with lists of rows: one list is one piece.

    `whole` functions are called with no rows, too; the others give no rows for no rows.
    """

    name: str
    function: Callable[[pa.Table], Any]
    takes: pa.Schema
    gives: pa.Schema
    whole: bool

    def __call__(self, pieces: pa.Array) -> pa.ListArray:
        """The native engine's call: lists of structs with the fields c0, c1, ... in, such lists out."""
        lists = _combined(pieces)
        made = [self.mapped(self._rows(lists[place].values)) for place in range(len(lists))]
        offsets = [0, *accumulate(table.num_rows for table in made)]
        together = pa.concat_tables([*made, self.gives.empty_table()]).combine_chunks()
        arrays = [_combined(column) for column in together.columns]
        rows = pa.StructArray.from_arrays(arrays, names=[f"c{place}" for place in range(len(arrays))])
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), rows)

    def mapped(self, table: pa.Table) -> pa.Table:
        """What the function makes of a piece."""
        if not table.num_rows and not self.whole:
            return self.gives.empty_table()
        try:
            return _table(self.function(table), self.gives)
        except Exception as trouble:
            raise FunctionFailed(_message(self.name, trouble)) from trouble

    def _rows(self, rows: pa.StructArray | None) -> pa.Table:
        if rows is None:
            return self.takes.empty_table()
        return pa.Table.from_arrays(rows.flatten(), names=self.takes.names).cast(self.takes)


@dataclass(frozen=True, slots=True)
class Travelling:
    """A function on its way to a native engine: its name there, the type it gives in DuckDB's words, and its adapter as bytes."""

    symbol: str
    returns: str
    payload: bytes

    def adapter(self) -> Any:
        try:
            return spark_names.cloudpickle.loads(self.payload)
        except Exception as trouble:
            raise FunctionFailed(_message(self.symbol, trouble)) from trouble


def _message(name: str, trouble: Exception) -> str:
    return f"Python function {name!r} failed: {type(trouble).__name__}: {trouble}"


def _combined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def _array(found: Any, type_: pa.DataType) -> pa.Array:
    """What a function gave as an array of its declared type."""
    if isinstance(found, pa.ChunkedArray | pa.Array):
        array = _combined(found)
        return array if array.type == type_ else array.cast(type_)
    return pa.array(found, type_)


def _table(found: Any, schema: pa.Schema) -> pa.Table:
    """What a function gave as a table of its declared columns."""
    if isinstance(found, pa.RecordBatch):
        found = pa.Table.from_batches([found])
    elif isinstance(found, Mapping):
        found = pa.table(dict(found))
    if not isinstance(found, pa.Table):
        raise TypeError(f"it gave {type(found).__name__}, not an Arrow table")
    missing = [name for name in schema.names if name not in found.column_names]
    if missing:
        raise ValueError(f"it gave no column {', '.join(missing)}")
    return found.select(schema.names).cast(schema)
