"""Numbers of keys that lie together: there is no interval where nearly all keys may lie in blocks unlike those read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.answer import Answer
from nearly.engine.storage.blocks import BlockTarget
from nearly.engine.storage.registration import register_parquet
from nearly.engine.stream.task import Pace
from nearly.progressive.run import Request, Run
from tests.fixtures.driver_only import driver_only

ROWS = 200_000
SEEDS = range(6)
KINDS: dict[str, Callable[[int], Any]] = {
    "numbers": int,
    "texts": lambda key: f"customer-{key:012}",
    "doubles": lambda key: key * 1.5,
    "times": lambda key: dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=key),
    "days": lambda key: dt.date(1970, 1, 1) + dt.timedelta(days=min(key, 1_000_000)),
}
QUERIES = (
    "select count(distinct {k}) as v from t",
    "select count(*) as v from (select {k}, sum(x) as s from t group by {k})",
    "select sum(m) as v from (select {k}, avg(x) as m from t group by {k})",
    "select avg(s) as v from (select {k}, sum(x) as s from t group by {k})",
)


def _write(directory: Path, ranks: np.ndarray[Any, Any]) -> None:
    """Rows in the order of their keys, in 200 blocks; every kind of key has the same order."""
    columns: dict[str, Any] = {"x": np.random.default_rng(5).exponential(10, ROWS)}
    keys, places = np.unique(ranks, return_inverse=True)
    for name, made in KINDS.items():
        columns[name] = pa.array([made(int(key)) for key in keys]).take(pa.array(places))
    pq.write_table(pa.table(columns), directory / "t.parquet", row_group_size=1_000)


def _session(directory: Path, ranks: np.ndarray[Any, Any]) -> Iterator[nearly.Session]:
    _write(directory, ranks)
    with driver_only(directory / "catalog", eager=True) as db:
        register_parquet(db._engine.catalog, "t", directory / "t.parquet", target=BlockTarget(1, 1))
        yield db


@pytest.fixture(scope="module")
def popular_first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    """A few small keys have most rows, and nearly all keys are in the last blocks."""
    ranks = np.minimum(np.random.default_rng(1).pareto(0.6, ROWS) * 3, 1e8).astype(np.int64)
    yield from _session(tmp_path_factory.mktemp("popular"), np.sort(ranks))


@pytest.fixture(scope="module")
def popular_anywhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    """Keys of the same frequencies, in an order that has nothing to do with them."""
    chance = np.random.default_rng(1)
    ranks = np.minimum(chance.pareto(0.6, ROWS) * 3, 1e8).astype(np.int64)
    yield from _session(
        tmp_path_factory.mktemp("anywhere"), np.sort(chance.permutation(10**6)[np.unique(ranks, return_inverse=True)[1]])
    )


def _first(db: nearly.Session, text: str, seed: int) -> Answer:
    run = Run(db._engine, db._engine.prepare(text), Request(seed=seed, pace=Pace(sizes=(16, 8, 8, 16))))
    found = next(iter(run.answers()))
    run.stop()
    assert not found.exact
    return found


def _holds(answer: Answer, truth: float) -> bool | None:
    """Whether the interval holds the truth; None where there is none."""
    low, high = answer.low["v"][0].as_py(), answer.high["v"][0].as_py()
    return None if low is None or high is None else bool(low <= truth <= high)


@pytest.mark.parametrize(("kind", "query"), [*((kind, QUERIES[0]) for kind in KINDS), *(("numbers", each) for each in QUERIES[1:])])
def test_no_interval_misses_keys_that_lie_elsewhere(kind: str, query: str, popular_first: nearly.Session) -> None:
    text = query.format(k=kind)
    truth = float(popular_first.sql(text).exact().table["v"][0].as_py())
    assert False not in [_holds(_first(popular_first, text, seed), truth) for seed in SEEDS]


@pytest.mark.parametrize("kind", ["numbers", "texts"])
def test_keys_that_lie_anywhere_have_intervals(kind: str, popular_anywhere: nearly.Session) -> None:
    text = QUERIES[0].format(k=kind)
    truth = float(popular_anywhere.sql(text).exact().table["v"][0].as_py())
    held = [_holds(_first(popular_anywhere, text, seed), truth) for seed in SEEDS]
    assert held.count(True) >= 5
