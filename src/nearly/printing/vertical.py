"""A frame with each row below the other, a line for each value: for rows that are wider than the terminal."""

from __future__ import annotations

from nearly.printing.characters import pad, width
from nearly.printing.frame import TextTable


def vertical_table(frame: TextTable) -> str:
    """A heading with the number of the row, then `name: value` for each column.

    >>> import pyarrow as pa
    >>> table = pa.table({"city": ["Rome"], "people": [2748109]})
    >>> print(vertical_table(TextTable.of(table, table, table, rows=5)))
    ---- row 1 ----
      city: Rome
    people: 2,748,109
    """
    room = max((width(column.name) for column in frame.columns), default=0)
    lines = []
    for row in range(frame.rows):
        lines.append(f"---- row {row + 1:,} ----")
        for column in frame.columns:
            cell = column.cells[row]
            lines.append(f"{pad(column.name, room, right=True)}: {' '.join(part for part in (cell.value, cell.interval) if part)}")
    if frame.notes:
        lines.append(f"... {', '.join(frame.notes)}")
    return "\n".join(lines) if lines else "(no rows)"
