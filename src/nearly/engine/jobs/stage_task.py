"""Inside a Spark task: the native engine runs a fragment on the task's share of the data and hands Arrow back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa

from nearly.engine.native.engine import Fragment, native
from nearly.engine.native.failures import packed
from nearly.engine.native.payload import ERROR, decode, payload_row, send


class StageTask:
    """The function of a Spark task: picklable, called with the batches of its partition."""

    def __init__(self, fragment: Fragment, reads_payloads: bool) -> None:
        self.fragment = fragment
        self.reads_payloads = reads_payloads

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for slot, inputs in self._slots(batches):
            yield from self._run(slot, inputs)

    def _slots(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, dict[str, list[Any]]]]:
        """The slots this task serves, with what other stages sent to each."""
        if not self.reads_payloads:
            for batch in batches:
                for slot in batch.column(0).to_pylist():
                    yield slot, {}
            return
        received: dict[int, dict[str, list[Any]]] = {}
        for batch in batches:
            for row in batch.to_pylist():
                tables = received.setdefault(row["slot"], {}).setdefault(row["source"], [])
                tables.append(decode(row["payload"]) if row["source"] != ERROR else row["payload"])
        yield from received.items()

    def _run(self, slot: int, received: dict[str, list[Any]]) -> Iterator[pa.RecordBatch]:
        if ERROR in received:
            for payload in received[ERROR]:
                yield payload_row(ERROR, slot, payload)
            return
        fragment = self.fragment
        try:
            engine = native()
            inputs = {name: pa.concat_tables(tables) for name, tables in received.items()}
            table = engine.run_fragment(fragment, slot, inputs)
        except duckdb.Error as trouble:
            yield payload_row(ERROR, slot, packed(trouble))
            return
        yield from send(table, fragment.output)
