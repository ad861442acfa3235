"""The face for a notebook: one output that is replaced with every answer."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from nearly.answer import Answer
from nearly.display.status import Clock, progress_line, remarks
from nearly.display.trail import Trail
from nearly.notebook.plot import convergence_plot
from nearly.notebook.table import html_table, paragraph
from nearly.printing.frame import TextTable
from nearly.printing.numbers import duration_text

SHOWN_ROWS = 25


class Notebook:
    """Shows answers through IPython, which is there when the program runs in a notebook and is asked for nowhere else."""

    def applies(self) -> bool:
        """Whether this is a kernel of a notebook; the plain IPython shell is a terminal."""
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython is not None else None
        return shell is not None and hasattr(shell, "kernel")

    def show(self, answers: Iterable[Answer]) -> None:
        """Replace the output with each answer."""
        display: Any = import_module("IPython.display")
        clock = Clock()
        trail = Trail(SHOWN_ROWS)
        handle = display.display(display.HTML(paragraph("reading ...")), display_id=True)
        for answer in answers:
            clock.tick(answer)
            trail.add(answer)
            handle.update(display.HTML(page(answer, trail, clock)))

    def finish(self, answer: Answer) -> None:
        """The last output stands already; it says itself whether it is exact."""


def page(answer: Answer, trail: Trail, clock: Clock) -> str:
    """The table, the plot of the first number that is uncertain, and a line that says where the query stands."""
    frame = TextTable.of(answer.table, answer.low, answer.high, trail.rows)
    frame = frame.with_histories(trail.sparklines(len(frame.columns)))
    notes = ", ".join((*(f"... {note}" for note in frame.notes), *remarks(answer)))
    status = progress_line(answer, clock.elapsed)
    status += " ✓" if answer.exact else f", about {duration_text(clock.left)} left" if clock.left is not None else ""
    parts = [html_table(frame), paragraph(notes) if notes else "", convergence_plot(answer, trail), paragraph(status)]
    return "<div>" + "".join(parts) + "</div>"
