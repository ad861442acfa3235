"""A population as a table of the product, and the answers that progressive queries over it give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.sampling.populations import Population
from nearly.answer import Answer
from nearly.engine.engine import Engine
from nearly.engine.spark.cluster import Cluster
from nearly.engine.spark.process import SparkProcess
from nearly.engine.storage.blocks import BlockTarget
from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.registration import register_parquet
from nearly.engine.stream.task import Pace
from nearly.engine.stream.units import Units, units_of
from nearly.errors import EngineError
from nearly.progressive.run import Request, Run

NEVER_REACHED = 1e-12
"""An error to stop at that no answer has, so that all of them are given."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A table `t` whose blocks are the population's, known to an engine."""

    engine: Engine

    @classmethod
    def of(cls, population: Population, directory: Path) -> Stored:
        """Write the population, a row group for each of its blocks."""
        y = pa.array(population.y, mask=np.isnan(population.y))
        rows = pa.table({"x": population.x, "y": y, "k": population.key, "tag": population.tag})
        path = directory / "t.parquet"
        with pq.ParquetWriter(path, rows.schema) as writer:
            for first, end in pairwise(population.edges):
                writer.write_table(rows.slice(first, end - first))
        engine = Engine(Cluster(SparkProcess("local[1]"), lazy=True), Catalog(directory / "catalog"), 2048)  # Spark is never needed
        register_parquet(engine.catalog, "t", path, target=BlockTarget(1, 1))
        return cls(engine)

    def orders(self, seeds: int) -> list[Units]:
        """For each seed the units in which queries read the table, in their order."""
        cut = Run(self.engine, self.engine.prepare("SELECT sum(y) AS `sum` FROM t", "native"), Request()).cut()
        if cut is None:
            raise EngineError("a sum is not streamed")
        tables = [self.engine.catalog.table(scan.table) for scan in cut.scans]
        return [units_of(cut, tables, seed) for seed in range(seeds)]

    def answers(self, text: str, seed: int, counts: Sequence[int], *, lasting: bool = False) -> list[Answer]:
        """The answers of a progressive query after so many units each; `lasting` ones have intervals that allow stopping."""
        sizes = tuple(int(size) for size in np.diff(counts, prepend=0))
        run = Run(self.engine, self.engine.prepare(text, "native"), Request(seed=seed, pace=Pace(sizes=sizes)))
        run.goal = NEVER_REACHED if lasting else None
        found = list(islice(run.answers(), len(counts)))
        run.stop()
        if [answer.stats.get("units") for answer in found] != list(counts):
            raise EngineError(f"answers after {[answer.stats.get('units') for answer in found]} units instead of {list(counts)}")
        return found
