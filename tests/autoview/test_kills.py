"""A process that is killed while it makes, uses and drops views leaves no wrong answer and no file that nobody knows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearly.autoview.store import LIST
from tests.autoview.keen import held_still
from tests.fixtures.driver_only import driver_only

ROOT = Path(__file__).resolve().parents[2]
TEXT = "select g, sum(v) as s from t where d = {} group by g order by g"
CHILD = """
import sys
import nearly
from nearly.autoview import course, making, mining
course.SMALLEST, mining.SHARE, making.PATIENCE, making.Making.fits = 0.0, 1e9, 1e9, lambda *_: True
db = nearly.connect(lazy=True, path=sys.argv[1])
auto = db.autoview("8kb", policy="lru", slowdown=10)
for turn in range(1_000_000):
    db.sql("select g, sum(v) as s from t where d = %d group by g order by g" % (turn % 11)).exact()
    if turn % 5 == 0:
        auto.settle()
    if turn == 12:
        print("going", flush=True)
"""


@pytest.mark.parametrize("moment", [0.0, *(pytest.param(0.05 * place, marks=pytest.mark.long) for place in range(1, 6))])
def test_a_kill_leaves_nothing_behind(tmp_path: Path, moment: float) -> None:
    rows = pa.table(
        {"g": [number % 9 for number in range(4000)], "d": [number % 11 for number in range(4000)], "v": list(range(4000))}
    )
    pq.write_table(rows, tmp_path / "t.parquet")
    catalog = tmp_path / "catalog"
    with driver_only(catalog) as db:
        db.register("t", str(tmp_path / "t.parquet"))
        expected = {day: db.sql(TEXT.format(day)).exact().table for day in range(11)}
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    with subprocess.Popen([sys.executable, "-c", CHILD, str(catalog)], stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "going\n"
        time.sleep(moment)
        child.send_signal(signal.SIGKILL)
    with driver_only(catalog) as db:
        auto = held_still(db.autoview("8kb", policy="lru"))
        files = {each.parent for each in (catalog / "autoview" / "rows").rglob("*.parquet")}
        assert files == {each.path for each in auto.keeping.store.kept.values()}
        assert len(list((catalog / "autoview" / "rows").iterdir())) == len(files)
        for day, table in expected.items():
            assert db.sql(TEXT.format(day)).exact().table.equals(table)


def test_drafts_of_the_list_are_removed(tmp_path: Path) -> None:
    """A kill while it is written leaves one."""
    directory = tmp_path / "catalog" / "autoview"
    directory.mkdir(parents=True)
    draft, other = directory / f".{LIST}.0123abcd", directory / f".{LIST}.notes"
    for each in (draft, other):
        each.write_text("{")
    with driver_only(tmp_path / "catalog") as db:
        held_still(db.autoview("8kb", policy="lru"))
        assert not draft.exists()
        assert other.exists()
