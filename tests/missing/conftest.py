"""A session with the seed's sales table, shared by the tests of missing rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly

SALES = pa.table({
    "utc": pa.array([dt.datetime(2024, 11, day, 10, tzinfo=dt.UTC) for day in (1, 1, 2, 16)], pa.timestamp("us", "UTC")),
    "branch": ["New York", "Chicago", "Chicago", "Trenton"],
    "price": pa.array([Decimal("3.02"), Decimal("6.71"), Decimal("10.27"), Decimal("18.99")], pa.decimal128(10, 2)),
    "quantity": pa.array([1, 2, None, 4], pa.int32()),
    "weight": pa.array([0.5, 1.5, float("nan"), None], pa.float64()),
    "day": pa.array([dt.date(2024, 11, day) for day in (1, 1, 2, 16)], pa.date32()),
})  # fmt: skip


@pytest.fixture(scope="session")
def shop(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    home: Path = tmp_path_factory.mktemp("shop")
    pq.write_table(SALES, home / "sales.parquet")
    pq.write_table(SALES.slice(0, 0), home / "nothing.parquet")
    with nearly.connect(spark, path=home / "catalog") as session:
        session.register("sales", home / "sales.parquet")
        session.register("nothing", home / "nothing.parquet")
        yield session


@pytest.fixture
def db(shop: nearly.Session) -> Iterator[nearly.Session]:
    """The shared session, with nothing stated about missing rows before and after each test."""
    yield shop
    for name in shop.tables:
        shop.missing(name, None)
