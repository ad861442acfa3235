"""A cursor of PEP 249: it runs a statement and hands out the rows of its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import pyarrow as pa

from nearly.answer import Answer
from nearly.dbapi.exceptions import InterfaceError, ProgrammingError, as_dbapi
from nearly.looking import is_look, look
from nearly.plan.types import from_arrow

if TYPE_CHECKING:
    from nearly.dbapi.connection import Connection

Row: TypeAlias = tuple[Any, ...]
Description: TypeAlias = tuple[tuple[str, str, None, None, int | None, int | None, bool], ...]
BATCH_ROWS = 10_000
"""Rows that are made into values of Python at a time."""


class Cursor:
    """One statement after the other, and the rows of the last one. `answer` is what nearly itself has to say of them."""

    def __init__(self, connection: Connection) -> None:
        self._connection: Connection | None = connection
        self.arraysize = 1
        self.answer: Answer | None = None
        self._rows: Iterator[Row] | None = None
        self._table: pa.Table | None = None
        self._count = -1
        self.rownumber: int | None = None

    @property
    def connection(self) -> Connection:
        """Where it was made."""
        if self._connection is None:
            raise InterfaceError("the cursor is closed")
        return self._connection

    @property
    def description(self) -> Description | None:
        """Name, type, and, of decimals, precision and scale of each column; None where there are no rows."""
        if self._table is None:
            return None
        return tuple(_described(field) for field in self._table.schema)

    @property
    def rowcount(self) -> int:
        """Rows of the answer, or that a statement inserted, updated and deleted; -1 before there is one."""
        return self._count

    def execute(self, operation: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> Self:
        """Run a statement; `?` takes the next of a sequence, `:name` one of a mapping."""
        session = self.connection.session
        self._reset()
        with as_dbapi():
            if is_look(operation):
                self._take(look(session, operation))
                return self
            done = session.execute(operation, args=parameters or None)
        if isinstance(done, Answer):
            self.answer = done
            self._take(done.table)
        else:
            self.connection.changed()
            parts = [getattr(done, name, None) for name in ("inserted", "updated", "deleted")]
            self._count = sum(int(part) for part in parts if part is not None)
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Sequence[Any] | Mapping[str, Any]]) -> Self:
        """Run a statement that changes a table with each of several lists of values; one that gives rows is an error."""
        count = 0
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
            if self._table is not None:
                self._reset()
                raise ProgrammingError("executemany is for statements that change a table; a query is given to execute")
            count += max(0, self._count)
        self._reset()
        self._count = count
        return self

    def fetchone(self) -> Row | None:
        """The next row; None after the last."""
        row = next(self._left, None)
        if row is not None and self.rownumber is not None:
            self.rownumber += 1
        return row

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows, `arraysize` of them or as many as are asked for."""
        wanted = self.arraysize if size is None else size
        found: list[Row] = []
        while len(found) < wanted and (row := self.fetchone()) is not None:
            found.append(row)
        return found

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return list(iter(self.fetchone, None))

    def fetch_arrow_table(self) -> pa.Table:
        """All rows of the answer as an Arrow table, whatever was fetched before."""
        _ = self._left
        return self._table

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def setinputsizes(self, sizes: Any) -> None:
        """Nothing: values tell their size."""

    def setoutputsize(self, size: Any, column: Any = None) -> None:
        """Nothing: values come whole."""

    def close(self) -> None:
        """Forget the rows; the cursor cannot be used any more."""
        _ = self.connection
        self._reset()
        self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._connection is not None:
            self.close()

    @property
    def _left(self) -> Iterator[Row]:
        _ = self.connection.session
        if self._rows is None:
            raise ProgrammingError("there are no rows to fetch; execute a query first")
        return self._rows

    def _take(self, table: pa.Table | None) -> None:
        if table is None:
            raise ProgrammingError("the statement shows nothing")
        self._table, self._count, self.rownumber = table, table.num_rows, 0
        self._rows = _rows(table)

    def _reset(self) -> None:
        self.answer, self._table, self._rows, self._count, self.rownumber = None, None, None, -1, None


def _rows(table: pa.Table) -> Iterator[Row]:
    for batch in table.to_batches(BATCH_ROWS):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _described(field: pa.Field) -> tuple[str, str, None, None, int | None, int | None, bool]:
    decimal = pa.types.is_decimal(field.type)
    precision, scale = (field.type.precision, field.type.scale) if decimal else (None, None)
    return field.name, str(from_arrow(field.type)), None, None, precision, scale, True
