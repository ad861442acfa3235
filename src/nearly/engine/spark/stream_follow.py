"""Following a Spark stream: every micro-batch is handed to a function as an Arrow table with its number.

`foreachBatch` may hand over a batch again after a crash; its number and the stream's name tell the function that it has seen it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearly.engine import spark_names
from nearly.engine.spark.cluster import is_connect
from nearly.errors import EngineError, SchemaError, Unsupported

Take = Callable[[pa.Table, int], None]


class Following:
    """A stream that is being followed."""

    def __init__(self, query: Any) -> None:
        self._query = query

    @property
    def active(self) -> bool:
        return bool(self._query.isActive)

    def drain(self) -> None:
        """Wait until everything that is there now was taken; an error in taking it is raised here."""
        try:
            self._query.processAllAvailable()
        except spark_names.PySparkException as trouble:
            raise EngineError(f"following the stream failed: {trouble}") from trouble

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the stream; whether it ended."""
        try:
            return (
                bool(self._query.awaitTermination(seconds)) if seconds is not None else bool(self._query.awaitTermination() or True)
            )
        except spark_names.PySparkException as trouble:
            raise EngineError(f"following the stream failed: {trouble}") from trouble

    def stop(self) -> None:
        """Stop after the batch that is being taken."""
        self._query.stop()


def follow_stream(stream: Any, checkpoint: Path, take: Take, every: str = "0 seconds") -> Following:
    """Start following a streaming DataFrame."""
    if not getattr(stream, "isStreaming", False):
        raise SchemaError("follow() takes a streaming DataFrame, such as spark.readStream...load(); for a table use insert()")
    if is_connect(stream.sparkSession):
        raise Unsupported("following a stream through Spark Connect: its batches are handled on the server; use a classic session")

    def handle(frame: Any, number: int) -> None:
        take(frame.toArrow(), int(number))

    writer = stream.writeStream.foreachBatch(handle).option("checkpointLocation", str(checkpoint)).trigger(processingTime=every)
    try:
        return Following(writer.start())
    except spark_names.PySparkException as trouble:
        raise EngineError(f"the stream cannot be followed: {trouble}") from trouble
