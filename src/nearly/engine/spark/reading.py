"""How Spark reads a stored table: a view over exactly the files of the manifest, never a directory listing."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from nearly.engine.native.reading import FILE, ROW
from nearly.engine.spark.cluster import GetSpark
from nearly.engine.storage.layouts import Layout, Table
from nearly.errors import EngineError
from nearly.plan.quoting import spark_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PATH = "nearly_path"
_ADDRESS = f"regexp_replace(_metadata.file_path, '^file:/+', '/') AS {_PATH}"


class SparkReader:
    """Registers a table's files as a temporary view of nearly's own Spark session; whoever needs several at once holds `lock`."""

    def __init__(self, spark: GetSpark) -> None:
        self._spark = spark
        self._views: dict[str, Hashable] = {}
        self.lock = threading.RLock()

    def view(self, table: Table, name: str | None = None) -> str:
        """The name of a view over the table as it is now; `name` asks for a certain one."""
        name = name or f"nearly_{table.name.lower()}"
        self._have(name, table, lambda spark: read_table(spark, table))
        return name

    def shown(self, table: Table, read: Callable[[SparkSession], DataFrame]) -> None:
        """Have what `read` makes of a table as a view under the table's own name."""
        self._have(table.name, table, read)

    def _have(self, name: str, table: Table, read: Callable[[SparkSession], DataFrame]) -> None:
        with self.lock:
            stored = (table.content, table.base.files)
            if self._views.get(name) != stored:
                read(self._spark()).createOrReplaceTempView(f"`{name}`")
                self._views[name] = stored


def read_table(spark: SparkSession, table: Table, paths: Iterable[str] | None = None) -> DataFrame:
    """The rows of the base layout, or of some of its files, read by Spark with the table's columns and types.

    Law: exactly these files are read, whatever characters their paths have, without the rows that were deleted from them. The
    columns `FILE` and `ROW`, where the table has them, tell the places of the rows.
    """
    wanted = list(table.base.manifest.paths if paths is None else paths)
    names = [spark_name(column.name) for column in table.columns]
    stored = [column for column in table.columns if column.name not in (FILE, ROW)]
    schema = ", ".join(f"{spark_name(column.name)} {column.type}" for column in stored)
    if table.origin.is_lake and table.base.partitioned_by:
        return _with_told(spark, table, wanted).select(*names)
    frames = []
    for root, files in _by_root(table, wanted).items():
        rows = _read_below(spark, root, files, schema)
        if table.base.vectors or len(stored) < len(names):
            rows = _placed(spark, rows, table.base, [spark_name(column.name) for column in stored])
        frames.append(rows.select(*names))
    return reduce(lambda left, right: left.unionAll(right), frames)


def _placed(spark: SparkSession, rows: DataFrame, layout: Layout, names: Sequence[str]) -> DataFrame:
    """The rows that were not deleted, with their places: Spark tells of each its file and its number there."""
    spelled = _spelled(rows, layout)
    places = [(number, spelled[path]) for number, path in enumerate(layout.manifest.paths) if path in spelled]
    files = spark.createDataFrame(places, f"{FILE} int, {_PATH} string")
    placed = rows.selectExpr(*names, _ADDRESS, f"_metadata.row_index AS {ROW}").join(files.hint("broadcast"), _PATH)
    if not layout.vectors:
        return placed
    vectors = spark.read.schema("file int, row bigint").parquet(*(spark_path(vector.path) for vector in layout.vectors))
    gone = vectors.selectExpr(f"file AS {FILE}", f"row AS {ROW}")
    return placed.join(gone.hint("broadcast"), [FILE, ROW], "left_anti")


def _with_told(spark: SparkSession, table: Table, wanted: Sequence[str]) -> DataFrame:
    """The rows of files whose log tells values of columns: Spark would read other ones from escaped names of directories."""
    base, told = table.base, {part.path: block.partition for block in table.base.blocks for part in block.parts}
    stored = [column for column in table.columns if column.name not in (*base.partitioned_by, FILE, ROW)]
    partitions = [table.column(name) for name in base.partitioned_by]
    schema, other = (", ".join(f"{spark_name(c.name)} {c.type}" for c in each) for each in (stored, partitions))
    rows = _read_below(spark, "", wanted, schema)
    spelled = _spelled(rows, base)
    values = [(spelled[path], *(value.value for value in told[path])) for path in spelled if path in told]
    placed = _placed(spark, rows, base, [spark_name(column.name) for column in stored])
    return placed.join(spark.createDataFrame(values, f"{_PATH} string, {other}").hint("broadcast"), _PATH)


def _spelled(rows: DataFrame, layout: Layout) -> dict[str, str]:
    """The files that Spark reads, with the addresses by which it names them."""
    spelled = {unquote(path): path for path in (re.sub("^file:/+", "/", address) for address in rows.inputFiles())}
    if other := sorted(spelled.keys() - set(layout.manifest.paths)):
        raise EngineError(f"Spark reads other files than those of the table: {other[:1]}")
    return spelled


def _by_root(table: Table, wanted: Sequence[str]) -> dict[str, list[str]]:
    """The files by the directory below which their paths tell values of partition columns; "" where paths tell nothing."""
    depth, found = len(table.base.partitioned_by), dict[str, list[str]]()
    for path in wanted:
        found.setdefault(str(Path(path).parents[depth]) if depth else "", []).append(path)
    return found


def _read_below(spark: SparkSession, root: str, files: Sequence[str], schema: str) -> DataFrame:
    """Files of one root; a given schema keeps the types of partition columns when only some partitions are read."""
    reader = spark.read.schema(schema)
    if root:
        reader = reader.option("basePath", "file://" + root)
    return reader.parquet(*map(spark_path, files))


def spark_path(path: str | Path) -> str:
    """A local path as Spark reads it literally, whatever its default file system is and however it looks like a pattern."""
    return "file://" + re.sub(r"([\\*?{}\[\]])", r"\\\1", str(path))
