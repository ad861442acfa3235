"""Tables that follow streams, effectively once: a batch is known by the name of its stream and its number, also after a restart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearly.engine.changes.batch_files import Change
from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.changes.operations import Changer
from nearly.engine.changes.quarantine import put_aside
from nearly.engine.changes.stream_rows import DELETE, sorted_rows
from nearly.engine.changes.transactions import Transaction
from nearly.engine.engine import Engine
from nearly.engine.spark.kafka_source import kafka_stream
from nearly.engine.spark.stream_follow import Following, follow_stream
from nearly.engine.storage.catalog import CHECKPOINTS
from nearly.engine.storage.layouts import Table

OP = "nearly_op"
LONGEST_SHOWN = 2000


class Follower:
    """Takes the batches of one stream into one table."""

    def __init__(self, engine: Engine, table: str, name: str, op: str | None) -> None:
        self._engine, self._table, self._name, self._op = engine, table, name, op

    def follow(self, stream: Any, checkpoint: Path | None, every: str) -> Following:
        """Take the rows of a streaming DataFrame as they come."""
        return follow_stream(stream, checkpoint or self._checkpoint, self.take, every)

    def follow_kafka(
        self, servers: str, topics: Sequence[str], settings: Mapping[str, str], checkpoint: Path | None, every: str
    ) -> Following:
        """Take the records of Kafka topics: JSON objects with the table's columns; one without a value deletes its key."""
        stream = kafka_stream(self._engine.cluster.spark, servers, topics, settings)
        return follow_stream(stream, checkpoint or self._checkpoint, self.take_records, every)

    def take(self, rows: pa.Table, number: int) -> None:
        """One batch, once; what cannot be used of it is put aside."""
        self._taken(number, rows, self._op, [])

    def take_records(self, records: pa.Table, number: int) -> None:
        """One batch of records in order of time."""
        ordered = records.sort_by(
            [("timestamp", "ascending"), ("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")]
        )
        table = self._engine.catalog.table(self._table)
        rows, poison = parsed(table, ordered["key"].to_pylist(), ordered["value"].to_pylist(), self._op)
        self._taken(number, rows, OP, poison)

    def _taken(self, number: int, rows: pa.Table, op: str | None, poison: list[dict[str, Any]]) -> None:
        def find(changer: Changer) -> Change:
            found = sorted_rows(changer, rows, op)
            put_aside(self._engine.catalog.directory(self._table), self._name, number, [*poison, *found.poison])
            return changer.mixed("stream", found.inserts, found.upserts, found.deletes)

        with Transaction(self._engine) as transaction:
            transaction.change(self._table, find, (self._name, number))

    @property
    def _checkpoint(self) -> Path:
        return self._engine.catalog.directory(self._table) / CHECKPOINTS / self._name


def parsed(
    table: Table, keys: Sequence[bytes | None], values: Sequence[bytes | None], op: str | None
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """The rows of good records with what each is, in order, and the bad ones with the reason."""
    schema = arrow_schema(table.columns)
    good: list[dict[str, Any]] = []
    kinds: list[str] = []
    poison: list[dict[str, Any]] = []
    for key, value in zip(keys, values, strict=True):
        try:
            record, kind = _record(table, key, value, op)
            good.append({field.name: _typed(record[field.name], field) for field in schema})
            kinds.append(kind)
        except (ValueError, TypeError, KeyError, pa.ArrowException) as trouble:
            shown = (value if value is not None else key or b"").decode("utf-8", "replace")[:LONGEST_SHOWN]
            poison.append({"reason": str(trouble), "record": shown})
    rows = pa.Table.from_pylist(good, schema=schema)
    return rows.append_column(OP, pa.array(kinds, pa.string())), poison


def _record(table: Table, key: bytes | None, value: bytes | None, op: str | None) -> tuple[dict[str, Any], str]:
    """A record by the table's own spelling of its columns, and what it does."""
    deletes = value is None
    read = json.loads((key if deletes else value) or b"")
    if not isinstance(read, dict):
        if not (deletes and len(table.key) == 1):
            raise TypeError("not a JSON object")
        read = {table.key[0]: read}
    given = {name.lower(): each for name, each in read.items()}
    kind = DELETE if deletes else str(given.pop(op.lower(), "insert") if op is not None else "upsert" if table.key else "insert")
    names = {column.name.lower(): column.name for column in table.columns}
    if extra := given.keys() - names.keys():
        raise ValueError(f"unknown column {min(extra)!r}; known are {', '.join(names.values())}")
    needed = [name.lower() for name in table.key] if kind.lower() == DELETE and table.key else list(names)
    if missing := set(needed) - given.keys():
        raise ValueError(f"column {min(missing)!r} is missing")
    return {name: given.get(lowered) for lowered, name in names.items()}, kind


def _typed(value: Any, field: pa.Field) -> Any:
    """A value of JSON as the column has it; texts become dates, times and decimals, nothing else changes its kind."""
    if value is None:
        return None
    if isinstance(value, str) and not pa.types.is_string(field.type):
        if not (pa.types.is_date(field.type) or pa.types.is_timestamp(field.type) or pa.types.is_decimal(field.type)):
            raise TypeError(f"column {field.name!r} must be {field.type}, not {value!r}")
        if pa.types.is_timestamp(field.type) and field.type.tz is not None and not value.rstrip().endswith(("Z", "z")):
            value = value if "+" in value[10:] or "-" in value[10:] else value + "Z"
        return pa.array([value], pa.string()).cast(field.type)[0].as_py()
    odd = isinstance(value, float) and pa.types.is_integer(field.type) and not value.is_integer()
    if (
        odd
        or isinstance(value, bool) != pa.types.is_boolean(field.type)
        or isinstance(value, str) != pa.types.is_string(field.type)
    ):
        raise TypeError(f"column {field.name!r} must be {field.type}, not {value!r}")
    if pa.types.is_decimal(field.type):
        return pa.array([str(value)], pa.string()).cast(field.type)[0].as_py()
    return pa.array([value], field.type)[0].as_py()
