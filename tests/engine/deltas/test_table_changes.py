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
from nearly.engine.native import reading
from nearly.engine.native.recent_changes import RecentChanges
from nearly.engine.storage.registration import describe_parquet
from nearly.errors import NearlyError
from tests.engine.changes.test_histories import History, bag
from tests.engine.changes.test_lake_histories import LakeHistory
from tests.engine.deltas.judging import difference, signed
from tests.fixtures.driver_only import driver_only
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


@pytest.mark.parametrize("followed", [False, True])
@pytest.mark.parametrize("seed", first_quick(range(8), 2))
def test_oracle_between_any_two_versions(seed: int, followed: bool, tmp_path: Path) -> None:
    history = History(tmp_path, seed, keyed=seed % 2 == 0, clustered=seed % 3 == 0, copied=seed % 4 < 2)
    if followed:
        history.db._engine.catalog.keep("t", "follower", 1)
    for _ in range(20):
        history.step()
    for _ in range(8):
        since, until = history.random.choices(list(history.versions), k=2)
        expected = less(bag(history.versions[until]), bag(history.versions[since]))
        assert change(history.db, since, until) == expected, (since, until)
    history.db.close()


def test_files_read_one_by_one_have_the_rows_that_went_in_the_same_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of a change are read at different times, and must belong together however its files are read."""
    for number in range(3):
        rows = range(100 * number, 100 * number + 100)
        pq.write_table(pa.table({"k": rows, "v": [f"v{place}" for place in rows]}), tmp_path / f"t{number}.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", str(tmp_path / "t*.parquet"), key=["k"])
        db.delete("t", where="k % 7 = 3 and k < 180")
        db.delete("t", where="k in (4, 299, 201)")
        engine = db._engine
        parts = engine.catalog.difference(engine.catalog.at("t", 1), engine.catalog.table("t"))
        (went,) = (part for part in parts if part.named)

        def read(*columns: str) -> list[dict[str, Any]]:
            query = engine.native.reader.part(went, columns, "weight", in_order=True)
            return engine.native.local.run(query, (), {}).to_pylist()

        gone = [k for k in range(300) if (k % 7 == 3 and k < 180) or k in (4, 201, 299)]
        alone = read("weight", "v", "k"), read("weight")
        assert alone[0] == [{"v": f"v{k}", "k": k, "weight": -1} for k in gone]
        monkeypatch.setattr(reading, "MOST_ALONE", 0)
        assert (read("weight", "v", "k"), read("weight")) == alone


def test_rows_that_went_in_very_many_files(tmp_path: Path) -> None:
    """More than are read one by one."""
    files = reading.MOST_ALONE + 4
    for number in range(files):
        pq.write_table(pa.table({"k": [2 * number, 2 * number + 1], "v": [number % 3, None]}), tmp_path / f"t{number:03}.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", str(tmp_path / "t*.parquet"), key=["k"])
        db.delete("t", where="k % 2 = 1 or k < 6")
        db.insert("t", [{"k": 1, "v": 7}])
        gone = {(k, k // 2 % 3 if k % 2 == 0 else None): -1 for k in range(2 * files) if k % 2 == 1 or k < 6}
        assert change(db, 1, 3) == {**gone, (1, 7): 1}


def test_rows_that_went_are_kept_for_those_who_follow_a_table(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": range(1_000), "v": [f"v{place}" for place in range(1_000)]}), tmp_path / "t.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", str(tmp_path / "t.parquet"), key=["k"])
        catalog = db._engine.catalog
        db.delete("t", where="k < 100")
        assert catalog.batches("t", 1, 2)[2].went is None
        view = db.create_view("w", "select k, v from t where k % 3 = 0")
        db.merge("t", pa.table({"k": range(100, 150), "v": ["new"] * 50}))
        went = catalog.batches("t", 2, 3)[3].went
        assert went is not None
        assert pq.read_table(went.path).to_pylist() == [{"k": place, "v": f"v{place}"} for place in range(100, 150)]
        db.update("t", {"v": "'last'"}, where="k = 999")
        assert catalog.batches("t", 3, 4)[4].went is None  # one row is found quickly
        changed = [row["_change_type"] for row in db.changes("t", 2).to_pylist()]
        assert changed == ["update_preimage"] * 50 + ["update_postimage"] * 50 + ["update_preimage", "update_postimage"]
        view.refresh()
        assert view.history[0].updated == 17
        db.delete("t", where="k between 100 and 200")  # some of them came since
        assert change(db, 2, 5) == difference(rows_of(db, 2), rows_of(db, 5))


def rows_of(db: nearly.Session, version: int) -> pa.Table:
    return db.sql(f"select * from t version as of {version}").exact().table


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
