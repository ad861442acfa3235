"""A frame as an HTML table, a drawing as a picture that every notebook shows, and a list of facts."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape

import pyarrow as pa

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


def picture(svg: str, text: str) -> str:
    """A drawing as an image within the page: notebooks that are not trusted leave out drawings as such, and keep images."""
    data = base64.b64encode(svg.encode()).decode("ascii")
    return f'<img alt="{escape(text, quote=True)}" src="data:image/svg+xml;base64,{data}"/>'


def card(title: str, facts: Mapping[str, object], table: str = "") -> str:
    """A thing in a few lines: what it is, what is known of it, and perhaps a table."""
    rows = "".join(
        f'<tr><td style="text-align:left;color:#666">{escape(name)}</td><td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in facts.items()
    )
    return f"<div><b>{escape(title)}</b><table><tbody>{rows}</tbody></table>{table}</div>"


def arrow_html(table: pa.Table, rows: int) -> str:
    """The first rows of a table whose values are certain."""
    return html_table(TextTable.of(table, table, table, rows))


def _style(column: TextColumn) -> str:
    return _NUMBER if column.numeric else _TEXT


def _cell(cell: CellText) -> str:
    value = f'<span style="{_NULL}">{escape(cell.value)}</span>' if cell.null else escape(cell.value)
    interval = f' <span style="{_INTERVAL}">{escape(cell.interval)}</span>' if cell.interval else ""
    history = f' <span style="{_HISTORY}">{escape(cell.history)}</span>' if cell.history else ""
    return value + interval + history
