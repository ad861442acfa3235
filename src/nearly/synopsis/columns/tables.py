"""Rows as users have them, as Arrow tables with the columns of a synopsis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from nearly.errors import SchemaError
from nearly.plan.types import to_arrow
from nearly.synopsis.columns.reading import Schema


def fitted(schema: Schema, table: pa.Table, name: str) -> pa.Table:
    """The columns that a synopsis needs, in its order and types; what is missing or does not fit is an error."""
    spelled = {each.lower(): each for each in table.column_names}
    kinds = {each.name: each.type for each in schema.domains} | {schema.measure: schema.measure_type}
    columns = {}
    for wanted in schema.columns:
        if wanted.lower() not in spelled:
            raise SchemaError(f"the rows lack the column {wanted!r}; synopsis {name!r} needs {', '.join(schema.columns)}")
        column = table.column(spelled[wanted.lower()])
        try:
            columns[wanted] = column.cast(to_arrow(kinds[wanted])) if wanted in kinds else column
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as trouble:
            raise SchemaError(f"column {wanted!r} must be {kinds[wanted]}: {trouble}") from trouble
    return pa.table(columns)


def as_table(rows: Any) -> pa.Table:
    """Rows in any of the usual forms as an Arrow table."""
    try:
        if isinstance(rows, pa.Table):
            return rows
        if isinstance(rows, pa.RecordBatch):
            return pa.Table.from_batches([rows])
        if isinstance(rows, Mapping):
            return pa.table(dict(rows))
        if isinstance(rows, list | tuple):
            return pa.Table.from_pylist(list(rows))
        if hasattr(rows, "to_arrow"):
            return rows.to_arrow()
        if hasattr(rows, "toArrow"):
            return rows.toArrow()
        return pa.Table.from_pandas(rows, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, AttributeError) as trouble:
        raise SchemaError(
            f"rows must be an Arrow table, a pandas frame, a dict of columns or a list of dicts: {trouble}"
        ) from trouble
