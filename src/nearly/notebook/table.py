"""A frame as an HTML table."""

from __future__ import annotations

from html import escape

from nearly.printing.cells import CellText
from nearly.printing.frame import TextColumn, TextTable

_NUMBER = "text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"
_TEXT = "text-align:left"
_INTERVAL = "color:#0a7ea4"
_HISTORY = "color:#6b7fb3;font-family:monospace"
_NULL = "color:#999;font-style:italic"


def html_table(frame: TextTable) -> str:
    """Names, then a row for each row; whatever the data contains is text, never markup."""
    head = "".join(f'<th style="{_style(column)}">{escape(column.name)}</th>' for column in frame.columns)
    rows = []
    for row in range(frame.rows):
        cells = "".join(f'<td style="{_style(column)}">{_cell(column.cells[row])}</td>' for column in frame.columns)
        rows.append(f"<tr>{cells}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def paragraph(text: str) -> str:
    """A line of text below or instead of the table."""
    return f'<p style="margin:4px 0;color:#666">{escape(text)}</p>'


def _style(column: TextColumn) -> str:
    return _NUMBER if column.numeric else _TEXT


def _cell(cell: CellText) -> str:
    value = f'<span style="{_NULL}">{escape(cell.value)}</span>' if cell.null else escape(cell.value)
    interval = f' <span style="{_INTERVAL}">{escape(cell.interval)}</span>' if cell.interval else ""
    history = f' <span style="{_HISTORY}">{escape(cell.history)}</span>' if cell.history else ""
    return value + interval + history
