"""Versions of tables written out: the same rows, all at once, over nothing that is there."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import nearly
from tests.fixtures.driver_only import driver_only
from tests.fixtures.lakes import bag_of, rows


@pytest.fixture
def own(tmp_path: Path) -> Path:
    pq.write_table(rows(0, 40), tmp_path / "own.parquet")
    return tmp_path / "own.parquet"


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_law_a_version_is_the_same_outside(tmp_path: Path, own: Path, form: str) -> None:
    if form == "delta":
        pytest.importorskip("deltalake")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", own)
        db.insert("t", rows(100, 3))
        db.delete("t", where="k < 7")
        db.delete("t", where="true")
        for version in (1, 2, 3, 4):
            out = db.export("t", tmp_path / f"out/{version}", format=form, version=version)
            db.register("u", out)
            assert bag_of(db.sql("select * from u").run().table) == bag_of(
                db.sql(f"select * from t version as of {version}").run().table
            )
        db.export("t", tmp_path / "present", format=form)
        assert [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".")] == []


def test_differs_nothing_is_written_over_and_nothing_half_written(
    tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", own)
        with pytest.raises(nearly.EngineError, match="exists"):
            db.export("t", own)
        with pytest.raises(nearly.SchemaError, match="format"):
            db.export("t", tmp_path / "out", format="csv")
        with pytest.raises(nearly.SchemaError, match="no version 9"):
            db.export("t", tmp_path / "out", version=9)
        monkeypatch.setattr(pq.ParquetWriter, "write_table", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "disk full")))
        with pytest.raises(nearly.EngineError, match="disk full"):
            db.export("t", tmp_path / "out")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["catalog", "own.parquet"]
