"""Rows of a table that is read whole, picked by estimates of another: their numbers are not known before the estimates are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
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
PICKED = "select k from t group by k having avg(x) > 0.5"
AVERAGES = "select k, avg(x) as a from t group by k"


def tables(keys: int, directory: Path) -> Iterator[nearly.Session]:
    """A session with random values for keys in 200 blocks, and the keys in three groups."""
    rng = np.random.default_rng(0)
    values = pa.table({"k": rng.integers(0, keys, ROWS), "x": rng.random(ROWS)})
    pq.write_table(values, directory / "t.parquet", row_group_size=1_000)
    pq.write_table(pa.table({"k": np.arange(keys), "g": np.arange(keys) % 3}), directory / "d.parquet")
    with driver_only(directory / "catalog", eager=True) as db:
        register_parquet(db._engine.catalog, "t", directory / "t.parquet", target=BlockTarget(1, 1))
        db.register("d", str(directory / "d.parquet"))
        yield db


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    yield from tables(500, tmp_path_factory.mktemp("common"))


@pytest.fixture(scope="module")
def rare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[nearly.Session, Path]]:
    directory = tmp_path_factory.mktemp("rare")
    for db in tables(20_000, directory):
        yield db, directory


def asked(db: nearly.Session, text: str, seed: int = 0) -> Run:
    return Run(db._engine, db._engine.prepare(text), Request(seed=seed, pace=Pace(sizes=(16, 8, 8, 16))))


def first_answer(run: Run) -> Answer:
    found = next(iter(run.answers()))
    run.stop()
    return found


@pytest.mark.parametrize(
    "text",
    [f"select count(*) as n from d where k in ({PICKED})", f"select g, count(*) as n from d where k in ({PICKED}) group by g"],
)
def test_numbers_of_picked_rows_are_not_sure(text: str, common: nearly.Session) -> None:
    *early, last = asked(common, text).answers()
    assert early
    assert last.exact
    for answer in early:
        assert answer.error == float("inf")
        assert answer.low["n"].null_count == answer.table.num_rows


@pytest.mark.parametrize(
    "text",
    [
        "select g, count(*) as n from d where 0.6 > (select avg(x) from t where t.k = d.k) group by g",
        f"select g, sum(case when a > 0.6 then 1 else 0 end) as n from d join ({AVERAGES}) q on d.k = q.k group by g",
        f"select g, count(*) filter (where a > 0.6) as n from d join ({AVERAGES}) q on d.k = q.k group by g",
        f"select g, count(*) as n from d left join ({AVERAGES}) q on d.k = q.k where coalesce(a, 0) > 0.6 group by g",
        f"select count(*) as n from ({AVERAGES} having avg(x) > 0.6) q",
        f"select sum(abs(a - 0.5)) as n from ({AVERAGES}) q",
        f"select quantile_cont(a, 0.9) as n from ({AVERAGES}) q",
        "select avg(b) as n from (select k, max(x) as b from t group by k) q",
        "select avg(b) as n from (select k, stddev(x) as b from t group by k) q",
        "select count(*) as n from t where k in (select k from t group by k having avg(x) > 0.6)",
        "select count(*) as n from t where k not in (select k from t group by k having avg(x) > 0.6)",
        "select k % 3 as g, sum(x) as n from t where k in (select k from t group by k having count(*) > 12) group by k % 3",
    ],
)
def test_tests_of_averages_of_few_rows_have_no_narrow_intervals(text: str, rare: tuple[nearly.Session, Path]) -> None:
    """Of ten rows for each key few are read at first: noise takes far more averages over the limit than belong there."""
    db, directory = rare
    oracle = text.replace("from d", f"from '{directory}/d.parquet' d").replace("from t", f"from '{directory}/t.parquet' t")
    exact = {row[:-1]: row[-1] for row in duckdb.sql(oracle).fetchall()}
    text = text.replace("quantile_cont", "percentile")
    for seed in range(2):
        first = first_answer(asked(db, text, seed))
        assert not first.exact
        keys = zip(*(first.table[name].to_pylist() for name in first.table.column_names[:-1]), strict=True)
        bounds = zip(first.low["n"].to_pylist(), first.high["n"].to_pylist(), strict=True)
        for key, (low, high) in zip(list(keys) or [()], bounds, strict=True):
            assert low is None or low <= exact[key] <= high


def test_quantiles_of_many_groups_have_no_interval(rare: tuple[nearly.Session, Path]) -> None:
    """Replicates of a quantile of few values are nearly all equal."""
    first = first_answer(asked(rare[0], "select k, percentile(x, 0.5) as n from t group by k"))
    assert not first.exact
    assert first.low["n"].null_count == first.table.num_rows > 2_000
