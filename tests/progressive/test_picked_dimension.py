"""Rows of a table that is read whole, picked by estimates of another: their numbers are not known before the estimates are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fixtures.driver_only import driver_only

PICKED = "select k from t group by k having avg(x) > 0.5"


@pytest.mark.parametrize(
    "text",
    [f"select count(*) as n from d where k in ({PICKED})", f"select g, count(*) as n from d where k in ({PICKED}) group by g"],
)
def test_numbers_of_picked_rows_are_not_sure(text: str, tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(0), 200_000
    pq.write_table(pa.table({"k": rng.integers(0, 500, rows), "x": rng.random(rows)}), tmp_path / "t.parquet", row_group_size=1_000)
    pq.write_table(pa.table({"k": np.arange(500), "g": np.arange(500) % 3}), tmp_path / "d.parquet")
    with driver_only(tmp_path / "catalog", eager=True) as db:
        for name in "td":
            db.register(name, str(tmp_path / f"{name}.parquet"))
        for answer in db.sql(text):
            if not answer.exact:
                assert answer.error == float("inf")
                assert answer.low["n"].null_count == answer.table.num_rows
        assert answer.exact
