"""Users' Python functions inside Spark SQL, for queries that the native kernel does not run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nearly.engine import spark_names
from nearly.engine.native.function_adapters import TableAdapter, Travelling
from nearly.plan.syntax.parse import check_query, to_text
from nearly.plan.types import DataType
from nearly.plan.user_functions import Mapped


def register_scalar(spark: Any, name: str, function: Travelling, returns: DataType) -> None:
    """Make a function known to a session's SQL."""
    adapter = function.adapter()

    def call(first: pa.Array, *others: pa.Array) -> pa.Array:
        return adapter(first, *others)

    make: Any = spark_names.arrow_udf
    spark.udf.register(name, make(call, returns.name))


def show_mapped(spark: Any, mapped: Mapped, function: Travelling) -> None:
    """Make a mapped relation a view of a session; the views and tables that its query reads must be there."""
    rows = spark.sql(check_query(to_text(mapped.query)).text)
    if mapped.keys is not None:
        rows = rows.coalesce(1)
    gives = ", ".join(f"`{name.replace('`', '``')}` {type_.name}" for name, type_ in mapped.outputs)
    rows.mapInArrow(_InPartition(function.adapter()), gives).createOrReplaceTempView(mapped.name)


@dataclass(frozen=True, slots=True)
class _InPartition:
    """The function over a partition: batch by batch, or all of it at once."""

    adapter: TableAdapter

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        takes = self.adapter.takes
        given = (pa.Table.from_batches([batch]).rename_columns(takes.names).cast(takes) for batch in batches)
        pieces = [pa.concat_tables([*given, takes.empty_table()])] if self.adapter.whole else given
        for piece in pieces:
            yield from self.adapter.mapped(piece).to_batches()
