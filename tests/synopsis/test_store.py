"""Snapshots: a state survives the disk, any session may write one, and none that is older, damaged or half-written counts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.synopsis.build.drafting import Shape
from nearly.synopsis.build.packing import delta_encode, from_bytes, pack_state, to_bytes, unpack_state
from nearly.synopsis.query.reading import TreeReading
from tests.fixtures.driver_only import driver_only
from tests.synopsis.oracle import ask, built, rows_of


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


@pytest.fixture
def home(tmp_path: Path) -> Path:
    rows = {"id": np.arange(500), "c": np.random.default_rng(0).random(500), "t": ["text 0"] * 500, "a": np.ones(500)}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "t.parquet", key=["id"])
        db.create_synopsis("y", "t", "a", [["c"], ["c", "t"]], leaves=4, sample=0.2)
    return tmp_path


def row(number: int, text: str = "x") -> dict[str, Any]:
    return {"id": number, "c": 0.5, "t": text, "a": 2.0}


def count(db: nearly.Session) -> float:
    return float(db.synopsis("y").query("rows").table["rows"][0].as_py())


def described(home: Path) -> dict[str, Any]:
    return dict(json.loads((home / "catalog" / "synopses" / "y" / "synopsis.json").read_text()))


def test_a_later_snapshot_is_never_replaced_by_an_older_one(home: Path) -> None:
    with driver_only(home / "catalog") as first:
        first.synopsis("y").insert([row(1_000, "first")])
        with driver_only(home / "catalog") as second:
            assert count(second) == 501
            second.synopsis("y").insert([row(1_001, "second")])
        assert (described(home)["version"], described(home)["columns"][1]["texts"]) == (3, ["text 0", "first", "second"])
        assert first.synopsis("y").version == 2
    assert described(home)["version"] == 3
    with driver_only(home / "catalog") as db:
        assert count(db) == 502


def test_closing_without_a_snapshot_loses_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with driver_only(home / "catalog") as db, monkeypatch.context() as patch:
        db.synopsis("y").insert([row(1_000)])
        patch.setattr("nearly.synopsis.upkeep.store.write_durably", _full_disk)
        db.synopsis("y").close()
        db._synopses._open.clear()
    assert described(home)["version"] == 1
    with driver_only(home / "catalog") as db:
        assert count(db) == 501


def _full_disk(path: Path, data: bytes) -> None:
    raise nearly.EngineError(f"cannot write {path}: No space left on device")


def test_leftovers_of_killed_writers_are_removed(home: Path) -> None:
    place = home / "catalog" / "synopses" / "y"
    left = [place / ".synopsis.json.1234abcd", place / described(home)["snapshot"] / ".tree-0.npz.1234abcd"]
    for each in left:
        each.write_bytes(b"half")
    (place / "snapshot-7-1234abcd").mkdir()
    with driver_only(home / "catalog") as db:
        assert count(db) == 500
    assert not any(each.exists() for each in (*left, place / "snapshot-7-1234abcd"))


def test_a_dropped_synopsis_stays_dropped(home: Path) -> None:
    """Whoever has it open still answers, but its snapshot does not bring it back."""
    with driver_only(home / "catalog") as first:
        first.synopsis("y").insert([row(1_000)])
        with driver_only(home / "catalog") as second:
            second.drop_synopsis("y")
        assert count(first) == 501
        with pytest.raises(nearly.EngineError, match="dropped by another session"):
            first.synopsis("y").save()
    with driver_only(home / "catalog") as db:
        assert db.synopses == ()
        db.create_synopsis("y", "t", "a", ["c"])
        assert count(db) == 501


@pytest.mark.parametrize("damage", ["synopsis.json", "snapshot"])
def test_damage_is_an_error_that_says_what_to_do(home: Path, damage: str) -> None:
    for file in (home / "catalog" / "synopses" / "y").rglob("*"):
        if file.is_file() and damage in str(file):
            file.write_bytes(b"{}")
    with driver_only(home / "catalog") as db, pytest.raises(nearly.EngineError, match="build it again"):
        db.synopsis("y")


def test_missing_files_are_an_error_that_says_what_to_do(home: Path) -> None:
    shutil.rmtree(home / "catalog" / "synopses" / "y" / described(home)["snapshot"])
    with driver_only(home / "catalog") as db, pytest.raises(nearly.EngineError, match="lacks files; drop it and build it again"):
        db.synopsis("y")


def test_a_synopsis_of_an_older_format_is_refused_and_can_be_dropped(home: Path) -> None:
    file = home / "catalog" / "synopses" / "y" / "synopsis.json"
    file.write_text(json.dumps(described(home) | {"format": 2}))
    with driver_only(home / "catalog") as db:
        with pytest.raises(nearly.EngineError, match=r"format 2, not 3.*build it again.*insert them there"):
            db.synopsis("y")
        query = db.sql("select count(*) as n from t")
        assert "synopsis y: no, the synopsis was written by another version" in query.explain()
        assert query.run().table["n"].to_pylist() == [500]
        db.drop_synopsis("y")
        db.create_synopsis("y", "t", "a", ["c"])
        assert count(db) == 500
