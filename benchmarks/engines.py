"""The engines that benchmarks compare, each answering a query text with an Arrow table over the same Parquet files."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

import nearly
from nearly.engine.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Engine = Callable[[str], pa.Table]
Tables = Mapping[str, Path]

CORES = os.cpu_count() or 1
DRIVER_MEMORY = "8g"
"""What Spark's JVM may use."""
DUCKDB_MEMORY = "4GB"
"""What DuckDB may use, alone as inside nearly."""
LOGGING = Path(__file__).with_name("log4j2.properties")


def start_spark(name: str) -> SparkSession:
    """A local Spark set for this machine: one task per core, adaptive execution.

    Shuffle partitions are many, so that 60 million rows fit the heap; adaptive execution joins small ones.
    """
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession  # noqa: PLC0415  (Spark reads JAVA_HOME when it starts)

    session = (
        SparkSession.builder.master(f"local[{CORES}]")
        .appName(name)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", DRIVER_MEMORY)
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={LOGGING.as_uri()}")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(32 * CORES))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    assert isinstance(session, SparkSession)
    return session


def spark_sql(spark: SparkSession, tables: Tables) -> Engine:
    """Spark SQL, over temporary views of the files."""
    for name, path in tables.items():
        spark.read.parquet(str(path)).createOrReplaceTempView(name)

    def answer(text: str) -> pa.Table:
        return spark.sql(text).toArrow()

    return answer


def duckdb_alone(tables: Tables) -> Engine:
    """DuckDB in this process, with one thread per core, over views of the files; nulls are sorted as Spark sorts them."""
    nulls = "nulls_first_on_asc_last_on_desc"
    connection = duckdb.connect(config={"threads": CORES, "memory_limit": DUCKDB_MEMORY, "default_null_order": nulls})
    for name, path in tables.items():
        connection.execute(f"create view {name} as select * from read_parquet('{path}/*.parquet')")

    def answer(text: str) -> pa.Table:
        return connection.sql(text).to_arrow_table()

    return answer


def nearly_exact(spark: SparkSession, tables: Tables, executors: int | None) -> Engine:
    """nearly's exact answers on the same Spark session, with an empty catalog of its own."""
    catalog = tempfile.mkdtemp(prefix="nearly-bench-")
    atexit.register(shutil.rmtree, catalog, ignore_errors=True)
    db = nearly.connect(spark, path=catalog, executors=executors)
    for name, path in tables.items():
        db.register(name, str(path))

    def answer(text: str) -> pa.Table:
        return db.sql(unseen(text)).exact().table

    return answer


_numbers = count(1)


def unseen(text: str) -> str:
    """The same query as a text that was not asked before, so that it is planned again: what is measured is a new question."""
    return f"{text}\n-- {next(_numbers)}"
