"""What a kernel hands back, in the form that users are given. Law: all kernels give the same rows and types for a plan."""

from __future__ import annotations

import pyarrow as pa

from nearly.plan.nodes import BoundQuery
from nearly.plan.types import is_simple, to_arrow


def finished(table: pa.Table, query: BoundQuery) -> pa.Table:
    """The result under the user's names, with exactly the types Spark gives it."""
    fields = [
        pa.field(name, to_arrow(type_) if is_simple(type_) else column.type)
        for name, type_, column in zip(query.names, query.types, table.columns, strict=True)
    ]
    columns = [column if column.type == field.type else column.cast(field.type) for column, field in
               zip(table.columns, fields, strict=True)]  # fmt: skip
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
