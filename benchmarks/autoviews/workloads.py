"""The three workloads, and the five orders in which their queries come."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.autoviews import cubes, movies
from benchmarks.retailer.data import ensure_tables as ensure_retailer
from benchmarks.retailer.queries import NUMBERS, query
from benchmarks.tpch.data import ROOT, publish

DIRECTORY = ROOT / "data" / "autoview"
DISTRIBUTIONS = ("rzipf", "dzipf", "azipf", "dablend", "adblend")
ROW_GROUP = 122_880
MOVIES = 10.0
"""Times the scale: a quarter of the titles of the Join Order Benchmark at scale 1; those of milliseconds replay unsteadily."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Tables by name, and queries over them."""

    name: str
    tables: dict[str, Path]
    queries: tuple[str, ...]

    @property
    def largest_bytes(self) -> int:
        """Bytes of the files of its largest table."""
        return max(sum(each.stat().st_size for each in path.rglob("*.parquet")) for path in self.tables.values())


def workload(name: str, scale: str, most: int) -> Workload:
    """A workload of at most so many queries."""
    match name:
        case "retail":
            return Workload("TPC-DS-shaped", ensure_retailer(scale), tuple(query(number) for number in NUMBERS[:most]))
        case "cube":
            return Workload("cube sessions", _generated("cube", scale, cubes.tables), tuple(cubes.queries()[:most]))
    return Workload("JOB-shaped", _generated("movies", f"{MOVIES * float(scale):g}", movies.tables), tuple(movies.queries()[:most]))


def _generated(name: str, scale: str, tables: Callable[[float], Iterator[tuple[str, pa.Table]]]) -> dict[str, Path]:
    target = DIRECTORY / f"{name}{scale}"
    if not target.exists():
        print(f"generating {name} at scale {scale} in {target} (once)", file=sys.stderr, flush=True)
        DIRECTORY.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{name}{scale}-", dir=DIRECTORY))
        try:
            for table, rows in tables(float(scale)):
                (draft / table).mkdir()
                pq.write_table(rows, draft / table / "part.parquet", row_group_size=ROW_GROUP)
            publish(draft, target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return {path.name: path for path in sorted(target.iterdir())}


def sequence(distribution: str, seconds: Sequence[float], length: int, seed: int) -> list[int]:
    """Numbers of queries in the order in which they come; how often each does follows Zipf's law over some ranking of them.

    rzipf ranks at random, dzipf the dearest first, azipf the cheapest first; dablend is dzipf and then azipf, adblend the reverse.
    """
    random = np.random.default_rng(seed)
    count = len(seconds)
    dear = np.argsort(-np.asarray(seconds), kind="stable")
    rankings = {"rzipf": random.permutation(count), "dzipf": dear, "azipf": dear[::-1]}
    parts = {"dablend": ("dzipf", "azipf"), "adblend": ("azipf", "dzipf")}.get(distribution, (distribution,))
    shares = 1.0 / np.arange(1, count + 1)
    shares /= shares.sum()
    found: list[int] = []
    for part in parts:
        found += rankings[part][random.choice(count, length // len(parts), p=shares)].tolist()
    return found
