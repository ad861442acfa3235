"""A frame as lines of plain text."""

from __future__ import annotations

from collections.abc import Iterator

from nearly.printing.cells import CellText
from nearly.printing.characters import pad, width
from nearly.printing.frame import GAP, INNER_GAP, TextColumn, TextTable


def plain_table(frame: TextTable) -> str:
    """Names, a rule, one line for each row, and a note of what is left out; numbers are aligned right.

    >>> import pyarrow as pa
    >>> table = pa.table({"city": ["Rome", None], "people": [2748109, 8]})
    >>> print(plain_table(TextTable.of(table, table, table, rows=5)))
    city     people
    ----  ---------
    Rome  2,748,109
    NULL          8
    """
    return "\n".join(line.rstrip() for line in _lines(frame))


def cell_texts(column: TextColumn) -> list[str]:
    """The cells of a column, each as wide as the widest: values, intervals and histories stand below each other."""
    widths = column.widths
    texts = [_cell_text(column, each, widths) for each in column.cells]
    return [pad(text, column.width, column.numeric) for text in texts]


def _cell_text(column: TextColumn, cell: CellText, widths: tuple[int, int, int]) -> str:
    parts = ((cell.value, column.numeric), (cell.interval, False), (cell.history, False))
    padded = [pad(text, columns, right) for (text, right), columns in zip(parts, widths, strict=True) if columns]
    return (" " * INNER_GAP).join(padded)


def _lines(frame: TextTable) -> Iterator[str]:
    gap = " " * GAP
    columns = frame.columns
    yield gap.join(pad(column.name, column.width, column.numeric) for column in columns)
    yield gap.join("-" * max(column.width, width(column.name), 1) for column in columns)
    texts = [cell_texts(column) for column in columns]
    for row in range(frame.rows):
        yield gap.join(text[row] for text in texts)
    if frame.notes:
        yield f"... {', '.join(frame.notes)}"
