"""Time: building with Spark, planning, asking, and durable changes, on a table of ten million rows or as many as are asked for."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nearly
from benchmarks.report import Record
from benchmarks.synopses.data import trips
from nearly.synopsis.build.drafting import Shape, plan_tree
from nearly.synopsis.synopsis import Synopsis

LEAVES = 128
BATCHES = 12


@dataclass(frozen=True, slots=True)
class Size:
    """Rows of the table, questions, and rows of a change."""

    rows: int = 10_000_000
    queries: int = 5_000
    batch: int = 100_000


def measure(size: Size) -> Record:
    """Everything on one session; the first build, which starts the workers, is not counted."""
    home = Path(tempfile.mkdtemp(prefix="nearly-bench-"))
    try:
        data = trips(size.rows)
        columns = {"id": pa.array(np.arange(size.rows)), "pickup": pa.array(data.column), "distance": pa.array(data.values)}
        shuffled = np.random.default_rng(31).permutation(size.rows)
        pq.write_table(pa.table(columns).take(shuffled), home / "trips.parquet", row_group_size=131_072)
        with nearly.connect(path=home / "catalog") as db:
            db.register("trips", home / "trips.parquet", key=["id"])
            db.create_synopsis("warm", "trips", "distance", ["pickup"], leaves=8)
            started = time.perf_counter()
            synopsis = db.create_synopsis("fares", "trips", "distance", ["pickup"], leaves=LEAVES)
            build_seconds = time.perf_counter() - started
            latencies = ask(synopsis, data.queries(size.queries, 32))
            durable = change(synopsis, size)
        shape = Shape((0,), LEAVES, size.rows // 200)
        sample = data.rows(0).take(np.random.default_rng(33).integers(0, size.rows, shape.optimisation_rows))
        started = time.perf_counter()
        plan_tree(shape, sample)
        planning = time.perf_counter() - started
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return {
        "build s": build_seconds, "build rows/s": size.rows / build_seconds, "planning s": planning,
        "query ms median": 1e3 * float(np.median(latencies)), "query ms p99": 1e3 * float(np.quantile(latencies, 0.99)),
        "durable updates/s": durable,
    }  # fmt: skip


def ask(synopsis: Synopsis, ranges: np.ndarray) -> list[float]:
    """Seconds of each question through the public interface: sums, counts, averages and maxima in turn."""
    latencies = []
    for place, (low, high) in enumerate(ranges.tolist()):
        aggregate = ("sum", "count", "avg", "max")[place % 4]
        started = time.perf_counter()
        synopsis.query(aggregate, pickup=(low, high))
        latencies.append(time.perf_counter() - started)
    return latencies


def change(synopsis: Synopsis, size: Size) -> float:
    """Rows a second through the public interface, each batch committed to the table and followed: three inserts to one delete."""
    rng = np.random.default_rng(34)
    synopsis.auto_repartition = False
    ids = np.arange(size.rows, size.rows + size.batch * BATCHES).reshape(BATCHES, size.batch)
    pickup, distance = rng.random(ids.shape) * 31 * 86_400.0, np.round(rng.lognormal(0.5, 0.8, ids.shape), 2)
    tables = [
        pa.table({"id": ids[each], "pickup": pickup[each], "distance": distance[each]}) for each in range(BATCHES)
    ]  # fmt: skip
    started, rows = time.perf_counter(), 0
    for place, table in enumerate(tables):
        synopsis.insert(table)
        rows += table.num_rows
        if place % 3 == 2:
            synopsis.delete(tables[place - 1])
            rows += tables[place - 1].num_rows
    return rows / (time.perf_counter() - started)
