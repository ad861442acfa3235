"""Joins of two large tables whose rows meet anywhere: both are sampled, and the intervals of pairs of samples hold."""

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
from nearly.rewrite.stream import cut_query
from tests.fixtures.driver_only import driver_only
from tests.fixtures.long import first_quick

KEYS = 500
ORDERS = ("shuffled", "by_time", "by_key")
TEXT = "select count(*) as n, sum(v * w) as s, avg(v) as a from one_{0} join two_{0} on k = l where u < 8"
GROUPED = "select g, count(*) as n, sum(w) as s from one_{0} join two_{0} on k = l group by g order by g"


def _write(directory: Path, name: str, rows: pa.Table, blocks: int) -> None:
    (directory / name).mkdir()
    size = -(-rows.num_rows // blocks)
    for number in range(blocks):
        pq.write_table(rows.slice(number * size, size), directory / name / f"part-{number:02}.parquet")


@pytest.fixture(autouse=True)
def _tables_count_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_query, "SAMPLED_ROWS", 0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tame and heavy-tailed measures, keys of unlike frequency; rows at random, by a drifting time, or by the key of the join."""
    directory, rng = tmp_path_factory.mktemp("pairs"), np.random.default_rng(4)
    n, m = 24_000, 15_000
    one = pa.table({
        "k": rng.integers(0, KEYS, n), "v": rng.normal(20, 6, n) + np.arange(n) / n * 10, "u": rng.integers(0, 10, n),
        "g": rng.integers(0, 4, n), "at": np.arange(n),
    })  # fmt: skip
    two = pa.table({
        "l": np.minimum(rng.geometric(0.004, m), KEYS - 1), "w": rng.lognormal(0, 1.2, m) * (1 + np.arange(m) / m),
        "at": np.arange(m),
    })  # fmt: skip
    for name, table, blocks in (("one", one, 64), ("two", two, 48)):
        at, key = table["at"].to_numpy(), table.column(0).to_numpy()
        mixed = rng.permutation(table.num_rows)
        stretches = key + rng.integers(-20, 21, len(key))  # not clustered by the key, but nearly
        for order, places in zip(ORDERS, (mixed, np.argsort(at), np.argsort(stretches)), strict=True):
            _write(directory, f"{name}_{order}", table.take(pa.array(places)).drop_columns(["at"]), blocks)
    return directory


@pytest.fixture(scope="module")
def db(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    with driver_only(tmp_path_factory.mktemp("catalog"), eager=True) as session:
        for path in sorted(files.iterdir()):
            register_parquet(session._engine.catalog, path.name, path, target=BlockTarget(1, 1))
        yield session


def _exact(files: Path, text: str) -> pa.Table:
    connection = duckdb.connect()
    for path in files.iterdir():
        connection.execute(f"create view {path.name} as select * from '{path}/*.parquet'")
    return connection.sql(text).to_arrow_table()


def _early(db: nearly.Session, text: str, seed: int, sizes: tuple[int, ...]) -> list[Answer]:
    run = Run(db._engine, db._engine.prepare(text), Request(seed=seed, pace=Pace(sizes=sizes)))
    found: list[Answer] = []
    for answer in run.answers():
        if answer.exact or len(found) == len(sizes):
            break
        found.append(answer)
    run.stop()
    return found


def _judged(db: nearly.Session, exact: pa.Table, text: str, seeds: range, sizes: tuple[int, ...]) -> tuple[float, float, float]:
    """Of the numbers of some answers: the share with an interval, the share of these that hold, and how far off they are."""
    given, held, off = [], [], []
    for seed in seeds:
        for answer in _early(db, text, seed, sizes):
            for name in exact.column_names:
                for row, value in enumerate(exact[name].to_pylist()):
                    low, shown, high = (side[name][row].as_py() for side in (answer.low, answer.table, answer.high))
                    if name == "g":
                        continue
                    given.append(low is not None and high is not None)
                    off.append(shown / value - 1)
                    if given[-1]:
                        held.append(low <= value <= high)
    return float(np.mean(given)), float(np.mean(held)), float(np.mean(off))


@pytest.mark.parametrize("order", first_quick(["shuffled", "by_time"], 1))
def test_intervals_of_pairs_hold(db: nearly.Session, files: Path, order: str) -> None:
    text = TEXT.format(order)
    given, held, off = _judged(db, _exact(files, text), text, range(12), (16,))
    assert given > 0.9
    assert held >= 0.85
    assert abs(off) < 0.15


@pytest.mark.long
@pytest.mark.parametrize("text", [TEXT, GROUPED], ids=["totals", "grouped"])
@pytest.mark.parametrize("order", ORDERS)
def test_intervals_of_pairs_hold_over_many_seeds(db: nearly.Session, files: Path, order: str, text: str) -> None:
    asked = text.format(order)
    given, held, off = _judged(db, _exact(files, asked), asked, range(60), (16, 16))
    assert held >= 0.93
    assert abs(off) < 0.05
    assert given > (0.9 if order != "by_key" else 0)


def test_the_end_is_exact(db: nearly.Session, files: Path) -> None:
    text = GROUPED.format("by_time")
    run = Run(db._engine, db._engine.prepare(text), Request(pace=Pace(sizes=(12, 12))))
    *early, last = run.answers()
    assert early
    assert last.exact
    assert last.table.select(["g", "n"]).to_pylist() == _exact(files, text).select(["g", "n"]).to_pylist()
    assert not early[0].complete


def test_law_least_and_greatest_values_over_a_join_are_bounded(db: nearly.Session, files: Path) -> None:
    """By what was met on one side, and on the other by what the footers allow: here one table is read whole."""
    text = "select max(k) as most, min(k * 2) as least from one_by_time join two_by_time on k = l where u < 8"
    exact = _exact(files, text).to_pylist()[0]
    streamed = frozenset({"one_by_time"})
    *early, _ = Run(db._engine, db._engine.prepare(text), Request(streamed=streamed, pace=Pace(sizes=(6, 6)))).answers()
    assert early
    for answer in early:
        for name in ("most", "least"):
            low, high = (side[name][0].as_py() for side in (answer.hard_low, answer.hard_high))
            assert low <= exact[name] <= high
            assert answer.table[name][0].as_py() in (low, high)
