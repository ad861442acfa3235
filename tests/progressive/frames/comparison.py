"""Rows of two engines as bags that can be compared."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa


def bag(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows in an order of their own, numbers rounded to nine digits."""
    rows = [tuple(_plain(value) for value in row.values()) for row in table.to_pylist()]
    return sorted(rows, key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float | Decimal):
        return float(f"{float(value):.9g}")
    return value
