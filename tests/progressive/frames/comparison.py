"""Rows of two engines as bags that can be compared."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.agreement import loose_difference


def differences(found: pa.Table, expected: pa.Table) -> str | None:
    """The first difference, whatever the columns are called and whichever types the engines give to numbers."""
    return loose_difference(expected.rename_columns(found.column_names), found, "select 1")
