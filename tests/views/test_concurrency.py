"""Several who refresh and change at once, in threads and processes, and refreshes in the background."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from tests.fixtures.driver_only import driver_only
from tests.views.refreshing import TEXT

ABOVE = "select sum(n) as n, sum(s) as s from w"
RECOMPUTED = "select count(*) as n, sum(v) as s from t"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    pq.write_table(pa.table({"k": range(100), "v": range(100)}), tmp_path / "t.parquet")
    with driver_only(tmp_path / "catalog") as session:
        session.register("t", str(tmp_path / "t.parquet"), key=["k"])
        session.create_view("w", TEXT)
        session.create_view("above", ABOVE)
        yield session


def check(db: nearly.Session) -> None:
    db.view("above").refresh()
    for name, text in (("w", TEXT), ("above", RECOMPUTED)):
        found, expected = (db.sql(each, kernel="native").exact().table.to_pylist() for each in (f"select * from {name}", text))
        assert sorted(found, key=str) == sorted(expected, key=str)


def test_threads_that_refresh_take_turns(db: nearly.Session) -> None:
    troubles: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for batch in range(5):
                db.insert("t", [{"k": 1000 * (number + 1) + batch, "v": 1}])
                db.view("above" if batch % 2 else "w").refresh()
        except BaseException as trouble:  # noqa: BLE001  told by the test
            troubles.append(trouble)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not troubles
    check(db)


@pytest.mark.parametrize("seconds", [3, pytest.param(20, marks=pytest.mark.long)])
def test_processes_that_change_and_refresh(db: nearly.Session, tmp_path: Path, seconds: int) -> None:
    script = Path(__file__).with_name("refreshing.py")
    command = [sys.executable, str(script), str(tmp_path / "catalog")]
    root = script.parents[2]
    running = [
        subprocess.Popen([*command, str(number), str(seconds)], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number in range(2)
    ]
    for process in running:
        out, err = process.communicate(timeout=seconds + 120)
        assert process.returncode == 0, err[-2000:]
        assert int(out) > 0
    check(db)


def test_a_view_is_refreshed_in_the_background(db: nearly.Session, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    timed = db.create_view("timed", "select count(*) as n from t", every="0.2s")
    assert timed.every == 0.2
    db.insert("t", [{"k": 5000, "v": 1}])
    until = time.monotonic() + 20
    while timed.stale and time.monotonic() < until:
        time.sleep(0.05)
    assert timed.stale == {}
    assert timed.trouble is None
    with driver_only(tmp_path / "catalog") as other:
        assert other.view("timed").every == 0.2
    db.close()
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name == "nearly-views"]
