"""Rows that travel through Spark: few and large, each a whole Arrow table (IPC bytes) for one slot of the next stage.

Spark moves, retries and orders them without ever looking inside, so no row is converted in the JVM.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from nearly.algebra import arrow as pc

PAYLOAD_SCHEMA = "source string, slot int, payload binary"
ERROR = "error"
"""The source of a row whose payload is the text of a failure: raised in the driver, not retried by Spark."""

CHUNK_BYTES = 384 << 10
"""Arrow bytes in one row. Larger byte arrays are "humongous" to the JVM's collector when its heap is small, and thrash it."""

SLOT = "_slot"
"""The last column of a result that is split by a hash: the slot of each row."""


@dataclass(frozen=True, slots=True)
class StageOutput:
    """What a fragment hands on: under which name, to how many slots, split by a hash of `keys` or, without keys, to all."""

    name: str
    slots: int
    keys: tuple[str, ...] = ()


def send(table: pa.Table, output: StageOutput) -> Iterator[pa.RecordBatch]:
    """The table as rows for the next stage: every slot gets at least one, maybe empty, so that it runs and knows the schema."""
    if not output.keys:
        for chunk in _chunks(table):
            payload = encode(chunk)
            for slot in range(output.slots):
                yield payload_row(output.name, slot, payload)
        return
    slots = table.column(table.num_columns - 1)
    rows = table.drop_columns([table.column_names[-1]])
    for slot in range(output.slots):
        for chunk in _chunks(rows.filter(pc.equal(slots, slot)).combine_chunks()):
            yield payload_row(output.name, slot, encode(chunk))


def _chunks(table: pa.Table) -> Iterator[pa.Table]:
    rows = max(1, int(table.num_rows * CHUNK_BYTES / max(table.nbytes, 1)))
    for start in range(0, max(table.num_rows, 1), rows):
        yield table.slice(start, rows)


def payload_row(source: str, slot: int, payload: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([source], pa.string()), pa.array([slot], pa.int32()), pa.array([payload], pa.binary())],
        names=["source", "slot", "payload"],
    )


_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def encode(table: pa.Table) -> bytes:
    """Arrow IPC bytes of a table. Law: `decode(encode(t)) == t`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table)
    payload: bytes = sink.getvalue().to_pybytes()
    return payload


def decode(payload: bytes) -> pa.Table:
    return pa.ipc.open_stream(payload).read_all()
