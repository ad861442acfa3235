"""Rows of the past, read by Spark: counted against conditions, sampled, and summarised by parts of a partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from nearly.engine import pyspark_loaded  # noqa: F401  # isort: skip
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own name for them)

from nearly.engine.spark.process import session_of_this_process
from nearly.engine.spark.reading import SparkReader
from nearly.engine.split_tree import Partition, summarise
from nearly.engine.storage.layouts import Table
from nearly.engine.writing.sources import origin_of, read_origin
from nearly.errors import EngineError, SchemaError
from nearly.plan.quoting import spark_name
from nearly.plan.schema import SchemaColumn, TableSchema
from nearly.plan.types import from_name

CONDITIONS_PER_JOB = 200
"""So many conditions are counted in one pass; more make Spark's generated code too long."""


@dataclass(frozen=True, slots=True)
class ColumnLimits:
    """A column's values lie between two values (None: no limit); null only if `nullable`."""

    column: str
    low: Any
    high: Any
    nullable: bool


@dataclass(frozen=True, slots=True)
class Check:
    """Rows for which the predicate (Spark SQL) is true have their columns within the limits."""

    predicate: str
    limits: tuple[ColumnLimits, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows for which a predicate is true, and those of them beyond the limits."""

    matching: int
    violating: int


@dataclass(frozen=True, slots=True)
class CheckCounts:
    """The counts of all checks, and the rows for which no predicate is true."""

    counts: tuple[Counts, ...]
    uncovered: int


def frame_of(history: Any, spark: SparkSession | None = None) -> DataFrame:
    """A Spark frame of rows: one already, a registered table, an Arrow table, a pandas frame, or a path to files.

    A table may also come as the evolving frame that `db.table` gives, which knows it as its `info`.
    """
    if isinstance(getattr(history, "info", None), Table):
        history = history.info
    if hasattr(history, "selectExpr"):
        return history  # type: ignore[no-any-return]
    session = spark or session_of_this_process()
    if session is None:
        raise SchemaError("there is no Spark session yet; pass a Spark DataFrame, or open one with nearly.connect()")
    if isinstance(history, Table):
        own = session.newSession()
        return own.table(f"`{SparkReader(lambda: own).view(history)}`")
    if isinstance(history, pa.Table):
        return session.createDataFrame(history)
    if isinstance(history, str | PathLike):
        return read_origin(session, origin_of(lambda: session, fspath(history)))
    if hasattr(history, "columns") and hasattr(history, "dtypes"):
        return session.createDataFrame(pa.Table.from_pandas(history, preserve_index=False))
    raise SchemaError(f"history is a Spark DataFrame, an Arrow table, a pandas frame or a path, not {type(history).__name__}")


def schema_of(frame: DataFrame, name: str) -> TableSchema:
    """The columns of a frame as a table's schema."""
    fields = frame.schema.fields
    return TableSchema(name, tuple(SchemaColumn(f.name, from_name(f.dataType.simpleString()), f.nullable) for f in fields))


def time_zone(frame: DataFrame) -> str:
    """The time zone in which the frame's session reads timestamps without an offset."""
    return str(frame.sparkSession.conf.get("spark.sql.session.timeZone"))


def measure(frame: DataFrame, checks: Sequence[Check]) -> CheckCounts:
    """Count all checks."""
    tests = [each for check in checks for each in (F.expr(check.predicate), _violates(check))]
    *found, uncovered = _counted(frame, [*tests, _uncovered(checks)])
    return CheckCounts(tuple(Counts(*pair) for pair in zip(found[::2], found[1::2], strict=True)), uncovered)


def _counted(frame: DataFrame, conditions: Sequence[Column]) -> list[int]:
    """For how many rows each condition is true, some conditions per pass over the rows."""
    found: list[int] = []
    for start in range(0, len(conditions), CONDITIONS_PER_JOB):
        part = conditions[start : start + CONDITIONS_PER_JOB]
        counts = [F.count(F.when(each, 1)).alias(f"c{place}") for place, each in enumerate(part)]
        (row,) = _collected(frame.agg(*counts)).to_pylist()
        found += row.values()
    return found


def example(frame: DataFrame, check: Check | None, others: Sequence[Check] = ()) -> dict[str, Any] | None:
    """A row that violates a check, or one that satisfies none of the predicates of `others`."""
    condition = _uncovered(others) if check is None else _violates(check)
    rows: list[dict[str, Any]] = _collected(frame.filter(condition).limit(1)).to_pylist()
    return rows[0] if rows else None


def sample(frame: DataFrame, columns: Sequence[str], rows: int, seed: int) -> pa.Table:
    """About so many rows of some columns, drawn at random."""
    total = frame.count()
    chosen = frame.select(*(F.col(spark_name(name)) for name in columns))
    if total > rows:
        chosen = chosen.sample(fraction=min(1.0, rows / total), seed=seed)
    return _collected(chosen)


def columns_with_nulls(frame: DataFrame, columns: Sequence[str]) -> set[str]:
    """Those of the columns that have a null, which a sample may miss."""
    counts = _counted(frame, [F.col(spark_name(name)).isNull() for name in columns])
    return {name for name, count in zip(columns, counts, strict=True) if count}


def summarise_parts(frame: DataFrame, partition: Partition, measures: Sequence[str]) -> pa.Table:
    """Count, and least and greatest value and nulls of each measure, for every part of a partition that has rows."""
    names = list(dict.fromkeys([*partition.columns, *measures]))
    chosen = frame.select(*(F.col(spark_name(name)) for name in names))
    empty = summarise(_collected(chosen.limit(0)), partition, measures)
    schema = ", ".join(f"{spark_name(field.name)} {_type_of(frame, field.name, measures)}" for field in empty.schema)

    def partials(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from summarise(pa.Table.from_batches([batch]), partition, measures).to_batches()

    return _collected(chosen.mapInArrow(partials, schema))


def _type_of(frame: DataFrame, name: str, measures: Sequence[str]) -> str:
    for prefix in ("min_", "max_"):
        if name.startswith(prefix) and name.removeprefix(prefix).isdigit():
            return frame.schema[measures[int(name.removeprefix(prefix))]].dataType.simpleString()
    return "bigint"


def _violates(check: Check) -> Column:
    """The predicate is true and some column lies beyond its limits."""
    inside = [_inside(limits) for limits in check.limits]
    if not inside:
        return F.lit(False)
    return F.expr(check.predicate) & ~F.coalesce(reduce(lambda a, b: a & b, inside), F.lit(False))


def _inside(limits: ColumnLimits) -> Column:
    column = F.col(spark_name(limits.column))
    found = column.isNotNull()
    if limits.low is not None:
        found = found & (column >= F.lit(limits.low))
    if limits.high is not None:
        found = found & (column <= F.lit(limits.high))
    return column.isNull() | found if limits.nullable else found


def _uncovered(checks: Sequence[Check]) -> Column:
    """No predicate is true; the disjunction is built as a balanced tree, since Spark walks expressions recursively."""
    parts = [F.coalesce(F.expr(check.predicate), F.lit(False)) for check in checks] or [F.lit(False)]
    while len(parts) > 1:
        parts = [parts[i] | parts[i + 1] if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return ~parts[0]


def _collected(frame: DataFrame) -> pa.Table:
    try:
        return frame.toArrow()
    except PySparkException as trouble:
        raise EngineError(f"Spark cannot read the history: {str(trouble).splitlines()[0]}") from trouble
