"""How every benchmark reports: one table on the terminal, one JSON file with `summary` and `rows`."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

Value = str | int | float | bool | None
Record = Mapping[str, Value]


def show(value: Value) -> str:
    """A value as a cell of the table.

    >>> show(1.23456), show(12345.6), show(None), show(True)
    ('1.235', '12346', '-', 'yes')
    """
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "NO"
        case float():
            return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3f}"
        case _:
            return str(value)


def print_table(columns: Sequence[str], rows: Iterable[Record]) -> None:
    """Print the rows in aligned columns, as wide as their content."""
    cells = [[show(row.get(column)) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for line in (columns, ["-" * width for width in widths], *cells):
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def print_summary(summary: Record) -> None:
    """Print one `name  value` line for each figure."""
    width = max(map(len, summary))
    for name, value in summary.items():
        print(f"{name.ljust(width)}  {show(value)}")


def print_report(columns: Sequence[str], rows: Sequence[Record], summary: Record) -> None:
    """Print the rows, what went wrong in them (`problem`, by `query`), and the figures."""
    print_table(columns, rows)
    for row in rows:
        for problem in str(row.get("problem") or "").splitlines():
            print(f"{row['query']}: {problem}")
    print()
    print_summary(summary)


def write_json(path: Path, settings: Record, summary: Record, rows: Sequence[Record]) -> None:
    """Write the report, with the machine it comes from, whole or not at all."""
    machine = {"system": platform.platform(), "python": platform.python_version(), "cores": os.cpu_count()}
    report = {"settings": settings, "machine": machine, "summary": summary, "rows": rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    draft.write_text(json.dumps(report, indent=2) + "\n")
    draft.replace(path)


def median(ratios: Sequence[float]) -> float | None:
    """The middle ratio; None when nothing was measured.

    >>> median([0.5, 2.0, 3.0])
    2.0
    """
    return statistics.median(ratios) if ratios else None
