"""Tables that are changed and read at once, by one process and by several."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.versions import MOST_BATCHES, REMEMBERED, VersionStore
from nearly.engine.stream.task import Pace
from nearly.errors import Conflict, EngineError, NearlyError
from nearly.progressive.run import Request, Run
from tests.engine.changes.committing import ROWS, rows
from tests.fixtures.driver_only import driver_only

ROOT = Path(__file__).resolve().parents[3]


def test_a_progressive_query_answers_for_the_version_it_began_with(tmp_path: Path) -> None:
    k = np.arange(200_000)
    pq.write_table(pa.table({"k": k, "v": k % 1000}), tmp_path / "t.parquet", row_group_size=2_000)
    with driver_only(tmp_path / "catalog", eager=True) as db:
        db.register("t", tmp_path / "t.parquet", key=["k"])
        db.delete("t", where="k % 50 = 1")
        text = "select v % 10 as g, count(*) as n, sum(v) as s from t group by v % 10 order by g"
        right = db.sql(text).exact().table.to_pylist()
        pace = Pace(sizes=(2, 3, 3, 4))
        answers = Run(db._engine, db._engine.prepare(text), Request(pace=pace), "began").answers()
        first = next(answers)
        assert not first.exact
        for number in range(10):
            db.insert("t", pa.table({"k": np.arange(10) + 1_000_000 + 10 * number, "v": np.full(10, 7)}))
            db.delete("t", where=f"k % 97 = {number}")
        db.compact("t")
        *_, last = answers
        assert last.exact
        assert last.table.to_pylist() == right
        assert db.sql(text).exact().table.to_pylist() != right


def test_threads_that_change_one_table_take_turns(tmp_path: Path) -> None:
    pq.write_table(rows(0, 0), tmp_path / "t.parquet")
    trouble: list[BaseException] = []
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "t.parquet", key=["k"])

        def work(writer: int) -> None:
            try:
                for batch in range(5):
                    db.insert("t", rows(writer, batch))
                    if batch == 3:
                        with db.transaction():
                            db.delete("t", rows(writer, 0))
                            db.delete("t", rows(writer, 1))
            except NearlyError as error:
                trouble.append(error)

        threads = [threading.Thread(target=work, args=(writer,)) for writer in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert trouble == []
        assert db.table("t").info.rows == ROWS * (1 + 4 * 3)


@pytest.mark.parametrize("seconds", [4, pytest.param(30, marks=pytest.mark.long)])
def test_processes_that_change_and_read_one_table(tmp_path: Path, seconds: int) -> None:
    """No acknowledged batch is lost, none is there twice, and every answer is of some version."""
    pq.write_table(rows(-1, 0).slice(0, 0), tmp_path / "t.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "t.parquet", key=["k"])
    command = [sys.executable, str(Path(__file__).with_name("committing.py")), str(tmp_path / "catalog")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])}
    writers = [
        subprocess.Popen(
            [*command, str(number), str(seconds)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for number in range(2)
    ]
    done = []
    for writer in writers:
        out, err = writer.communicate(timeout=seconds + 300)
        assert writer.returncode == 0, err[-2000:]
        done.append(len(out.split()))
    with driver_only(tmp_path / "catalog") as db:
        found = db.sql("select k, v from t").exact().table
    values = dict(zip(found["k"].to_pylist(), found["v"].to_pylist(), strict=True))
    assert len(values) == found.num_rows
    expected = {}
    for number, batches in enumerate(done):
        assert batches > 0
        for batch in range(batches):
            if batch % 3 != 1:
                expected.update(dict.fromkeys(rows(number, batch)["k"].to_pylist(), -1 if batch % 3 == 2 else batch))
    assert values == expected


def test_a_commit_that_is_done_is_no_error_when_more_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After many batches a table is described anew; whoever was told of an error would commit his rows again."""
    pq.write_table(rows(0, 0), tmp_path / "t.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "t.parquet")

        def refuse(*_: object) -> None:
            raise EngineError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(VersionStore, "begin", refuse)
            for batch in range(1, MOST_BATCHES + 2):
                db.insert("t", rows(0, batch))
        assert "could not be described again" in caplog.text
        db.insert("t", rows(0, MOST_BATCHES + 2))
        assert db.table("t").info.rows == ROWS * (MOST_BATCHES + 3)
        assert len(db.history("t")) == MOST_BATCHES + 3
        assert len(list((db._engine.catalog.directory("t")).glob("whole-*"))) == 2


def test_a_conflict_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(rows(0, 0), tmp_path / "t.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "t.parquet")

        def refuse(*_: object) -> None:
            raise Conflict("someone else was first")

        with monkeypatch.context() as patch:
            patch.setattr(Catalog, "commit_batches", refuse)
            with pytest.raises(Conflict):
                db.insert("t", rows(0, 1))
        assert not list(db._engine.catalog.directory("t").glob("changes-*"))
        assert db.insert("t", rows(0, 1)).rows == 2 * ROWS


def test_what_is_remembered_of_versions_is_bounded(tmp_path: Path) -> None:
    pq.write_table(rows(0, 0), tmp_path / "t.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "t.parquet")
        for batch in range(1, REMEMBERED + 10):
            db.insert("t", rows(0, batch))
        assert db.changes("t", 1).num_rows == ROWS * (REMEMBERED + 9)
        assert len(db._engine.catalog._versions._at) <= REMEMBERED
        for version in (1, 5, REMEMBERED + 9):
            assert db.sql(f"select count(*) as n from t version as of {version}").exact().table["n"].to_pylist() == [ROWS * version]
