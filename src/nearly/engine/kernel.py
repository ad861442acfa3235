"""What a kernel is: something that runs a plan over the tables of a catalog and hands Arrow back."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from nearly.plan.nodes import Plan, Query
from nearly.plan.types import is_simple, to_arrow


class Kernel(Protocol):
    """Law: all kernels give the same rows and the same types for a plan that they accept."""

    name: str

    def refusal(self, plan: Plan) -> str | None:
        """Why this kernel does not run the plan; None when it does."""
        ...

    def run(self, plan: Plan) -> pa.Table:
        """The plan's rows, under its unique column names."""
        ...


def finished(table: pa.Table, query: Query) -> pa.Table:
    """The result under the user's names, with exactly the types Spark gives it."""
    fields = [
        pa.field(name, to_arrow(type_) if is_simple(type_) else column.type)
        for name, type_, column in zip(query.names, query.types, table.columns, strict=True)
    ]
    columns = [column if column.type == field.type else column.cast(field.type) for column, field in
               zip(table.columns, fields, strict=True)]  # fmt: skip
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
