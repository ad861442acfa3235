"""The product without Spark: its engine, its plans, its stages and its answers, with Spark's tasks run in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from nearly.engine.catalog import Catalog
from nearly.engine.cluster import Cluster, Sites
from nearly.engine.exact import Engine

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class _Frame:
    """As many rows as tasks, each of which is then what its task makes of it."""

    tasks: int
    task: Task | None = None

    def mapInArrow(self, task: Task, schema: str) -> _Frame:  # noqa: N802, ARG002  Spark's name
        return _Frame(self.tasks, task)

    def toArrow(self) -> pa.Table:  # noqa: N802  Spark's name
        numbers = pa.RecordBatch.from_pydict({"id": pa.array(range(self.tasks), pa.int64())})
        return pa.Table.from_batches([numbers] if self.task is None else list(self.task(iter([numbers]))))


class _Spark:
    """What a progressive query asks of Spark."""

    def addTag(self, tag: str) -> None:  # noqa: N802  Spark's name
        """Nothing can be cancelled."""

    def removeTag(self, tag: str) -> None:  # noqa: N802  Spark's name
        """Nothing can be cancelled."""

    def range(self, first: int, end: int, step: int, parts: int) -> _Frame:  # noqa: ARG002  Spark's arguments
        return _Frame(end - first)


class _OneProcess:
    """A cluster of one site with one core: this process."""

    sites = Sites(1, 1)
    time_zone = "UTC"
    ansi = True

    def __init__(self) -> None:
        self.spark: Any = _Spark()
        self.given = self.spark

    def close(self) -> None:
        """Nothing was started."""


def engine_without_spark(directory: Path) -> Engine:
    """An engine whose catalog is in a directory."""
    return Engine(cast("Cluster", _OneProcess()), Catalog(directory), 2048)
