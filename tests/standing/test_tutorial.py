"""The page on standing queries runs as it stands."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from tests.fixtures.pages import run_page
from tests.standing.test_standing import customers, orders


def test_page(tmp_path: Path) -> None:
    for name, rows in (("orders", orders(0, 1000)), ("customers", customers())):
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    names = {
        "catalog": tmp_path / "catalog", "orders_path": str(tmp_path / "orders.parquet"),
        "customers_path": str(tmp_path / "customers.parquet"), "more_orders": orders(1000, 100),
    }  # fmt: skip
    run_page("standing.md", names, 5)
