"""The last answer for another program: CSV, JSON or an Arrow stream; or as text below each other, or in Markdown.

Columns that are uncertain in some row are followed by their bounds, `NAME_low` and `NAME_high`; the exact answer has none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import BinaryIO

import pyarrow as pa

from nearly.answer import Answer
from nearly.errors import SchemaError
from nearly.printing import export
from nearly.printing.frame import TextTable
from nearly.printing.markdown import markdown_table
from nearly.printing.plain import plain_table
from nearly.printing.vertical import vertical_table


def with_bounds(answer: Answer) -> pa.Table:
    return export.with_bounds(answer.table, answer.low, answer.high)


def write_csv(answer: Answer, stream: BinaryIO) -> None:
    export.write_csv(with_bounds(answer), stream)


def write_json(answer: Answer, stream: BinaryIO) -> None:
    """A list with an object for each row. Decimals keep all digits; NaN and the infinities, which JSON lacks, are text."""
    table = with_bounds(answer)
    names = [json.dumps(name, ensure_ascii=False) for name in table.column_names]
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    cells = ([export.json_text(value) for value in row] for row in rows)
    lines = ["{" + ", ".join(f"{name}: {cell}" for name, cell in zip(names, row, strict=True)) + "}" for row in cells]
    stream.write(("[" + ",\n ".join(lines) + "]\n").encode())


def write_arrow(answer: Answer, stream: BinaryIO) -> None:
    """An Arrow IPC stream whose schema tells, under `nearly`, how good the answer is."""
    table = with_bounds(answer)
    facts = {name: getattr(answer, name) for name in ("exact", "progress", "error", "confidence", "source")}
    table = table.replace_schema_metadata({"nearly": export.json_text(facts)})
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
