"""Synopses follow the log of their table, whoever changed it and wherever; where no log tells, they count it anew and say why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.changes.transactions import write_batch
from nearly.synopsis.synopsis import Synopsis
from nearly.synopsis.upkeep.live import LiveTree
from tests.fixtures.driver_only import driver_only
from tests.fixtures.long import first_quick
from tests.processes import HUNG, environment

ROWS = 500


def rows(first: int, count: int, text: str = "old") -> pa.Table:
    numbers = np.arange(first, first + count)
    return pa.table({"id": numbers, "c": (numbers * 7 % 100).astype(float), "t": [text] * count, "a": numbers % 10 + 0.5})


@pytest.fixture(params=[True, False], ids=["keyed", "bag"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    pq.write_table(rows(0, ROWS), tmp_path / "t.parquet", row_group_size=97)
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "t.parquet", key=["id"] if request.param else ())
        db.create_synopsis("y", "t", "a", [["c"], ["c", "t"]], leaves=4, sample=0.2)
    return tmp_path


@pytest.fixture
def db(home: Path) -> Iterator[nearly.Session]:
    with driver_only(home / "catalog") as session:
        yield session


def check(db: nearly.Session, anew: bool = False) -> Synopsis:
    """Law: a synopsis is at the present version, and what it says of all rows, and of each text, is what the table says."""
    synopsis = db.synopsis("y")
    synopsis.auto_repartition = False
    found = db.sql("select count(*) as n, sum(a) as s, min(a) as low, max(a) as high from t").exact().table.to_pylist()[0]
    assert synopsis.query("rows").table["rows"].to_pylist() == [found["n"]]
    assert synopsis.query("sum").table["sum"].to_pylist() == pytest.approx([found["s"] if found["n"] else None])
    assert synopsis.version == db.table("t").info.version
    for text in ("old", "new", "nobody"):
        counted = db.sql(f"select count(*) as n from t where t = '{text}'").exact().table["n"][0].as_py()
        answer = synopsis.query("rows", t=text)
        assert answer.hard_low["rows"][0].as_py() <= counted <= answer.hard_high["rows"][0].as_py()
    assert (synopsis.stats()["counted_anew"] is not None) == anew, synopsis.stats()["counted_anew"]
    return synopsis


def test_changes_of_the_table_are_followed(db: nearly.Session, home: Path) -> None:
    """By any call, in this session or another, through a compaction; and nothing is read twice."""
    check(db)
    db.insert("t", rows(ROWS, 100, "new"))
    check(db)
    db.delete("t", where="id % 3 = 0")
    db.update("t", {"a": "a * 2", "t": "'new'"}, where="c > 50")
    check(db)
    with driver_only(home / "catalog") as other:
        other.execute("insert into t select id + 10000, c, t, a from t where id < 200")
        assert other.compact("t").version == 5
        other.delete("t", where="a > 15")
        check(other)
    check(db)
    db.delete("t", where="true")
    check(db)
    db.insert("t", rows(0, 3))
    check(db)


def test_it_goes_on_where_it_was_saved(home: Path) -> None:
    with driver_only(home / "catalog") as db:
        db.synopsis("y").insert(rows(ROWS, 50, "new"))
        db.synopsis("y").save()
        db.insert("t", rows(ROWS + 50, 50, "newer"))
        db.delete("t", rows(0, 20))
    with driver_only(home / "catalog") as db:
        assert db.synopsis("y").version == 2
        check(db)
    with driver_only(home / "catalog") as db:
        assert db.synopsis("y").version == 4
        check(db)


def test_what_it_cannot_hold_is_refused_before_it_is_in_the_table(db: nearly.Session) -> None:
    odd = pa.table({"id": [9_000], "c": [1.0], "t": ["new"], "a": [float("nan")]})
    with pytest.raises(nearly.SchemaError, match="NaN or infinity"):
        db.synopsis("y").insert(odd)
    assert db.table("t").info.version == 1
    assert check(db).schema.domains[1].texts == ["old"]


def test_what_it_cannot_hold_keeps_it_from_answering_until_it_is_gone(db: nearly.Session) -> None:
    """Others may insert it into the table: then nobody is told a number that lacks it."""
    db.insert("t", pa.table({"id": [9_000, 9_001], "c": [1.0, 2.0], "t": ["new", "new"], "a": [float("nan"), 4.0]}))
    for _ in range(2):
        with pytest.raises(nearly.Unsupported, match=r"cannot follow table 't' from version 1 to 2: .*NaN"):
            db.synopsis("y").query("sum")
    query = db.sql("select count(*) as n from t")
    assert "synopsis y: no, synopsis 'y' cannot follow" in query.explain()
    assert query.run().table["n"].to_pylist() == [ROWS + 2]
    db.synopsis("y").insert(rows(9_500, 5))  # which is in the table, whatever the synopsis says
    assert db.table("t").info.rows == ROWS + 7
    db.delete("t", where="id = 9000")
    check(db)


def test_a_table_that_is_registered_again_is_counted_anew(db: nearly.Session, home: Path) -> None:
    key = list(db.table("t").info.key)
    db.insert("t", rows(ROWS, 10))
    check(db)
    pq.write_table(rows(7, 300, "new"), home / "u.parquet")
    db.register("t", home / "u.parquet", key=key)
    assert "no log tells" in check(db, anew=True).stats()["counted_anew"]
    db.insert("t", rows(ROWS, 10))
    with driver_only(home / "catalog") as other:
        check(other)  # from the snapshot that was written then


def test_a_table_that_was_dropped_and_made_again_is_another_one(db: nearly.Session, home: Path) -> None:
    key = list(db.table("t").info.key)
    for number in range(3):
        db.insert("t", rows(ROWS + number, 1))
    check(db)
    db.drop("t")
    with pytest.raises(nearly.EngineError, match="of table 't', which is gone"):
        db.synopsis("y").query("sum")
    pq.write_table(rows(7, 300, "new"), home / "u.parquet")
    db.register("t", home / "u.parquet", key=key)
    for number in range(3):
        db.insert("t", rows(ROWS + number, 1))  # the same versions, other rows
    assert "made anew" in check(db, anew=True).stats()["counted_anew"]


def test_a_table_with_other_columns_is_an_error(db: nearly.Session, home: Path) -> None:
    pq.write_table(rows(0, 10).set_column(1, "c", pa.array([1] * 10)), home / "u.parquet")
    db.register("t", home / "u.parquet")
    with pytest.raises(nearly.Unsupported, match=r"'c' is bigint now, and was double.*drop the synopsis"):
        db.synopsis("y").query("sum")
    pq.write_table(rows(0, 10).drop_columns(["a"]), home / "v.parquet")
    db.register("t", home / "v.parquet")
    with pytest.raises(nearly.NearlyError, match="unknown column 'a'"):
        db.synopsis("y").query("sum")


def test_versions_that_are_not_kept_are_counted_anew(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datetime as dt

    with driver_only(home / "catalog") as db:
        monkeypatch.setattr("nearly.engine.storage.versions.KEPT", dt.timedelta(0))
        db.insert("t", rows(ROWS, 10))
        db.compact("t")
        db.insert("t", rows(ROWS + 10, 10))
        db.compact("t")
    with driver_only(home / "catalog") as db:
        assert "has no version 1" in check(db, anew=True).stats()["counted_anew"]


def test_many_changes_are_counted_anew(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearly.synopsis.upkeep.subscription.MOST_FOLLOWED", 50)
    db.insert("t", rows(ROWS, 51, "new"))
    assert "more than 50 rows" in check(db, anew=True).stats()["counted_anew"]


def test_a_query_does_not_wait_for_many_changes(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearly.synopsis.routing.MOST_WAITED_FOR", 50)
    db.insert("t", rows(ROWS, 51, "new"))
    text = "select sum(a) as s from t"
    assert "it is 51 changed rows behind its table, and follows in the background" in db.sql(text).explain()
    db.synopsis("y").settle()
    assert "synopsis y: yes" in db.sql(text).explain()
    check(db)


def test_trees_that_were_moved_in_part_are_counted_anew(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    synopsis = check(db)
    apply = LiveTree.apply

    def fails(tree: LiveTree, *given: Any) -> None:
        if tree is synopsis.trees[1]:
            raise MemoryError
        apply(tree, *given)

    db.insert("t", rows(ROWS, 10))
    with monkeypatch.context() as patch:
        patch.setattr(LiveTree, "apply", fails)
        with pytest.raises(MemoryError):
            synopsis.query("sum")
    check(db, anew=True)


def test_changes_in_a_transaction_count_when_it_ends(db: nearly.Session) -> None:
    synopsis = check(db)
    with db.transaction():
        synopsis.insert(rows(ROWS, 10, "new"))
        db.delete("t", rows(0, 5))
        assert synopsis.query("rows").table["rows"].to_pylist() == [ROWS]
    assert check(db).query("rows").table["rows"].to_pylist() == [ROWS + 5]
    with suppress(ZeroDivisionError), db.transaction():
        synopsis.insert(rows(ROWS + 10, 10, "never"))
        raise ZeroDivisionError
    assert check(db).schema.domains[1].texts == ["old", "new"]


def test_a_batch_is_taken_once(db: nearly.Session) -> None:
    for number in (0, 1, 1, 0):
        db.synopsis("y").insert(rows(ROWS + 10 * number, 10), batch=("s", number))
    assert check(db).version == 3


def test_rows_that_nothing_tells_apart_are_deleted_one_by_one(tmp_path: Path) -> None:
    """A bag of few different rows: what is left of the sample is one of what is left of the rows."""
    few = pa.table({"c": [float(each % 3) for each in range(3_000)], "a": [float(each % 2) for each in range(3_000)]})
    pq.write_table(few, tmp_path / "t.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "t.parquet")
        synopsis = db.create_synopsis("y", "t", "a", ["c"], leaves=1, sample=0.2)
        synopsis.auto_repartition = False
        sampled = synopsis.stats()["trees"][0]["sampled"]
        synopsis.delete(few.slice(0, 1_500))
        assert synopsis.stats()["rows"] == 1_500
        assert 0.4 * sampled < synopsis.stats()["trees"][0]["sampled"] < 0.6 * sampled
        low, high = (side["rows"][0].as_py() for side in (synopsis.query("rows", c=1.0).low, synopsis.query("rows", c=1.0).high))
        assert low <= 500 <= high
        synopsis.delete(few.slice(1_500))
        assert synopsis.query("rows").table["rows"].to_pylist() == [0]


def test_questions_and_planning_do_not_wait_for_a_commit(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a batch is being written, queries have the version before it, and a tree can be planned again; nothing is lost."""
    synopsis = check(db)
    writing, go_on = threading.Event(), threading.Event()

    def slowly(*given: Any) -> Any:
        writing.set()
        assert go_on.wait(HUNG)
        return write_batch(*given)

    monkeypatch.setattr("nearly.engine.changes.transactions.write_batch", slowly)
    writer = threading.Thread(target=synopsis.insert, args=(rows(ROWS, 10),))
    writer.start()
    assert writing.wait(HUNG)
    assert synopsis.repartition()
    assert synopsis.query("rows").table["rows"].to_pylist() == [ROWS]
    go_on.set()
    writer.join()
    check(db)


def test_planning_while_the_table_changes_loses_nothing(db: nearly.Session) -> None:
    synopsis = check(db)

    def change() -> None:
        for number in range(8):
            db.insert("t", rows(ROWS + 20 * number, 20, "new"))
            synopsis.query("rows")
            db.delete("t", rows(ROWS + 20 * number, 5, "new"))

    changing = threading.Thread(target=change)
    changing.start()
    while changing.is_alive():
        synopsis.repartition(levels=None if synopsis.version % 2 else "auto")
    changing.join()
    check(db)
    synopsis.repartition()
    check(db)


def test_the_versions_of_a_delta_table_are_followed(tmp_path: Path) -> None:
    import deltalake

    deltalake.write_deltalake(str(tmp_path / "d"), rows(0, ROWS))
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "d", key=["id"])
        db.create_synopsis("y", "t", "a", [["c"], ["c", "t"]], leaves=4, sample=0.2)
        db.insert("t", rows(5_000, 10, "new"))
        for step in range(3):
            deltalake.write_deltalake(str(tmp_path / "d"), rows(1_000 * (step + 1), 50, "new"), mode="append")
            deltalake.DeltaTable(str(tmp_path / "d")).delete(f"id % 7 = {step}")
            db.refresh("t")
            check(db)


CHILD = """
import sys
import nearly
db = nearly.connect(path=sys.argv[1], lazy=True)
synopsis = db.synopsis("y")
synopsis.auto_repartition = False
number = int(sys.argv[2])
while True:
    first = 10_000 + number * 10
    rows = [{"id": first + n, "c": float(n), "t": f"text {number % 7}", "a": 1.0} for n in range(10)]
    synopsis.insert(rows, batch=("s", number))
    print(number, flush=True)
    number += 1
"""


@pytest.mark.parametrize("kills", first_quick([2, 10], 1))
def test_kills_lose_nothing_and_repeat_nothing(home: Path, kills: int) -> None:
    """A writer is killed at random moments; every batch it acknowledged is there, and each exactly once."""
    chance, acknowledged = np.random.default_rng(0), -1
    for _ in range(kills):
        command = [sys.executable, "-c", CHILD, str(home / "catalog"), str(max(0, acknowledged))]  # the last one comes again
        with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for _ in range(int(chance.integers(1, 5))):
                acknowledged = max(acknowledged, int(child.stdout.readline()))
            threading.Event().wait(float(chance.random()) * 0.05)
            os.kill(child.pid, signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, child.stdout.read().split())])
        with driver_only(home / "catalog") as db:
            taken = db._engine.catalog.taken("t", "s")
            assert taken is not None
            assert acknowledged <= taken <= acknowledged + 1
            assert check(db).query("rows").table["rows"].to_pylist() == [ROWS + 10 * (taken + 1)]
