"""What came and went between any two versions of a table, read from parts of its files; a lake's tables included."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.deltas.net_change import net_change
from nearly.engine.native.recent_changes import RecentChanges
from nearly.engine.storage.registration import describe_parquet
from nearly.errors import NearlyError
from tests.engine.changes.test_histories import History, bag
from tests.engine.changes.test_lake_histories import LakeHistory
from tests.engine.deltas.judging import difference, signed
from tests.fixtures.long import first_quick

Rows = Counter[tuple[Any, ...]]


def change(db: nearly.Session, since: int, until: int) -> Rows:
    """The signed rows between two versions of table t."""
    engine = db._engine
    plan = engine.planner.bound("select * from t").plan
    before, after = ({"t": engine.catalog.at("t", version)} for version in (since, until))
    return signed(net_change(engine, plan, before, after).rows)


def less(left: Rows, right: Rows) -> Rows:
    found = Counter(left)
    found.subtract(right)
    return Counter({row: count for row, count in found.items() if count})


@pytest.mark.parametrize("seed", first_quick(range(8), 2))
def test_oracle_between_any_two_versions(seed: int, tmp_path: Path) -> None:
    history = History(tmp_path, seed, keyed=seed % 2 == 0, clustered=seed % 3 == 0, copied=seed % 4 < 2)
    for _ in range(20):
        history.step()
    for _ in range(8):
        since, until = history.random.choices(list(history.versions), k=2)
        expected = less(bag(history.versions[until]), bag(history.versions[since]))
        assert change(history.db, since, until) == expected, (since, until)
    history.db.close()


@pytest.mark.parametrize("seed", first_quick(range(3), 1))
def test_oracle_of_a_lake(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    history = LakeHistory(tmp_path, seed)
    with history.db as db:
        for _ in range(20):
            try:
                history.step()
            except NearlyError:
                break  # a conflict between both sides, which another test is about
        versions = [commit.version for commit in db.history("t")]
        rows = {version: db.sql(f"select * from t version as of {version}").exact().table for version in versions}
        pick = random.Random(seed)
        for _ in range(6):
            since, until = pick.choices(versions, k=2)
            assert change(db, since, until) == difference(rows[since], rows[until]), (since, until)


def test_columns_of_a_change_are_read_once(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def read(columns: Any) -> pa.Table:
        asked.append(list(columns))
        return pa.table({name: [name, name] for name in columns})

    pq.write_table(pa.table({name: ["x"] for name in "abd"}), tmp_path / "t.parquet")
    recent, table = RecentChanges(), describe_parquet("t", [str(tmp_path / "t.parquet")])
    assert recent.rows(table, "c", ["a", "b"], read).column_names == ["a", "b"]
    assert recent.rows(table, "c", ["b", "d"], read).to_pydict() == {"b": ["b", "b"], "d": ["d", "d"]}
    assert recent.rows(table, "c", ["d", "a"], read).column_names == ["d", "a"]
    assert asked == [["a", "b"], ["d"]]
    assert recent.rows(table, "next", ["b"], read).column_names == ["b"]
    recent.rows(table, "next", ["a", "d"], read)
    assert asked[2:] == [["b", "a", "d"]]
