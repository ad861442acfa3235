"""CSV files that are read as Spark reads them with a header and inferred types, or a reason why only Spark can say what they are.

Spark's reader has many corners: escapes, blank lines, rows of other lengths, texts that count as times. Here only files are read in
which none of them occurs, which is checked, not assumed. Of the types that Spark infers, a column has

    int, bigint      when every value is written as a whole number is written: digits, perhaps a minus, no more than 18 of them
    double           when all are such numbers or have digits on both sides of a point, at least one of them a point
    date             when every value is a day as in 2026-01-31
    timestamp        when every value is a time as in 2026-01-31 12:00:00, and the session's time zone is UTC
    boolean          when every value is true or false
    string           when some value certainly is nothing else: it begins with a letter and is no special word.

An empty value is null. Any other column is for Spark to judge.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.csv

from nearly.plan.quoting import native_name

MOST_DIGITS = 18
_SPECIAL = ("nan", "inf", "infinity", "true", "false", "epoch", "now", "today", "tomorrow", "yesterday")
_QUOTED = rb'(?:(?<=[%s\n])|\A)"[^"\r\n]*"(?=[%s\r\n]|\Z)'
_FIRST_ROWS = 2_000
"""Rows that are looked at first, to find what a column may be at all."""


class NotPlain(Exception):
    """Why a file is for Spark to read."""


@dataclass(frozen=True, slots=True)
class ValueShape:
    """What every value of a column may be: a test in DuckDB's SQL over the text {v}, and the value made of it."""

    test: str
    made: str


_WHOLE = f"(TRY_CAST({{v}} AS BIGINT)::VARCHAR = {{v}} AND length({{v}}) <= {MOST_DIGITS})"
_RECENT = "{v} >= '1900-01-01' AND {v} < '2200'"
_PLAIN = (
    ValueShape("TRY_CAST({v} AS INTEGER)::VARCHAR = {v}", "CAST({v} AS INTEGER)"),
    ValueShape(_WHOLE, "CAST({v} AS BIGINT)"),
    ValueShape(rf"({_WHOLE} OR regexp_full_match({{v}}, '-?[0-9]+[.][0-9]+') AND length({{v}}) <= 30)", "CAST({v} AS DOUBLE)"),
    ValueShape(f"(TRY_CAST({{v}} AS DATE)::VARCHAR = {{v}} AND {_RECENT})", "CAST({v} AS DATE)"),
    ValueShape("lower({v}) IN ('true', 'false')", "CAST({v} AS BOOLEAN)"),
)
"""In the order in which Spark tries them."""
_NUMBERS = _PLAIN[:3]
_TIME = ValueShape(f"(TRY_CAST({{v}} AS TIMESTAMP)::VARCHAR = {{v}} AND {_RECENT})", "(CAST({v} AS TIMESTAMP) AT TIME ZONE 'UTC')")
_TEXT = ValueShape("true", "{v}")
_SURELY_TEXT = (
    "coalesce(bool_or(regexp_matches({v}, '^([A-SU-Za-su-z]|[Tt][A-Za-z])') AND lower({v}) NOT IN ("
    + ", ".join(map(repr, _SPECIAL))
    + ")), false)"
)


def read_csv(contents: Sequence[bytes], separator: str, utc: bool) -> pa.Table:
    """The rows of files with one header, as Spark would infer them; `NotPlain` where that is not certain."""
    headers = {_checked(each, separator) for each in contents}
    if len(headers) != 1:
        raise NotPlain("the files have different headers")
    (header,) = headers
    names = _names(header, separator)
    parts = [_texts(each, names, separator) for each in contents]
    texts = pa.concat_tables(parts)
    if not texts.num_rows:
        raise NotPlain("there is no row, and so nothing to tell types by")
    return _typed(texts, names, utc)


def _checked(content: bytes, separator: str) -> str:
    """The first line of a file in which no character has a meaning that readers differ in."""
    if content.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")) or b"\0" in content:
        raise NotPlain("it has a byte order mark or is no text")
    returns = content.count(b"\r")
    if returns and returns != content.count(b"\r\n"):
        raise NotPlain("a line ends in a carriage return alone")
    if _has_blank_line(content):
        raise NotPlain("it has a blank line")
    if b'"' in content:
        if b"\\" in content:
            raise NotPlain("it has quotes and backslashes")
        mark = re.escape(separator.encode())
        if b'"' in re.sub(_QUOTED % (mark, mark), b"", content):
            raise NotPlain("a quote stands within a value, or a value goes over several lines")
    first = content[: content.find(b"\n")].rstrip(b"\r") if b"\n" in content else content
    try:
        return first.decode()
    except UnicodeDecodeError:
        raise NotPlain("it is not UTF-8") from None


def _has_blank_line(content: bytes) -> bool:
    """Whether a line has nothing but blanks; the search for them is slow, and there is seldom a line that begins with one."""
    if content.startswith((b"\n", b"\r", b" ", b"\t")) or b"\n\n" in content or b"\n\r\n" in content:
        return True
    return (b"\n " in content or b"\n\t" in content) and re.search(rb"\n[ \t]+\r?(\n|\Z)", content) is not None


def _names(header: str, separator: str) -> list[str]:
    (names,) = csv.reader([header], delimiter=separator)
    if not all(names) or len({name.lower() for name in names}) != len(names):
        raise NotPlain("a column has no name, or the name of another")
    return names


def _texts(content: bytes, names: Sequence[str], separator: str) -> pa.Table:
    """All values as text, null where they are empty."""
    try:
        return pyarrow.csv.read_csv(
            pa.BufferReader(content),
            pyarrow.csv.ReadOptions(column_names=list(names), skip_rows=1),
            pyarrow.csv.ParseOptions(delimiter=separator, double_quote=False, ignore_empty_lines=False),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )  # fmt: skip
    except pa.ArrowInvalid as trouble:
        raise NotPlain(str(trouble).splitlines()[0]) from None


def _typed(texts: pa.Table, names: Sequence[str], utc: bool) -> pa.Table:
    """The texts as values of the first type that all of them have."""
    shapes = (*_PLAIN, _TIME) if utc else _PLAIN
    columns = [native_name(name) for name in names]
    with duckdb.connect(config={"threads": 1}) as engine:
        engine.execute("SET TimeZone = 'UTC'")
        engine.register("texts", texts)
        engine.register("few", texts.slice(0, _FIRST_ROWS))
        found = {column: _first_of(engine, "few", column, shapes) for column in columns}
        for column, shape in found.items():
            if shape is not _TEXT:
                found[column] = _proven(engine, column, shape, shapes)
        unknown = [column for column, shape in found.items() if shape is None]
        if unknown:
            raise NotPlain(f"column {unknown[0]} has values whose type only Spark can tell")
        made = [f"{shape.made.format(v=column)} AS {column}" for column, shape in found.items() if shape is not None]
        return engine.sql(f"SELECT {', '.join(made)} FROM texts").to_arrow_table()


def _proven(
    engine: duckdb.DuckDBPyConnection, column: str, guess: ValueShape | None, shapes: Sequence[ValueShape]
) -> ValueShape | None:
    """The type of a column in all rows; the first rows said what to try first, and larger numbers may follow small ones."""
    likely = [] if guess is None else [guess] if guess not in _NUMBERS else _NUMBERS[_NUMBERS.index(guess) :]
    for shape in likely:
        if _all_are(engine, column, shape):
            return shape
    return _first_of(engine, "texts", column, shapes)


def _all_are(engine: duckdb.DuckDBPyConnection, column: str, shape: ValueShape) -> bool:
    (row,) = engine.sql(f"SELECT {_every(shape, column)} FROM texts").fetchall()
    return bool(row[0])


def _every(shape: ValueShape, column: str) -> str:
    """Whether all values of a column that are not null pass a test; one that cannot be made has not."""
    return f"bool_and({column} IS NULL OR coalesce({shape.test.format(v=column)}, false))"


def _first_of(engine: duckdb.DuckDBPyConnection, table: str, column: str, shapes: Sequence[ValueShape]) -> ValueShape | None:
    """The type of a column of a table; None where it cannot be told. Where all rows were seen, no value at all makes it text."""
    tests = [_every(shape, column) for shape in shapes]
    (row,) = engine.sql(f"SELECT count({column}), {_SURELY_TEXT.format(v=column)}, {', '.join(tests)} FROM {table}").fetchall()
    count, text, *holds = row
    if not count:
        return _TEXT if table == "texts" else None
    return _TEXT if text else next((shape for shape, good in zip(shapes, holds, strict=True) if good), None)
