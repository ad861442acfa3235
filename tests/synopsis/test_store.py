"""Durability: what was acknowledged is there after any kill, once; what was not is not."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nearly
from nearly.engine.storage.durable import write_durably
from nearly.plan import types
from nearly.synopsis.build.definition import Definition
from nearly.synopsis.build.drafting import Shape
from nearly.synopsis.build.packing import delta_encode, from_bytes, pack_state, to_bytes, unpack_state
from nearly.synopsis.catalogue import reopened
from nearly.synopsis.query.reading import TreeReading
from nearly.synopsis.structure.domain import Domain
from nearly.synopsis.structure.rows import Rows
from nearly.synopsis.structure.schema import MeasuredColumn, Schema
from nearly.synopsis.synopsis import Synopsis
from nearly.synopsis.upkeep.store import Store
from tests.fixtures.long import first_quick
from tests.processes import HUNG, environment
from tests.synopsis.oracle import LoggedArchive, ask, built, rows_of

ROOT = Path(__file__).resolve().parents[2]
KILLER = """
import os, random, signal, sys, time
from pathlib import Path
from nearly.synopsis.catalogue import reopened

def opened():
    return reopened(Path(sys.argv[1]), lambda definition, store: None)

def follow(told):
    synopsis = opened()
    synopsis.auto_repartition = False
    number = max(0, synopsis.stats()["streams"].get("s", -1))      # the last batch comes again, as after a crash of Spark
    while True:
        rows = [{"id": 10_000 + number * 10 + each, "c": float(each), "a": 1.0, "t": f"text {number % 7}"} for each in range(10)]
        synopsis.insert(rows, batch=("s", number))
        os.write(told, b"%d " % number)
        number += 1

chance, acknowledged = random.Random(0), -1
for _ in range(int(sys.argv[2])):
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        follow(told)
    os.close(told)
    said, wanted = b"", chance.randrange(6)      # how many batches are acknowledged before the kill
    while said.count(b" ") < wanted:
        said += os.read(heard, 1 << 20)
    time.sleep(chance.random() * 0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(heard, 1 << 20):
        said += more
    os.close(heard)
    acknowledged = max([acknowledged, *map(int, said.split())])
    synopsis = opened()
    last = synopsis.stats()["streams"].get("s", -1)
    assert acknowledged <= last <= acknowledged + 1, (acknowledged, last)
    wanted = 500 + 10 * (last + 1)
    found = [synopsis.query(name).table[name][0].as_py() for name in ("rows", "sum")]
    assert found == [wanted, wanted], (found, wanted)
print(acknowledged)
"""


def definition(rows: int) -> Definition:
    domains = [Domain("c", types.DOUBLE), Domain("t", types.STRING, ["text 0"])]
    return Definition("s", "t", "v", rows, Schema(domains, (MeasuredColumn("a", types.DOUBLE),), ("id",), 0), (Shape((0,), 8, 50),))


def base_rows() -> Rows:
    return rows_of(np.array([np.random.default_rng(0).random(500) * 10, np.zeros(500)]), np.ones(500))


def stored(directory: Path) -> Synopsis:
    rows = base_rows()
    made = definition(500)
    state = built(rows, made.shapes[0])
    store = Store(directory)
    store.save(made, [state], 0, {})
    return Synopsis(made, [state], LoggedArchive([rows], store), store)


def reopen(directory: Path, rows: Sequence[Rows] = ()) -> Synopsis:
    return reopened(directory, lambda _, store: LoggedArchive(list(rows), store))


def test_a_state_survives_the_disk() -> None:
    """Law: unpack(pack(s)) answers as s does, to the last bit."""
    rng = np.random.default_rng(1)
    rows = rows_of(rng.random((2, 4_000)), np.where(rng.random(4_000) < 0.1, np.nan, np.round(rng.random(4_000) * 100, 2)))
    state = built(rows, Shape((0, 1), 16, 500))
    again = unpack_state(from_bytes(to_bytes(pack_state(state))))
    for aggregate in ("rows", "sum", "avg", "min", "stddev_pop"):
        one, two = (ask(TreeReading(each), aggregate, (0, 0.2, 0.7), (1, 0.1, 0.6)) for each in (state, again))
        assert one == two


@pytest.mark.parametrize(
    ("values", "size"),
    [
        (np.arange(100.0), 1),
        (np.round(np.linspace(0, 1, 100), 2), 1),
        (np.round(np.linspace(0, 100, 100), 2), 2),
        (np.linspace(0, 1, 100) ** 3, 8),
    ],
)
def test_differences_from_the_leaf_are_short_and_lose_nothing(values: np.ndarray, size: int) -> None:
    encoded = delta_encode(values, np.zeros(100, int), 1)
    assert encoded["delta"].dtype.itemsize == size


def test_batches_survive_without_a_snapshot(tmp_path: Path) -> None:
    synopsis = stored(tmp_path / "s")
    synopsis.insert([{"id": 1_000, "c": 5.0, "a": 2.0, "t": "neu ü"}], batch=("s", 0))
    synopsis.delete([{"id": 1_000, "c": 5.0, "a": 2.0, "t": "neu ü"}], batch=("s", 1))
    synopsis.insert([{"id": 1_001, "c": 5.0, "a": 2.0, "t": "neu ü"}], batch=("s", 2))
    synopsis.insert([{"id": 1_001, "c": 5.0, "a": 2.0, "t": "neu ü"}], batch=("s", 2))
    synopsis.store.close()
    again = reopen(tmp_path / "s")
    assert again.query("rows").table["rows"][0].as_py() == 501
    assert again.query("rows", t="neu ü").hard_high["rows"][0].as_py() >= 1
    assert again.query("rows", t="nobody has this").table["rows"][0].as_py() == 0
    assert again.stats()["streams"] == {"s": 2}


def test_two_writers_are_refused(tmp_path: Path) -> None:
    synopsis = stored(tmp_path / "s")
    synopsis.insert([{"id": 1, "c": 5.0, "a": 2.0, "t": "x"}])
    other = reopen(tmp_path / "s")
    assert other.query("rows").table["rows"][0].as_py() == 501, "reading is free"
    with pytest.raises(nearly.EngineError, match="another session"):
        other.insert([{"id": 2, "c": 5.0, "a": 2.0, "t": "x"}])


ROW = {"id": 1, "c": 5.0, "a": 2.0, "t": "x"}


def count(synopsis: Synopsis) -> float:
    return synopsis.query("rows").table["rows"][0].as_py()


def test_a_stale_writer_takes_what_others_wrote(tmp_path: Path) -> None:
    """Law: however writers take turns, every acknowledged batch is counted once, texts keep their numbers."""
    stored(tmp_path / "s").store.close()
    first, second = reopen(tmp_path / "s"), reopen(tmp_path / "s")
    second.insert([ROW | {"t": "new"}])
    with pytest.raises(nearly.EngineError, match="another session"):
        first.insert([ROW | {"id": 2}])
    second.close()
    first.insert([ROW | {"id": 2, "t": "newer"}])
    assert count(first) == 502
    first.close()
    second.insert([ROW | {"id": 3, "t": "newest"}])
    second.close()
    again = reopen(tmp_path / "s")
    assert count(again) == 503
    assert again.schema.domains[1].texts == ["text 0", "new", "newer", "newest"]


def test_a_writer_of_a_dropped_synopsis_is_refused(tmp_path: Path) -> None:
    stored(tmp_path / "s").store.close()
    old = reopen(tmp_path / "s")
    shutil.rmtree(tmp_path / "s")
    stored(tmp_path / "s").store.close()
    with pytest.raises(nearly.EngineError, match="dropped by another session"):
        old.insert([ROW])
    assert count(reopen(tmp_path / "s")) == 500


def test_texts_of_a_batch_that_was_not_written_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: numbers of texts in memory are those that the log gives them."""
    synopsis = stored(tmp_path / "s")
    with monkeypatch.context() as patch:
        patch.setattr("nearly.synopsis.upkeep.log.write_durably", _full_disk)
        with pytest.raises(nearly.EngineError):
            synopsis.insert([ROW | {"t": "lost"}])
    with pytest.raises(nearly.SchemaError):
        synopsis.update([ROW | {"id": 99}], [ROW | {"t": "refused"}])
    synopsis.insert([ROW | {"t": "kept"}])
    synopsis.store.close()
    again = reopen(tmp_path / "s")
    assert again.schema.domains[1].texts == synopsis.schema.domains[1].texts == ["text 0", "kept"]
    assert count(again) == 501


def _full_disk(path: Path, data: bytes) -> None:
    raise nearly.EngineError(f"cannot write {path}: No space left on device")


def test_questions_and_planning_do_not_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a batch is being written, queries have the state before it, and a tree can be planned again; nothing is lost by it."""
    synopsis = stored(tmp_path / "s")
    synopsis.insert([ROW])
    writing, go_on = threading.Event(), threading.Event()

    def slow_disk(path: Path, data: bytes) -> None:
        writing.set()
        assert go_on.wait(HUNG)
        write_durably(path, data)

    monkeypatch.setattr("nearly.synopsis.upkeep.log.write_durably", slow_disk)
    writer = threading.Thread(target=synopsis.insert, args=([ROW | {"id": 2}],))
    writer.start()
    assert writing.wait(HUNG)
    assert count(synopsis) == 501
    assert synopsis.repartition()
    assert count(synopsis) == 501
    go_on.set()
    writer.join()
    assert count(synopsis) == 502
    synopsis.repartition()
    synopsis.store.close()
    assert count(synopsis) == count(reopen(tmp_path / "s")) == 502


def test_closing_without_a_snapshot_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synopsis = stored(tmp_path / "s")
    synopsis.insert([ROW])
    with monkeypatch.context() as patch:
        patch.setattr("nearly.synopsis.upkeep.store.write_durably", _full_disk)
        synopsis.close()
    assert count(reopen(tmp_path / "s")) == 501


def test_leftovers_of_killed_writers_are_removed(tmp_path: Path) -> None:
    """Drafts of files and of snapshots go when the synopsis is next opened, but not while somebody writes."""
    synopsis = stored(tmp_path / "s")
    synopsis.insert([ROW])
    drafts = [tmp_path / "s" / ".synopsis.json.1234abcd", tmp_path / "s" / "log" / ".000000000002.npz.1234abcd"]
    for each in drafts:
        each.write_bytes(b"half")
    (tmp_path / "s" / "snapshot-7-1234abcd").mkdir()
    reopen(tmp_path / "s")
    assert all(each.exists() for each in drafts)
    synopsis.store.close()
    assert count(reopen(tmp_path / "s")) == 501
    assert not any(each.exists() for each in (*drafts, tmp_path / "s" / "snapshot-7-1234abcd"))


def test_a_gap_in_the_log_is_an_error(tmp_path: Path) -> None:
    synopsis = stored(tmp_path / "s")
    for number in range(3):
        synopsis.insert([ROW | {"id": 1_000 + number}])
    synopsis.store.close()
    (tmp_path / "s" / "log" / "000000000002.npz").unlink()
    with pytest.raises(nearly.EngineError, match="batch 2"):
        reopen(tmp_path / "s")


def test_tickets_differ_from_batch_to_batch_and_session_to_session(tmp_path: Path) -> None:
    """Rows without a key: equal draws in every session would sample the same places of every batch."""
    made = replace(definition(500), schema=replace(definition(500).schema, key=()))
    store = Store(tmp_path / "s")
    state = built(base_rows(), made.shapes[0])
    store.save(made, [state], 0, {})
    store.close()
    tickets: set[float] = set()
    for _ in range(3):
        synopsis = reopen(tmp_path / "s")
        for _ in range(2):
            synopsis.insert({"c": np.arange(50.0), "a": np.arange(50.0), "t": ["x"] * 50})
            tickets |= set(synopsis.store.log.read(synopsis.stats()["batches"]).changes[0].rows.ticket.tolist())
        synopsis.close()
    assert len(tickets) == 300


@pytest.mark.parametrize("damage", ["synopsis.json", "snapshot"])
def test_damage_is_an_error_that_says_what_to_do(tmp_path: Path, damage: str) -> None:
    stored(tmp_path / "s").store.close()
    for file in (tmp_path / "s").rglob("*"):
        if file.is_file() and damage in str(file):
            file.write_bytes(b"{}")
    with pytest.raises(nearly.EngineError, match="build it again"):
        reopen(tmp_path / "s")


@pytest.mark.parametrize("kills", first_quick([5, 20], 1))
def test_kills_lose_nothing_and_repeat_nothing(tmp_path: Path, kills: int) -> None:
    """A follower is killed at random moments; every batch it acknowledged is there, and each exactly once."""
    stored(tmp_path / "s").store.close()
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path / "s"), str(kills)],
        env=environment(),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=HUNG,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > kills
