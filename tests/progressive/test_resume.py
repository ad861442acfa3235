"""Queries that go on after their tables were changed: they answer for the versions, and read the files, they began with."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.storage import versions
from nearly.engine.storage.layouts import Origin
from nearly.engine.stream.task import Pace
from nearly.errors import EngineError
from nearly.progressive.run import Request, Run
from tests.fixtures.driver_only import driver_only
from tests.processes import HUNG, environment

TEXT = "select v % 10 as g, count(*) as n, sum(v) as s from t join u on t.k % 7 = u.id group by v % 10 order by g"
OLD = "select sum(v) as s from t version as of 1"
PACE = Pace(sizes=(2, 3, 3, 4))


def registered(path: Path, copied: bool) -> nearly.Session:
    k = np.arange(100_000)
    pq.write_table(pa.table({"k": k, "v": k % 1000}), path / "t.parquet", row_group_size=1_000)
    pq.write_table(pa.table({"id": np.arange(7)}), path / "u.parquet")
    db = driver_only(path / "catalog", eager=True)
    db.register("t", path / "t.parquet", key=["k"])
    db.register("u", path / "u.parquet")
    if copied:  # as if the files were a copy that may be compacted
        catalog = db._engine.catalog
        catalog.save(replace(catalog.table("t"), origin=Origin("dataframe")))
    db.delete("t", where="k % 50 = 1")
    db.insert("t", pa.table({"k": np.arange(500) + 200_000, "v": np.full(500, 7)}))
    return db


def left_behind(db: nearly.Session, text: str, name: str) -> None:
    """The log of a query whose process was killed after two answers."""
    answers = Run(db._engine, db._engine.prepare(text), Request(pace=PACE), "begun").answers()
    assert not next(answers).exact
    next(answers)
    log = db._engine.catalog.path / "queries" / "begun"
    shutil.copytree(log, log.with_name(name), ignore=shutil.ignore_patterns(".*"))
    answers.close()


def changed(db: nearly.Session) -> None:
    for number in range(4):
        db.insert("t", pa.table({"k": np.arange(10) + 1_000_000 + 10 * number, "v": np.full(10, 3)}))
        db.delete("t", where=f"k % 97 = {number}")
    db.delete("u", where="id = 3")
    db.compact("t")
    db.update("t", {"v": "v + 1"}, where="k < 500")


@pytest.mark.parametrize("copied", [False, True])
def test_a_query_goes_on_in_its_own_version(tmp_path: Path, copied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over commits, a compaction, and sweeps when the catalog is opened; nothing but the log keeps the old files."""
    monkeypatch.setattr(versions, "KEPT", dt.timedelta(days=-1))
    db = registered(tmp_path, copied)
    right, old = (db.sql(text).exact().table.to_pylist() for text in (TEXT, OLD))
    left_behind(db, TEXT, "first")
    left_behind(db, TEXT, "second")
    left_behind(db, OLD, "past")
    changed(db)
    for _ in range(2):
        db.compact("t")
        db.close()
        db = driver_only(tmp_path / "catalog", eager=True)
    now = db.sql(TEXT).exact().table.to_pylist()
    assert now != right
    with pytest.raises(nearly.SchemaError, match="no version 1 that can still be read"):
        db.sql(OLD).exact()
    query = db.resume("first")
    assert query.exact().table.to_pylist() == right
    answers = list(query)
    assert answers[0].stats["units"] > PACE.sizes[0]
    assert answers[-1].exact
    assert answers[-1].table.to_pylist() == right
    assert list(query)[-1].table.to_pylist() == now  # asked again, it is a query like any other
    assert db.resume("past").run().table.to_pylist() == old
    db.forget("second")
    assert db.unfinished == ()
    if copied:
        before = len(list(db._engine.catalog.directory("t").glob("*-*")))
        db.close()
        db = driver_only(tmp_path / "catalog", eager=True)
        assert len(list(db._engine.catalog.directory("t").glob("*-*"))) < before
    assert db.sql(TEXT).exact().table.to_pylist() == now
    db.close()


def test_what_was_dropped_is_told(tmp_path: Path) -> None:
    db = registered(tmp_path, copied=False)
    left_behind(db, TEXT, "first")
    db.drop("t")
    with pytest.raises(EngineError, match=r"dropped|vanished"):
        db.resume("first").run()
    db.register("t", tmp_path / "t.parquet", key=["k"])
    with pytest.raises(EngineError, match=r"dropped|vanished"):
        db.resume("first").run()
    assert db.unfinished == ("first",)
    db.forget("first")
    db.close()


def test_a_killed_process_and_a_compaction(tmp_path: Path) -> None:
    """The same with a process that is really killed."""
    db = registered(tmp_path, copied=True)
    right = db.sql(TEXT).exact().table.to_pylist()
    code = (
        "import sys, time, nearly\n"
        "from nearly.engine.stream.task import Pace\n"
        "from nearly.progressive.run import Request, Run\n"
        "db = nearly.connect(path=sys.argv[1], lazy=True, eager=True)\n"
        "run = Run(db._engine, db._engine.prepare(sys.argv[2]), Request(pace=Pace(sizes=(2, 3, 3, 4))), 'killed')\n"
        "for answer in run.answers():\n"
        "    print(answer.progress, flush=True)\n"
        "    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "catalog"), TEXT]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert float(process.stdout.readline()) < 1
        changed(db)
        assert db.unfinished == ()
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=HUNG)
    until = time.monotonic() + 10
    while not db.unfinished and time.monotonic() < until:
        time.sleep(0.05)
    db.close()
    db = driver_only(tmp_path / "catalog", eager=True)
    assert db.resume("killed").run().table.to_pylist() == right
    assert db.unfinished == ()
    db.close()
