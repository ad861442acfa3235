"""Registering anything Spark can read: what is not local Parquet is copied into the catalog once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

import pyarrow as pa

from nearly.engine import spark_names
from nearly.engine.spark.cluster import GetSpark
from nearly.engine.spark.reading import spark_path
from nearly.engine.storage.catalog import Catalog, check_name
from nearly.engine.storage.layouts import BASE, Origin, Table, resolve
from nearly.engine.storage.listing import find_files, glob, local_path
from nearly.engine.storage.registration import content_of, register_parquet
from nearly.engine.writing.arrow_writer import staged_rows
from nearly.engine.writing.parquet_writer import Destination, Progress, Workbench, refuse_unwritable, write_plain
from nearly.engine.writing.staging import Arrangement, Staged, commit, new_directory, stage
from nearly.errors import EngineError, SchemaError, UnknownName, Unsupported

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AnySource: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | DataFrame"
ReadPlainly: TypeAlias = Callable[[Origin], pa.Table | None]
"""Reads the rows of an origin as Spark would, without it; None where that is not certain."""
_FORMATS = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
_COMPRESSIONS = (".gz", ".bz2")


def by_spark_only(origin: Origin) -> pa.Table | None:
    """Leaves all reading to Spark."""
    return None


def register_source(  # noqa: PLR0913  what a user says of a table, and where it goes
    catalog: Catalog,
    spark: GetSpark,
    name: str,
    source: AnySource,
    key: Sequence[str] = (),
    clustered_by: Sequence[str] | None = None,
    progress: Progress | None = None,
    hashed: bool = False,
    *,
    read: ReadPlainly = by_spark_only,
) -> Table:
    """Register a DataFrame, an Arrow table, a table of Spark's catalog, or a path to Parquet, CSV (with a header) or JSON files.

    Local Parquet files are used in place, without Spark, and `hashed` if so asked; all else is written to the catalog, by Spark
    unless `read` has the rows, and hashed always. An existing path wins over a table of that name.
    """
    check_name(name)
    origin = _origin(spark, source)
    if origin.in_place:
        return register_parquet(catalog, name, origin.locations, key, clustered_by, hashed=hashed)
    if clustered_by:
        raise SchemaError("clustered_by is about files used in place; this source is copied, use prepare(by=...)")
    rows = source if isinstance(source, pa.Table) else read(origin)
    with catalog.temporary(name) as temporary:
        if rows is not None:
            staged = hold(catalog, name, rows, temporary)
        else:
            frame = source if spark_names.is_data_frame(source) else read_origin(spark(), origin)
            refuse_unwritable(frame, f"the source of table {name!r}")
            staged = materialise(Workbench(catalog, spark(), temporary), name, frame, origin, progress)
        table = commit(catalog, name, [staged], lambda _: described(name, staged, key, origin))
    if progress is not None:
        progress(1.0)
    return table


def hold(catalog: Catalog, name: str, rows: pa.Table, temporary: Path) -> Staged:
    """Write rows that are in memory as a base layout, not yet committed."""
    destination = new_directory(catalog, name, BASE)
    return staged_rows(rows, temporary / destination.name, destination)


def materialise(bench: Workbench, name: str, rows: DataFrame, origin: Origin, progress: Progress | None) -> Staged:
    """Write the rows as a base layout, not yet committed."""
    destination = new_directory(bench.catalog, name, BASE)
    to = Destination(bench.directory / destination.name, expected_bytes=_size_of(origin))
    write_plain(bench.spark, rows, to, progress)
    return stage(to.directory, destination, Arrangement(BASE))


def described(name: str, staged: Staged, key: Sequence[str], origin: Origin) -> Table:
    """The table whose base layout is the staged one."""
    columns, layout = staged.columns, staged.layout
    return Table(name, columns, resolve(columns, key, "key"), (layout,), content_of(columns, layout), origin)


def _origin(spark: GetSpark, source: AnySource) -> Origin:
    if isinstance(source, pa.Table) or spark_names.is_data_frame(source):
        return Origin("dataframe")
    if isinstance(source, str | os.PathLike):
        return origin_of(spark, source)
    if isinstance(source, list | tuple) and source and all(isinstance(each, str | os.PathLike) for each in source):
        return _origin_of_several([os.fspath(each) for each in source])
    raise SchemaError(f"a table is made of a path, several paths, a DataFrame or the name of a table, not of {source!r:.100}")


def _origin_of_several(texts: Sequence[str]) -> Origin:
    paths = [local_path(text) for text in texts]
    formats = set() if None in paths else {_format_of(file.path) or "parquet" for file in find_files(texts)}
    if len(formats) != 1:
        raise Unsupported("several paths can be registered at once only where all are local and of one format")
    return Origin(formats.pop(), tuple(path for path in paths if path is not None))


def origin_of(spark: GetSpark, source: str | os.PathLike[str]) -> Origin:
    """What a text names: files by their ending, else a table that Spark knows."""
    text = os.fspath(source)
    path = local_path(text)
    if path is None:
        return Origin("remote", (text,))
    if Path(path).exists() or any(glob(path)):
        return Origin(_format_of(find_files([path])[0].path) or "parquet", (path,))
    if isinstance(source, os.PathLike) or not _may_be_table(text):
        raise UnknownName(f"{text!r} is neither a path that exists nor the name of a table; check the spelling")
    try:
        if spark().catalog.tableExists(text):
            return Origin("table", (text,))
    except spark_names.PySparkException as error:
        raise UnknownName(f"{text!r} is neither a path that exists nor the name of a table") from error
    raise UnknownName(f"{text!r} is neither a path that exists nor a table that Spark knows; check the spelling")


def _may_be_table(text: str) -> bool:
    """Whether Spark could have a table of this name; that a path does not exist is told without starting it."""
    return re.fullmatch(r"[\w`-]+(\.[\w`-]+){0,2}", text) is not None and not _format_of(text) and not text.endswith(".parquet")


def read_origin(spark: SparkSession, origin: Origin) -> DataFrame:
    """The rows of an origin as Spark reads them now."""
    try:
        location, *others = origin.locations
        if origin.kind == "table":
            return spark.table(location)
        if origin.kind == "remote":
            refuse_remote_delta(spark, location)
            return _read_format(spark, _format_of(urlsplit(location).path) or "parquet", [location], location)
        literal = [spark_path(each) if Path(each).exists() else "file://" + each for each in (location, *others)]
        return _read_format(spark, origin.kind, literal, location)
    except spark_names.PySparkException as error:
        raise EngineError(f"Spark cannot read {origin}: {str(error).strip().splitlines()[0]}") from error


def refuse_remote_delta(spark: SparkSession, location: str) -> None:
    """The Parquet files of a Delta table are not its rows; elsewhere than here its log is not read."""
    with suppress(spark_names.PySparkException):
        spark.read.text(f"{location.rstrip('/')}/_delta_log").schema  # noqa: B018  an error where there is none
        raise Unsupported(
            f"{location} is a Delta table, and nearly reads the logs of local ones alone; register the DataFrame that Spark reads "
            f"from it, such as spark.read.format('delta').load({location!r})"
        )


def _read_format(spark: SparkSession, kind: str, paths: list[str], location: str) -> DataFrame:
    if kind == "csv":
        separator = "\t" if ".tsv" in Path(location).suffixes else ","
        return spark.read.csv(paths, header=True, inferSchema=True, sep=separator)
    return spark.read.json(paths) if kind == "json" else spark.read.parquet(*paths)


def _format_of(path: str) -> str | None:
    """The format that the ending of a file name tells, compressed or not; None when it tells none."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return _FORMATS.get(suffixes[-1]) if suffixes else None


def _size_of(origin: Origin) -> int:
    """The bytes of local files, which the progress of copying them is measured by; 0 when unknown."""
    if origin.kind not in ("csv", "json"):
        return 0
    return sum(Path(file.path).stat().st_size for file in find_files(origin.locations)) // 4 + 1
