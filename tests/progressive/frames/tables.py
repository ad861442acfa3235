"""Small tables for the tests of evolving frames: orders with their lines, clustered by the order, and customers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ORDERS = 100_000
CUSTOMERS = 2_000
BLOCK = 16_384
"""Rows of a row group: smaller ones would be put together into a block of this size."""


def lines() -> pa.Table:
    random = np.random.default_rng(7)
    order = np.repeat(np.arange(ORDERS), random.integers(1, 8, ORDERS))
    number = np.arange(len(order))
    quantity = random.integers(1, 51, len(order))
    return pa.table({
        "order_id": pa.array(order, pa.int64()),
        "quantity": pa.array(quantity, pa.int32(), mask=number % 97 == 0),
        "price": pa.array((quantity * 137 + number % 1000) / 100).cast(pa.decimal128(12, 2), safe=False),
        "discount": pa.array(random.integers(0, 11, len(order)) / 100.0),
        "größe": pa.array(["klein", "mittel", "groß", None]).take(pa.array(number % 4)),
    })  # fmt: skip


def orders() -> pa.Table:
    random = np.random.default_rng(8)
    return pa.table({
        "order_id": pa.array(range(ORDERS), pa.int64()),
        "customer": pa.array(random.integers(0, CUSTOMERS, ORDERS), pa.int64()),
        "status": pa.array(["open", "done", "lost"]).take(pa.array(np.arange(ORDERS) % 3)),
    })  # fmt: skip


def customers() -> pa.Table:
    names = [f"customer {n} é" for n in range(CUSTOMERS + 20)]
    return pa.table({"customer": pa.array(range(CUSTOMERS + 20), pa.int64()), "name": names})


def empty() -> pa.Table:
    return pa.table({"id": pa.array([], pa.int64()), "x": pa.array([], pa.float64())})


TABLES = {"lines": lines, "orders": orders, "customers": customers, "empty": empty}


def write_tables(directory: Path) -> dict[str, Path]:
    """All tables as files of many row groups."""
    paths = {}
    for name, make in TABLES.items():
        paths[name] = directory / f"{name}.parquet"
        pq.write_table(make(), paths[name], row_group_size=BLOCK)
    return paths
