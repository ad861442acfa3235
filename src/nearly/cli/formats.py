"""The last answer for another program: CSV, JSON or an Arrow stream; or as text below each other, or in Markdown.

Columns that are uncertain in some row are followed by their bounds, `NAME_low` and `NAME_high`; the exact answer has none.
"""

from __future__ import annotations

import base64
import datetime as dt
import itertools
import json
import math
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any, BinaryIO

import pyarrow as pa

from nearly.answer import Answer
from nearly.errors import SchemaError
from nearly.printing.cells import some_uncertain
from nearly.printing.frame import TextTable
from nearly.printing.markdown import markdown_table
from nearly.printing.plain import plain_table
from nearly.printing.vertical import vertical_table


def with_bounds(answer: Answer) -> pa.Table:
    """The values, with bounds beside what is uncertain. A name that is there twice gets a number, because formats need one each."""
    columns, names = [], []
    for place, name in enumerate(answer.table.column_names):
        sides = [side.column(place) for side in (answer.table, answer.low, answer.high)]
        uncertain = not answer.exact and some_uncertain(*(side.to_pylist() for side in sides))
        columns += sides if uncertain else sides[:1]
        names += [name, f"{name}_low", f"{name}_high"] if uncertain else [name]
    return pa.Table.from_arrays(columns, names=_distinct(names))


def write_csv(answer: Answer, stream: BinaryIO) -> None:
    """A header, then the rows in UTF-8; null is empty, text is in quotes, nested values are JSON."""
    import pyarrow.csv  # which takes long

    table = with_bounds(answer)
    columns = [_flat(column) for column in table.columns]
    pyarrow.csv.write_csv(pa.Table.from_arrays(columns, names=table.column_names), stream)


def write_json(answer: Answer, stream: BinaryIO) -> None:
    """A list with an object for each row. Decimals keep all digits; NaN and the infinities, which JSON lacks, are text."""
    table = with_bounds(answer)
    names = [json.dumps(name, ensure_ascii=False) for name in table.column_names]
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    lines = ["{" + ", ".join(f"{name}: {_json(value)}" for name, value in zip(names, row, strict=True)) + "}" for row in rows]
    stream.write(("[" + ",\n ".join(lines) + "]\n").encode())


def write_arrow(answer: Answer, stream: BinaryIO) -> None:
    """An Arrow IPC stream whose schema tells, under `nearly`, how good the answer is."""
    table = with_bounds(answer)
    facts = {name: getattr(answer, name) for name in ("exact", "progress", "error", "confidence", "source")}
    table = table.replace_schema_metadata({"nearly": _json(facts)})
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Callable[[Answer, BinaryIO], None]] = {"csv": write_csv, "json": write_json, "arrow": write_arrow}
"""For programs: all rows."""
DRAWINGS: dict[str, Callable[[TextTable], str]] = {"vertical": vertical_table, "markdown": markdown_table}
"""For people: as many rows as they ask for."""
MODES = ("table", *WRITERS, *DRAWINGS)


def refuse_terminal(format_: str) -> None:
    """Binary data is for a file or a program."""
    if format_ == "arrow" and sys.stdout.isatty():
        raise SchemaError("--format arrow writes binary data; redirect the output to a file or a program")


def write(answer: Answer, format_: str, rows: int) -> None:
    """An answer in a format, to standard output; `rows` is how many of them those show that are read by people."""
    refuse_terminal(format_)
    sys.stdout.flush()
    if format_ in WRITERS:
        WRITERS[format_](answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        print(DRAWINGS[format_](TextTable.of(answer.table, answer.low, answer.high, rows)))
        if not answer.exact:
            print(f"({answer.state})")


def write_look(table: pa.Table, mode: str, rows: int) -> None:
    """What there is, such as a list of tables, in a format; texts that are longer than a cell are written whole."""
    if mode != "table":
        write(Answer.exactly(table, "catalog"), mode, rows)
    elif table.column_names == ["plan"]:
        print("\n".join(table["plan"].to_pylist()))
    else:
        print(plain_table(TextTable.of(table, table, table, max(rows, table.num_rows))))


def _distinct(names: list[str]) -> list[str]:
    """The names with numbers after those that repeat one before; a number never makes a name that another column has."""
    found: list[str] = []
    for name in names:
        numbered = (f"{name}_{number}" for number in itertools.count(2))
        found.append(name if name not in found else next(each for each in numbered if each not in found and each not in names))
    return found


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Nested and binary values as JSON text, which CSV can hold."""
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return pa.chunked_array([pa.array([None if each is None else _json(each) for each in column.to_pylist()], pa.string())])
    return column


def _json(value: Any) -> str:
    match value:
        case Decimal():
            return f"{value:f}"
        case float() if not math.isfinite(value):
            return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
        case bytes():
            return json.dumps(base64.b64encode(value).decode())
        case dt.datetime() | dt.date() | dt.time():
            return json.dumps(value.isoformat())
        case dt.timedelta():
            return json.dumps(value.total_seconds())
        case list() | tuple():
            return "[" + ", ".join(_json(each) for each in value) + "]"
        case dict():
            return "{" + ", ".join(f"{_json(str(key))}: {_json(each)}" for key, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
