"""Views over joins are sampled by a part of their key only where its values are about as frequent as each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.views.sampling.samples import Held
from tests.fixtures.driver_only import driver_only

CUSTOMERS, ITEMS, ORDERS, LATE = 3_000, 2_000, 20_000, 300
VIEW = """select customer, item, count(*) as n, sum(cents) as total
    from orders join lines on orders.id = lines.id group by customer, item"""
QUESTION = "select sum(total) as total, sum(n) as n from cube"


def bought(path: Path, z: float, seed: int = 0) -> nearly.Session:
    """A session with a stale view: one popular customer bought something more with each order, and some others with one."""
    make = np.random.default_rng(seed)

    def zipf(values: int, rows: int) -> np.ndarray:
        weights = 1 / np.arange(1, values + 1) ** z
        return make.permutation(10 * values)[make.choice(values, rows, p=weights / weights.sum())]

    customers, items, ids = zipf(CUSTOMERS, ORDERS), zipf(ITEMS, 2 * ORDERS), np.arange(2 * ORDERS) // 2
    lines = pa.table({"id": ids, "line": np.arange(2 * ORDERS) % 2, "item": items, "cents": make.integers(1, 900, 2 * ORDERS)})
    pq.write_table(pa.table({"id": np.arange(ORDERS), "customer": customers}), path / "orders.parquet")
    pq.write_table(lines, path / "lines.parquet")
    db = driver_only(path / "catalog")
    db.register("orders", str(path / "orders.parquet"), key=["id"])
    db.register("lines", str(path / "lines.parquet"), key=["id", "line"])
    db.create_view("cube", VIEW, sample=0.1)
    popular = customers[make.integers(0, ORDERS)]
    late = np.union1d(np.nonzero(customers == popular)[0], make.choice(ORDERS, LATE, replace=False))
    new = {
        "id": late,
        "line": np.full(len(late), 2),
        "item": make.choice(items, len(late)),
        "cents": make.integers(1, 900, len(late)),
    }
    db.insert("lines", pa.table(new))
    return db


@pytest.mark.parametrize(("z", "parts"), [(0.0, 1), (1.2, 2)])
def test_uneven_columns_are_not_drawn_by(tmp_path: Path, z: float, parts: int) -> None:
    with bought(tmp_path, z) as db:
        held = db._views.samples._stale("cube")
        assert isinstance(held, Held)
        assert len(held.view.ticket_columns) == parts
        view = db.view("cube")
        assert not view.query(QUESTION, sample=0.1).exact
        expected = db.sql(f"select sum(total) as total, sum(n) as n from ({VIEW})", kernel="native").exact().table
        assert view.query(QUESTION, method="exact").table.to_pylist() == expected.to_pylist()


@pytest.mark.long
def test_intervals_hold_where_columns_are_uneven(tmp_path: Path) -> None:
    held = given = 0
    for seed in range(40):
        path = tmp_path / str(seed)
        path.mkdir()
        with bought(path, 1.0, seed) as db:
            view = db.view("cube")
            found = view.query(QUESTION, sample=0.1)
            right = view.query(QUESTION, method="exact").table.to_pylist()[0]
            low, high = found.low.to_pylist()[0], found.high.to_pylist()[0]
            for name, value in right.items():
                if low[name] is not None:
                    given, held = given + 1, held + (low[name] <= value <= high[name])
    assert given >= 60
    assert held >= 0.87 * given
