"""The indexes of keys that a session keeps: built where that pays, dropped where memory ends."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import pyarrow as pa

from nearly.engine.costs import Costs
from nearly.engine.native.key_index import KeyIndex, Read, Run
from nearly.engine.native.reading import FILE, ROW
from nearly.engine.storage.layouts import Layout, Table

MOST_BYTES = 256 << 20
"""All indexes of a session together; of a key that is a number, 16 million rows. While one is made, it takes some times as much."""

ROW_BYTES = 16
"""A row of an index takes at least so many."""

REMEMBERED = 1_000
"""Layouts without an index of which it is known how long their keys were read."""


@dataclass(frozen=True, slots=True)
class KeyReading:
    """How keys of a layout are found without an index, read for one, and SQL is run."""

    scan: Callable[[], pa.Table]
    read: Read
    run: Run


class KeyIndexes:
    """Finds rows by their keys. Law: with an index or without, the same rows are found.

    An index is made when looking for keys in the files has taken as long as making it would have: never much more than what is
    best, however many look-ups follow. What is there is brought up to date, also when all files were replaced.
    """

    def __init__(self, costs: Costs | None = None) -> None:
        self._costs = costs or Costs()
        self._kept: OrderedDict[Hashable, KeyIndex] = OrderedDict()
        self._spent: OrderedDict[Hashable, float] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """The memory that all indexes take."""
        with self._lock:
            return sum(each.bytes for each in self._kept.values())

    def find(self, table: Table, layout: Layout, keys: pa.Table, reading: KeyReading) -> pa.Table:
        """The keys given that a layout of a table has, with the positions of their rows."""
        schema = keys.schema.remove_metadata()
        name = (table.plain_name.lower(), layout.name, tuple((field.name, str(field.type)) for field in schema))
        index = None if any(column.null_count for column in keys.columns) else self._index(name, layout, schema, reading)
        if index is not None:
            return index.find(keys, reading.run)
        began = time.perf_counter()
        found = reading.scan()
        self._note(name, time.perf_counter() - began)
        return found.cast(pa.schema([*schema, found.schema.field(FILE), found.schema.field(ROW)]))

    def _index(self, name: Hashable, layout: Layout, schema: pa.Schema, reading: KeyReading) -> KeyIndex | None:
        """The index of a layout as it is now, where it has one or is to have one."""
        with self._lock:
            known = self._kept.get(name)
            spent = self._spent.get(name, 0.0)
        rows = layout.manifest.rows
        if rows * ROW_BYTES > MOST_BYTES:
            self._drop(name)
            return None
        if known is None and self._costs.indexing(rows, len(schema)) > spent:
            return None
        made = (known or KeyIndex(schema)).of(layout, reading.read, reading.run)
        self._keep(name, made)
        return made

    def _keep(self, name: Hashable, index: KeyIndex) -> None:
        """Keep an index in place of the last one of its name; those not used for longest make room."""
        with self._lock:
            self._spent.pop(name, None)
            self._kept.pop(name, None)
            self._kept[name] = index
            while sum(each.bytes for each in self._kept.values()) > MOST_BYTES:
                dropped, _ = self._kept.popitem(last=False)
                self._spent[dropped] = float("-inf") if dropped == name else 0.0  # one that is too large is not made again

    def _drop(self, name: Hashable) -> None:
        with self._lock:
            self._kept.pop(name, None)

    def _note(self, name: Hashable, seconds: float) -> None:
        with self._lock:
            self._spent[name] = self._spent.pop(name, 0.0) + seconds
            if len(self._spent) > REMEMBERED:
                self._spent.popitem(last=False)
