"""What clients send, as something that has columns, takes parameters and gives rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pg_mimic import Portal, ResultColumn, Statement
from pg_mimic.session import drain_rows

from nearly.errors import NearlyError
from nearly.web.wire.failures import told

Row = tuple[Any, ...]
Made = tuple[list[ResultColumn], Iterable[Row]]


class KnownStatement(Statement):
    """A statement whose effect is known: it gives rows that are there, or none, and may do something when it is executed."""

    def __init__(
        self,
        tag: str,
        columns: list[ResultColumn] | None = None,
        given: Iterable[Row] = (),
        effect: Callable[[], object] | None = None,
    ) -> None:
        self.sql = tag
        self.param_oids: list[int | None] = []
        self._columns = columns
        self._rows = list(given)
        self.effect = effect

    async def describe(self) -> list[ResultColumn] | None:
        return self._columns

    def bind(self, params: list[Any]) -> Portal:  # noqa: ARG002  it takes none
        async def make() -> Iterable[Row]:
            if self.effect is not None:
                self.effect()
            return self._rows

        return PortionedRows(make)


class Asked(Statement):
    """A statement that has to be run: `shape` tells its columns before, `run` its rows for the parameters it is bound to."""

    def __init__(
        self, tag: str, types: list[int | None], shape: Callable[[], Awaitable[list[ResultColumn] | None]],
        run: Callable[[list[Any]], Awaitable[Iterable[Row]]],
    ) -> None:  # fmt: skip
        self.sql = tag
        self.param_oids = types
        self._shape = shape
        self._run = run
        self._columns: list[ResultColumn] | None = None
        self._known = False

    async def describe(self) -> list[ResultColumn] | None:
        if not self._known:
            self._columns = await self._shape()
            self._known = True
        return self._columns

    def bind(self, params: list[Any]) -> Portal:
        return PortionedRows(lambda: self._run(params))


class PortionedRows(Portal):
    """Rows that are made at the first call and handed out in parts."""

    def __init__(self, make: Callable[[], Awaitable[Iterable[Row]]]) -> None:
        self._make = make
        self._source: AsyncIterator[Row] | None = None

    async def execute(self, max_rows: int) -> tuple[list[Row], bool]:
        if self._source is None:
            try:
                self._source = _each(iter(await self._make()))
            except NearlyError as trouble:
                raise told(trouble) from None
        found, more = await drain_rows(self._source, max_rows)
        return found, more


async def _each(rows: Iterator[Row]) -> AsyncIterator[Row]:
    """Rows one by one; now and then others get their turn."""
    for place, row in enumerate(rows):
        yield row
        if place % 2000 == 1999:
            await asyncio.sleep(0)


def with_bounds(columns: list[ResultColumn], numeric: list[bool]) -> list[ResultColumn]:
    """Each column of numbers followed by its `_low` and `_high`."""
    found = []
    for column, number in zip(columns, numeric, strict=True):
        found.append(column)
        if number:
            found += [ResultColumn(f"{column.name}_low", column.oid), ResultColumn(f"{column.name}_high", column.oid)]
    return found


def bounded(values: pa.Table, low: pa.Table, high: pa.Table, numeric: list[bool]) -> pa.Table:
    """The table that `with_bounds` describes."""
    columns, names = [], []
    for place, (name, number) in enumerate(zip(values.column_names, numeric, strict=True)):
        sides = (values, low, high) if number else (values,)
        columns += [side.column(place) for side in sides]
        names += [name, f"{name}_low", f"{name}_high"][: len(sides)]
    return pa.Table.from_arrays(columns, names=names)
