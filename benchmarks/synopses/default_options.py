"""What users get: default options, asked through SQL, after the build, after inserts and deletes, and opened again."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nearly
from benchmarks.flights import flights
from benchmarks.report import Record
from nearly.synopsis.structure.rows import Floats, Integers
from nearly.synopsis.synopsis import Synopsis

SHARES = (0.5, 0.1, 0.02, 0.005)
"""Widths of the ranges that are asked for."""
STAGES = ("built", "changed", "reopened")
AGGREGATES = ("count", "sum", "avg", "stddev")
MOVED = 0.1
"""Share of the rows that come, and of those that go."""

Measure = Callable[[np.random.Generator, Floats], Floats]


def _mixture(rng: np.random.Generator, p: Floats) -> Floats:
    """Most values near zero, some large, more of them on some days."""
    level = rng.exponential(0.3, 180)[(p * 180).astype(int)]
    late = rng.random(len(p)) < 0.2 * np.minimum(level + 0.5, 2.0)
    return np.where(late, rng.exponential(50, len(p)) * (1 + level), rng.normal(-6, 8, len(p)))


def _clustered(rng: np.random.Generator, p: Floats) -> Floats:
    bad = (rng.random(365) < 0.05)[(p * 365).astype(int)]
    return np.where(bad, rng.lognormal(4, 1, len(p)), rng.normal(0, 1, len(p)))


def _delays(rng: np.random.Generator, p: Floats) -> Floats:
    """Real departure delays in the order in which flights left; they begin again at a random place where there are not enough."""
    known = flights().column("dep_delay").drop_null().to_numpy().astype(np.float64)
    places = (np.argsort(np.argsort(p)) * len(known) // len(p) + rng.integers(len(known))) % len(known)
    found: Floats = known[places]
    return found


MEASURES: dict[str, Measure] = {
    "normal": lambda rng, p: rng.normal(10, 3, len(p)),
    "mixture": _mixture,
    "lognormal 1": lambda rng, p: rng.lognormal(0, 1, len(p)),
    "lognormal 2": lambda rng, p: rng.lognormal(0, 2, len(p)),
    "pareto 1.5": lambda rng, p: rng.pareto(1.5, len(p)),
    "zeros": lambda rng, p: np.where(rng.random(len(p)) < 0.98, 0.0, rng.exponential(100, len(p))),
    "clustered": _clustered,
    "flight delays": _delays,
}


@dataclass(slots=True)
class Score:
    """Intervals of one kind."""

    asked: int = 0
    covered: list[bool] = field(default_factory=list)
    narrow: int = 0
    broken: int = 0
    widths: list[float] = field(default_factory=list)


@dataclass(slots=True)
class World:
    """The rows that there are."""

    number: Integers
    p: Floats
    a: Floats

    def table(self, chosen: Integers | slice = slice(None)) -> pa.Table:
        return pa.table({"id": self.number[chosen], "p": self.p[chosen], "a": self.a[chosen]})


def measure(rows: int, seeds: int, queries: int, names: tuple[str, ...] = tuple(MEASURES)) -> Iterator[Record]:
    """One line for each measure, stage and aggregate."""
    for name in names:
        scores: defaultdict[tuple[str, str], Score] = defaultdict(Score)
        for seed in range(seeds):
            _history(MEASURES[name], rows, 500 + seed, queries, scores)
        for (stage, aggregate), score in sorted(scores.items(), key=lambda item: (STAGES.index(item[0][0]), item[0][1])):
            yield {
                "data": name, "stage": stage, "aggregate": aggregate, "asked": score.asked,
                "given": len(score.covered) / score.asked, "coverage": float(np.mean(score.covered)),
                "narrow and wrong": score.narrow, "hard failures": score.broken,
                "median interval %": 100 * float(np.median(score.widths)),
            }  # fmt: skip


def _history(draw: Measure, rows: int, seed: int, queries: int, scores: defaultdict[tuple[str, str], Score]) -> None:
    rng = np.random.default_rng(seed)
    p = rng.random(rows)
    world = World(np.arange(rows), p, draw(rng, p))
    with tempfile.TemporaryDirectory() as work:
        pq.write_table(world.table(), Path(work) / "t.parquet")
        with nearly.connect(lazy=True, path=Path(work) / "catalog") as db:
            db.register("t", Path(work) / "t.parquet", key=["id"])
            synopsis = db.create_synopsis("y", "t", "a", ["p"], seed=seed)
            _ask(db, world, rng, queries, "built", scores)
            world = _moved(synopsis, world, draw, rng)
            _ask(db, world, rng, queries, "changed", scores)
        with nearly.connect(lazy=True, path=Path(work) / "catalog") as db:
            _ask(db, world, rng, queries, "reopened", scores)


def _moved(synopsis: Synopsis, world: World, draw: Measure, rng: np.random.Generator) -> World:
    """New rows, half of them in one place, and a tenth of the old ones gone."""
    count = int(MOVED * len(world.p))
    p = np.where(rng.random(count) < 0.5, rng.random(count), 0.3 + 0.05 * rng.random(count))
    new = World(world.number.max() + 1 + np.arange(count), p, draw(rng, p))
    gone = rng.choice(len(world.p), count, replace=False)
    synopsis.insert(new.table())
    synopsis.delete(world.table(gone))
    synopsis.settle()
    keep = np.setdiff1d(np.arange(len(world.p)), gone)
    pairs = ((world.number, new.number), (world.p, new.p), (world.a, new.a))
    number, p, a = (np.concatenate([old[keep], fresh]) for old, fresh in pairs)
    return World(number, p, a)


def _ask(
    db: nearly.Session,
    world: World,
    rng: np.random.Generator,
    queries: int,
    stage: str,
    scores: defaultdict[tuple[str, str], Score],
) -> None:
    for _ in range(queries):
        share = rng.choice(SHARES)
        low = float(rng.random() * (1 - share))
        inside = world.a[(world.p >= low) & (world.p <= low + share)]
        truth = {"count": float(len(inside)), "sum": inside.sum(), "avg": inside.mean(), "stddev": inside.std(ddof=1)}
        outputs = ", ".join(f"{each}(a) as {each}_" for each in AGGREGATES)
        found = db.sql(f"select {outputs} from t where p >= {low!r} and p <= {low + float(share)!r}", using="y").run()
        for aggregate in AGGREGATES:
            _judge(scores[stage, aggregate], found, f"{aggregate}_", float(truth[aggregate]))


def _judge(score: Score, found: nearly.Answer, column: str, truth: float) -> None:
    slack = 1e-9 * max(1.0, abs(truth))
    value, low, high, hard_low, hard_high = (
        table[column][0].as_py() for table in (found.table, found.low, found.high, found.hard_low, found.hard_high)
    )
    score.asked += 1
    score.broken += (hard_low is not None and hard_low > truth + slack) or (hard_high is not None and hard_high < truth - slack)
    if low is None or high is None:
        return
    holds = low - slack <= truth <= high + slack
    score.covered.append(holds)
    score.narrow += not holds and high - low <= 1e-6 * abs(value)
    score.widths.append((high - low) / 2 / max(abs(truth), slack))
