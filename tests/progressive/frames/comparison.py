"""Rows of two engines as bags that can be compared."""

from __future__ import annotations

import duckdb
import pyarrow as pa


def differences(found: pa.Table, expected: pa.Table) -> list[tuple[object, ...]]:
    """Up to ten rows that one of the bags has more often than the other, numbers compared to seven digits."""
    assert found.num_columns == expected.num_columns
    with duckdb.connect() as connection:
        sides = {"found": _plain(found), "expected": _plain(expected)}
        for name, table in sides.items():
            connection.register(name, table)
        more, less = ("from ((from {}) except all (from {})) limit 5".format(*pair) for pair in (sides, reversed(sides)))
        return [*connection.sql(more).fetchall(), *connection.sql(less).fetchall()]


def _plain(table: pa.Table) -> pa.Table:
    """Every number as a rounded double, under names by position."""
    names = [f"c{place}" for place in range(table.num_columns)]
    plain = table.rename_columns(names)
    items = [_rounded(name) if _is_number(plain.schema.field(name).type) else name for name in names]
    with duckdb.connect() as connection:
        connection.register("plain", plain)
        return connection.sql(f"SELECT {', '.join(items)} FROM plain").to_arrow_table()


def _rounded(name: str) -> str:
    size = f"abs({name}::DOUBLE)"
    return f"CASE WHEN {size} > 0 THEN round({name}::DOUBLE, 6 - floor(log10({size}))::INTEGER) ELSE {size} END AS {name}"


def _is_number(type_: pa.DataType) -> bool:
    return pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
