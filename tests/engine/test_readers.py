"""Tables that change while they are read: every answer is that of one version, and no file goes while somebody reads it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.locks import shared, unshared
from tests.engine.reading import ROWS, TEXTS, ask_for, part

RUN = Path(__file__).with_name("reading.py")


class Committer:
    """Adds parts to a table of the user's files and to one of the library's own, again and again, and prepares layouts."""

    def __init__(self, db: nearly.Session, files: Path, spark: Any) -> None:
        self.db, self.files, self.spark = db, files, spark
        self.committed = 1
        self.trouble: BaseException | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(120)
        if self.trouble is not None:
            raise self.trouble

    def _work(self) -> None:
        try:
            while not self._done.is_set() and self.committed < 60:
                pq.write_table(part(self.committed), self.files / f"{self.committed:03d}.parquet", row_group_size=4_000)
                self.db.refresh("files")
                self.db.append("rows", self.spark.createDataFrame(part(self.committed)))
                self.committed += 1
                if self.committed % 4 == 0:
                    self.db.prepare("rows")
        except BaseException as trouble:  # noqa: BLE001  raised by the one who waits
            self.trouble = trouble


@pytest.fixture
def changing(spark: Any, tmp_path: Path) -> Iterator[tuple[nearly.Session, Path]]:
    files = tmp_path / "files"
    files.mkdir()
    pq.write_table(part(0), files / "000.parquet", row_group_size=4_000)
    with nearly.connect(spark, path=tmp_path / "catalog", eager=True) as db:
        db.register("files", files)
        db.register("rows", spark.createDataFrame(part(0)))
        yield db, files


@pytest.mark.parametrize("seconds", [4, pytest.param(30, marks=pytest.mark.long)])
def test_law_an_answer_is_of_one_version(changing: tuple[nearly.Session, Path], spark: Any, seconds: int) -> None:
    db, files = changing
    with Committer(db, files, spark) as committer:
        asked, wrong = ask_for(db, seconds, ("files", "rows"))
    assert wrong == []
    assert asked > 0
    assert committer.committed > 1
    assert db.sql(TEXTS[0].format("rows")).exact().table["n"].to_pylist() == [ROWS * committer.committed]


@pytest.mark.long
def test_law_an_answer_is_of_one_version_in_another_process(
    changing: tuple[nearly.Session, Path], spark: Any, tmp_path: Path
) -> None:
    """Readers that open the catalog again and again remove what no table refers to, and what nobody reads."""
    db, files = changing
    command = [sys.executable, str(RUN), str(tmp_path / "catalog"), "40"]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    with Committer(db, files, spark):
        asked, wrong = ask_for(db, 30, ("files", "rows"))
        ended = [reader.communicate(timeout=200) for reader in readers]
    assert wrong == []
    assert asked > 0
    assert [reader.returncode for reader in readers] == [0, 0], [errors[-2000:] for _, errors in ended]
    assert all(int(printed) > 0 for printed, _ in ended)


def test_what_is_read_stays(spark: Any, tmp_path: Path) -> None:
    """A table that is dropped while it is read is gone for others, and its files go when nobody reads them any more."""
    with nearly.connect(spark, path=tmp_path / "catalog", eager=True) as db:
        db.register("rows", spark.createDataFrame(part(0)))
        table = db._engine.catalog.table("rows")
        directory = Path(table.base.path)
        with db._engine.reading([table]):
            db.drop("rows")
            Catalog(tmp_path / "catalog")
            assert any(directory.rglob("*.parquet"))
        Catalog(tmp_path / "catalog")
        assert not directory.exists()


def test_readers_do_not_exclude_each_other(tmp_path: Path) -> None:
    with shared(tmp_path), shared(tmp_path), unshared(tmp_path) as free:
        assert not free
    with unshared(tmp_path) as free:
        assert free
    with shared(tmp_path / "gone"), unshared(tmp_path / "gone") as free:
        assert not free


def test_versions_are_in_order(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    pq.write_table(part(0), files / "0.parquet")
    with nearly.connect(path=tmp_path / "catalog", lazy=True) as db:
        versions = []
        for number in (1, 2):
            db.register("t", files)
            versions.append(db._engine.catalog.table("t").version)
            db.refresh("t")
            versions.append(db._engine.catalog.table("t").version)
            pq.write_table(part(number), files / f"{number}.parquet")
            db.refresh("t")
            versions.append(db._engine.catalog.table("t").version)
            plan = db._engine.prepare("select count(*) as n from t").query
            assert plan is not None
            versions.append(next(node.version for node in plan.plan.walk() if hasattr(node, "version")))
    assert versions == [1, 1, 2, 2, 2, 2, 3, 3]
