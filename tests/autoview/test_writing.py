"""Views are written while queries go on, within the limit at every moment, and a disk that refuses costs little."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.autoview import store
from nearly.autoview.autoview import AutoView
from nearly.autoview.store import NoRoom
from tests.autoview.keen import held_still, keen, rows_on_disk
from tests.fixtures.driver_only import driver_only

GROUPED = "select g, sum(v) as s from t where v > {} group by g"
SECONDS = 20.0


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    pq.write_table(pa.table({"g": [number % 9 for number in range(3000)], "v": list(range(3000))}), tmp_path / "t.parquet")
    with keen(), driver_only(tmp_path / "catalog") as session:
        session.register("t", str(tmp_path / "t.parquet"))
        yield session


def opened(db: nearly.Session, storage: str) -> AutoView:
    return held_still(db.autoview(storage, policy="lru", slowdown=10))


class SlowDisk:
    """A disk that writes rows no sooner than it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.was_told = True
        flush = store.flush

        def slowly(path: Path) -> None:
            self.begun.set()
            self.was_told &= self.may_end.wait(SECONDS)
            flush(path)

        monkeypatch.setattr(store, "flush", slowly)

    def while_writing(self, write: Callable[[], object], do: Callable[[], object]) -> None:
        """Do something while something else is being written, and wait for both."""
        writer = threading.Thread(target=write)
        writer.start()
        try:
            assert self.begun.wait(SECONDS)
            do()
        finally:
            self.may_end.set()
            writer.join()
        assert self.was_told, "it went on only when the writing was over"


def test_a_query_does_not_wait_for_the_writing_of_a_view(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    auto, disk = opened(db, "1MB"), SlowDisk(monkeypatch)
    sources: list[str] = []

    def ask() -> None:
        asking = threading.Thread(target=lambda: sources.append(db.sql(GROUPED.format(9)).exact().source))
        asking.start()
        asking.join(SECONDS / 2)
        assert sources == ["native"]
        assert not auto.status().views

    disk.while_writing(lambda: db.sql(GROUPED.format(3)).exact(), ask)
    assert auto.status().views


def test_off_waits_for_what_is_written(db: nearly.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    auto, disk = opened(db, "1MB"), SlowDisk(monkeypatch)
    ending = threading.Thread(target=auto.off)

    def end() -> None:
        ending.start()
        while not auto.keeping.store._is_closed:
            disk.may_end.wait(0.01)

    disk.while_writing(lambda: db.sql(GROUPED.format(3)).exact(), end)
    ending.join()
    assert rows_on_disk(tmp_path / "catalog") == 0
    assert auto.status().bytes == 0


def test_two_makers_keep_the_limit(db: nearly.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one of them writes is taken, though it is not there yet."""
    auto = opened(db, "1MB")
    for number in range(4):
        db.sql(GROUPED.format(number)).exact()
    kept = auto.keeping.store
    views = list(kept.kept.values())
    limit = kept.limit = kept.bytes
    disk, measured = SlowDisk(monkeypatch), []

    def add(place: int, goes: Callable[[], None]) -> None:
        view = views[place]
        rows = store.Encoded(pa.py_buffer((view.path / store.FILE).read_bytes()), view.table.rows)
        measured.append(rows_on_disk(tmp_path / "catalog"))
        kept.add(view.candidate, rows, view.versions, view.holding, view.zone, goes)

    def again() -> None:
        assert kept.bytes <= limit
        with pytest.raises(NoRoom):
            add(1, lambda: None)
        assert kept.bytes <= limit
        measured.append(rows_on_disk(tmp_path / "catalog"))

    disk.while_writing(lambda: add(0, lambda: kept.remove(views[0].id)), again)
    assert views[0].id in kept.kept
    assert rows_on_disk(tmp_path / "catalog") == kept.bytes
    assert max(measured) <= limit
