"""Tables that follow streams, effectively once: a batch is known by the name of its stream and its number, also after a restart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearly.engine.changes.batch_files import Change
from nearly.engine.changes.operations import Changer
from nearly.engine.changes.streams.quarantine import put_aside
from nearly.engine.changes.streams.records import OP, parsed
from nearly.engine.changes.streams.stream_rows import Poison, Unfit, sorted_rows
from nearly.engine.changes.transactions import Transaction
from nearly.engine.engine import Engine
from nearly.engine.spark.stream_follow import Following, follow_stream
from nearly.engine.storage.catalog import CHECKPOINTS
from nearly.engine.storage.layouts import Table


@dataclass(frozen=True, slots=True)
class Also:
    """What somebody else who follows the table has to say: which rows it cannot take, and what it does after a batch."""

    unfit: Unfit = lambda _: ()
    after: Callable[[], None] = lambda: None


ANYTHING = Also()


class Follower:
    """Takes the batches of one stream into one table; `tidy` looks at the table after each."""

    def __init__(
        self,
        engine: Engine,
        table: str,
        name: str,
        op: str | None,
        also: Also = ANYTHING,
        tidy: Callable[[Table], None] = lambda _: None,
    ) -> None:
        self._engine, self._table, self._name, self._op, self._also, self._tidy = engine, table, name, op, also, tidy

    def follow(self, stream: Any, checkpoint: Path | None, every: str) -> Following:
        """Take the rows of a streaming DataFrame as they come."""
        return follow_stream(stream, checkpoint or self.checkpoint, self.take, every)

    def follow_kafka(
        self, servers: str, topics: Sequence[str], settings: Mapping[str, str], checkpoint: Path | None, every: str
    ) -> Following:
        """Take the records of Kafka topics: JSON objects with the table's columns; one without a value deletes its key."""
        from nearly.engine.spark.kafka_source import kafka_stream  # noqa: PLC0415  only who follows Kafka needs it

        stream = kafka_stream(self._engine.cluster.spark, servers, topics, settings)
        return follow_stream(stream, checkpoint or self.checkpoint, self.take_records, every)

    def take(self, rows: pa.Table, number: int) -> None:
        """One batch, once; what cannot be used of it is put aside."""
        self._taken(number, rows, self._op, [])

    def take_records(self, records: pa.Table, number: int) -> None:
        """One batch of records in order of time."""
        ordered = records.sort_by(
            [("timestamp", "ascending"), ("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")]
        )
        self.take_values(ordered["key"].to_pylist(), ordered["value"].to_pylist(), number)

    def take_values(
        self, keys: Sequence[bytes | None], values: Sequence[bytes | None], number: int, kinds: Sequence[str] | None = None
    ) -> None:
        """One batch of JSON records in their order; `kinds` say what each is, where the records do not."""
        table = self._engine.catalog.table(self._table)
        rows, poison = parsed(table, keys, values, self._op, kinds)
        self._taken(number, rows, OP, poison)

    def _taken(self, number: int, rows: pa.Table, op: str | None, poison: Poison) -> None:
        def find(changer: Changer) -> Change:
            found = sorted_rows(changer, rows, op, self._also.unfit)
            put_aside(self._engine.catalog.directory(self._table), self._name, number, [*poison, *found.poison])
            return changer.mixed("stream", found.inserts, found.upserts, found.deletes)

        with Transaction(self._engine) as transaction:
            table = transaction.change(self._table, find, (self._name, number))
        self._tidy(table)
        self._also.after()

    @property
    def checkpoint(self) -> Path:
        """Where Spark remembers how far it has read, unless it is told another place."""
        return self._engine.catalog.directory(self._table) / CHECKPOINTS / self._name
