"""What an answer says about rows that may come or go: `complete` is a proof, and no error is told while rows may be missing."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from tests.fixtures.driver_only import driver_only

ROWS, BLOCK = 640_000, 8_000


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    """Three orders of the same rows: in none, by group, and by group with a group of one row in the last block."""
    home = tmp_path_factory.mktemp("rows")
    random = np.random.default_rng(5)
    rows = {"g": random.integers(0, 6, ROWS), "x": random.gamma(3.0, 2.0, ROWS), "y": random.normal(50, 5, ROWS)}
    by_group = np.argsort(rows["g"], kind="stable")
    rare = rows | {"g": np.where(np.arange(ROWS) == ROWS - 1, 99, rows["g"])}
    tables = {"mixed": rows, "sorted": {name: values[by_group] for name, values in rows.items()}, "rare": rare}
    with driver_only(home / "catalog", eager=True) as session:
        for name, table in tables.items():
            pq.write_table(pa.table(table), home / f"{name}.parquet", row_group_size=BLOCK)
            session.register(name, home / f"{name}.parquet")
        yield session


def keys(table: pa.Table) -> set[int]:
    return set(table["g"].to_pylist())


@pytest.mark.parametrize("table", ["mixed", "sorted", "rare"])
@pytest.mark.parametrize("text", [
    "select g, sum(x) as v from {} group by g",
    "select g, avg(x) as v, count(*) as n from {} where y > 40 group by g",
    "select g, sum(x) as v from {} group by g having sum(x) > 640000",
    "select g, sum(x) as v from {} group by g order by v desc limit 2",
    "select g, x as v from {} where x > 30",
])  # fmt: skip
def test_law_complete_answers_have_the_final_rows(db: nearly.Session, table: str, text: str) -> None:
    """And while rows are missing or superfluous beyond it, no smaller error is told."""
    exact = keys(db.sql(text.format(table)).exact().table)
    for seed in range(4):
        for answer in db.sql(text.format(table), seed=seed):
            shown = keys(answer.table)
            wrong = len(exact ^ shown) / max(len(shown), 1)
            assert not (answer.complete and wrong)
            assert answer.exact or answer.error >= wrong
            if answer.complete:
                assert answer.unseen is not None
                assert answer.unseen.most == 0


def test_one_row_is_always_complete(db: nearly.Session) -> None:
    first = next(iter(db.sql("select sum(x) as v from mixed")))
    assert not first.exact
    assert first.complete
    assert first.lacks == ""


def test_rows_that_hang_on_estimates_are_marked(db: nearly.Session) -> None:
    for clause in ("having avg(x) > 5.99", "order by v limit 3"):
        first = next(iter(db.sql(f"select g, avg(x) as v from mixed group by g {clause}")))
        assert first.tentative is not None
        assert first.tentative.to_pylist() == [True] * first.table.num_rows
        assert math.isinf(first.error)
        assert "may still go" in str(first)


def test_counted_keys_are_a_proof(db: nearly.Session) -> None:
    """The keys are counted when nothing else is in the way; an answer that lacks one of six tells an error of a sixth."""
    text = "select g, avg(y) as v, sum(x * y) as s from {} group by g"
    stopped = db.sql(text.format("mixed")).run(error=0.2)
    assert not stopped.exact
    assert stopped.complete
    assert stopped.error <= 0.2
    seen = set()
    for seed in range(6):
        answer = db.sql(text.format("rare"), seed=seed).run(error=0.2)
        lacks = len({0, 1, 2, 3, 4, 5, 99} - keys(answer.table))
        assert answer.unseen is not None
        assert answer.unseen.most == lacks
        assert answer.error >= lacks / 6
        assert answer.complete == (lacks == 0)
        seen.add(lacks)
    assert 1 in seen


def test_run_returns_the_interval_that_it_stopped_on(db: nearly.Session) -> None:
    for seed in range(5):
        answer = db.sql("select sum(x) as v, max(y) as m from mixed", seed=seed).run(error=0.5)
        value, low, high = (side["v"][0].as_py() for side in (answer.table, answer.low, answer.high))
        assert max(value - low, high - value) <= 0.5 * value
        if not answer.exact:
            fixed = next(iter(db.sql("select sum(x) as v, max(y) as m from mixed", seed=seed)))
            assert high - low > fixed.high["v"][0].as_py() - fixed.low["v"][0].as_py()
