"""Averages of groups in which a handful of skewed values changed, asked of a stale view: intervals hold, or are withheld."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from tests.fixtures.driver_only import driver_only
from tests.fixtures.long import first_quick

GROUPS, ROWS, TOUCHED = 60, 300, 0.02
AVERAGES = "select g, avg(x) as a from stored group by g order by g"


def stale(path: Path, seed: int) -> tuple[nearly.Session, dict[int, float]]:
    """A session whose view lacks what changed, and the averages as they are. Keys are drawn, so that samples are others."""
    make = np.random.default_rng(seed)
    keys = make.choice(2**40, GROUPS * ROWS, replace=False)
    rows = pa.table({"id": keys, "g": np.arange(GROUPS * ROWS) % GROUPS, "x": make.normal(100, 20, GROUPS * ROWS)})
    pq.write_table(rows, path / "rows.parquet")
    session = driver_only(path / f"catalog-{seed}")
    session.register("rows", str(path / "rows.parquet"), key=["id"])
    session.create_view("stored", "select id, g, x from rows", sample=0.1)
    touched = np.flatnonzero(make.random(GROUPS * ROWS) < TOUCHED)
    changed = rows["x"].to_numpy().copy()
    changed[touched] *= make.lognormal(0, 1.2, len(touched))
    session.merge("rows", rows.set_column(2, "x", pa.array(changed)).take(touched))
    return session, {group: float(changed[group::GROUPS].mean()) for group in range(GROUPS)}


@pytest.mark.parametrize("seed", first_quick(range(12), 1))
def test_averages_hold_or_are_withheld(seed: int, tmp_path: Path) -> None:
    session, truth = stale(tmp_path, seed)
    with session:
        answer = session.view("stored").query(AVERAGES)
        assert not answer.exact
        low, high = ({row["g"]: row["a"] for row in table.to_pylist()} for table in (answer.low, answer.high))
    given = [group for group in truth if low[group] is not None and math.isfinite(low[group] + high[group])]
    held = sum(low[group] <= truth[group] <= high[group] for group in given)
    assert len(given) >= GROUPS / 2
    assert held >= 0.95 * len(given) - 3 * math.sqrt(0.95 * 0.05 * len(given))
