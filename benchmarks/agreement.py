"""Whether two results of one query are the same: types, values, and the order that the query asks for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far two doubles may be apart."""

    relative: float
    absolute: float


SUMMATION = Tolerance(relative=1e-9, absolute=0.0)
"""Sums of doubles depend on the order of addition; every other type must be identical."""

OTHER_ENGINE = Tolerance(relative=1e-6, absolute=1e-5)
"""DuckDB averages and divides decimals as doubles, Spark as decimals with at least six digits."""


def difference(expected: pa.Table, found: pa.Table, text: str, tolerance: Tolerance = SUMMATION) -> str | None:
    """The first difference from the expected result, or None: names and types, then the order, then the values.

    Rows are compared as multisets; rows that tie in ORDER BY may change places, the keys themselves may not.
    """
    if expected.column_names != found.column_names:
        return f"columns are {found.column_names}, not {expected.column_names}"
    for field, other in zip(expected.schema, found.schema, strict=True):
        if field.type != other.type:
            return f"column {field.name} is {other.type}, not {field.type}"
    if expected.num_rows != found.num_rows:
        return f"{found.num_rows} rows, not {expected.num_rows}"
    for name in order_columns(text, expected.column_names):
        if not _same(expected[name], found[name], tolerance):
            return f"the rows are not in the order of {name}"
    left, right = _sorted(expected), _sorted(found)
    for name in expected.column_names:
        if not _same(left[name], right[name], tolerance):
            return f"the values of {name} differ"
    return None


def loose_difference(expected: pa.Table, found: pa.Table, text: str) -> str | None:
    """The first difference between engines that give numbers different types, or None."""
    return difference(_plain(expected), _plain(found), text, OTHER_ENGINE)


def order_columns(text: str, names: list[str]) -> list[str]:
    """The output columns that the outermost ORDER BY names, up to the first key that is not an output column."""
    order = sqlglot.parse_one(text, dialect="spark").args.get("order")
    found: list[str] = []
    for key in order.expressions if order else ():
        column = key.this
        if not isinstance(column, exp.Column) or column.name not in names:
            break
        found.append(column.name)
    return found


def _plain(table: pa.Table) -> pa.Table:
    """The table with every number as a double and everything else as text."""
    columns = []
    for column in table.columns:
        type_ = column.type
        numeric = pa.types.is_decimal(type_) or pa.types.is_integer(type_) or pa.types.is_floating(type_)
        columns.append(column.cast(pa.float64() if numeric else pa.string()))
    return pa.table(columns, names=table.column_names)


def _sorted(table: pa.Table) -> pa.Table:
    """Sorted by all columns, doubles last, so that their last digits do not change the order of other columns."""
    names = sorted(table.column_names, key=lambda name: pa.types.is_floating(table[name].type))
    return table.sort_by([(name, "ascending") for name in names])


def _same(left: pa.ChunkedArray, right: pa.ChunkedArray, tolerance: Tolerance) -> bool:
    if not pa.types.is_floating(left.type):
        return bool(left.combine_chunks().equals(right.combine_chunks()))
    if not left.is_null().combine_chunks().equals(right.is_null().combine_chunks()):
        return False
    pair = (left.to_numpy(), right.to_numpy())
    return bool(np.allclose(*pair, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True))
