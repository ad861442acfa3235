"""A frame as a table in Markdown."""

from __future__ import annotations

from nearly.printing.frame import TextTable
from nearly.printing.plain import cell_texts


def markdown_table(frame: TextTable) -> str:
    """Names, a rule that aligns numbers right, one line for each row, and a note of what is left out.

    >>> import pyarrow as pa
    >>> table = pa.table({"city": ["a|b", None], "people": [2748109, 8]})
    >>> print(markdown_table(TextTable.of(table, table, table, rows=5)))
    | city | people |
    | --- | ---: |
    | a\\\\|b | 2,748,109 |
    | NULL | 8 |
    """
    names = [_escaped(column.name) for column in frame.columns]
    rules = ["---:" if column.numeric else "---" for column in frame.columns]
    cells = [[_escaped(" ".join(text.split())) for text in cell_texts(column)] for column in frame.columns]
    lines = [names, rules, *(list(row) for row in zip(*cells, strict=True))]
    notes = ["", f"... {', '.join(frame.notes)}"] if frame.notes else []
    return "\n".join(["| " + " | ".join(line) + " |" for line in lines] + notes)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|")
