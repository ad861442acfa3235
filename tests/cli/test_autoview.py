"""`nearly autoview`, in this process and without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearly.cli.main import main
from tests.autoview.keen import held_still, keen, rows_on_disk
from tests.fixtures.driver_only import driver_only

TEXT = "select g, sum(v) as s from t where d > 3 group by g order by g"


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    numbers = range(4000)
    pq.write_table(
        pa.table({"g": [each % 9 for each in numbers], "d": [each % 11 for each in numbers], "v": numbers}), tmp_path / "t.parquet"
    )
    with keen(), driver_only(tmp_path / "catalog") as db:
        db.register("t", str(tmp_path / "t.parquet"))
        auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
        for _ in range(9):
            db.sql(TEXT).exact()
        auto.settle()
    return tmp_path / "catalog"


def test_what_sessions_left_is_shown_advised_on_and_removed(catalog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = ["--path", str(catalog)]
    assert main(["autoview", "status", *path]) == 0
    assert capsys.readouterr().out.startswith("policy lru, ")
    assert main(["autoview", "status", "--format", "json", *path]) == 0
    views = json.loads(capsys.readouterr().out)
    assert {each["tables"] for each in views} == {"t"}
    assert sum(each["bytes"] for each in views) == rows_on_disk(catalog)
    assert main(["autoview", "advice", *path]) == 0
    assert capsys.readouterr().out.startswith("CREATE MATERIALIZED VIEW auto_t_by_")
    with driver_only(catalog) as db:
        db.autoview("1MB", policy="lru")
        assert main(["autoview", "off", *path]) == 2
        assert "on in another session" in capsys.readouterr().err
    assert main(["autoview", "off", *path]) == 0
    assert capsys.readouterr().out == f"{len(views)} automatic views removed, {sum(each['bytes'] for each in views):,} bytes\n"
    assert rows_on_disk(catalog) == 0
    with driver_only(catalog) as db:
        auto = held_still(db.autoview("1MB", policy="lru"))
        assert auto.status().views == ()
        assert auto.keeping.mining.facts, "what was learned stays"


def test_a_catalog_without_any(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = ["--path", str(tmp_path / "catalog")]
    for verb, told in (("status", "policy none, 0 automatic views"), ("advice", ""), ("off", "0 automatic views removed")):
        assert main(["autoview", verb, *path]) == 0
        assert told in capsys.readouterr().out
    assert not (tmp_path / "catalog" / "autoview").exists()
