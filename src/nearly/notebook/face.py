"""The face for a notebook: one output that is replaced with every answer."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Self

from nearly.answer import Answer
from nearly.display.status import Clock, Doing, progress_line, remarks, waiting
from nearly.display.trail import Trail
from nearly.notebook.plot import convergence_plot
from nearly.printing.echo import drew
from nearly.printing.frame import TextTable
from nearly.printing.html import html_table, paragraph
from nearly.printing.numbers import duration_text

SHOWN_ROWS = 25
TOLD_SECONDS = 0.5


class Notebook:
    """Shows answers through IPython, which is there when the program runs in a notebook and is asked for nowhere else."""

    def applies(self) -> bool:
        """Whether this is a kernel of a notebook; the plain IPython shell is a terminal."""
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython is not None else None
        return shell is not None and hasattr(shell, "kernel")

    def show(self, answers: Iterable[Answer], doing: Doing = waiting) -> None:
        """Replace the output with each answer; until the first, tell what is done and how long already."""
        display: Any = import_module("IPython.display")
        clock = Clock()
        trail = Trail(SHOWN_ROWS)
        handle = display.display(display.HTML(paragraph(f"{doing().what} ...")), display_id=True)

        def tell() -> None:
            handle.update(display.HTML(paragraph(f"{doing().what} ... {duration_text(clock.running)}")))

        with _Waiting(tell) as waited:
            for answer in answers:
                waited.end()
                clock.tick(answer)
                trail.add(answer)
                handle.update(display.HTML(page(answer, trail, clock)))

    def finish(self, answer: Answer) -> None:
        """The last output stands already and says itself whether it is exact; the cell shall not show the answer again."""
        drew(answer)


class _Waiting:
    """Tells every half second that there is no answer yet, from a thread of its own."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nearly-waiting", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """There is one now."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(TOLD_SECONDS):
            self._tell()


def page(answer: Answer, trail: Trail, clock: Clock) -> str:
    """The table, the plot of the first number that is uncertain, and a line that says where the query stands."""
    frame = TextTable.of(answer.table, answer.low, answer.high, trail.rows)
    frame = frame.with_histories(trail.sparklines(len(frame.columns)))
    notes = ", ".join((*(f"... {note}" for note in frame.notes), *remarks(answer)))
    status = progress_line(answer, clock.elapsed)
    status += " ✓" if answer.exact else f", about {duration_text(clock.left)} left" if clock.left is not None else ""
    parts = [html_table(frame), paragraph(notes) if notes else "", convergence_plot(answer, trail), paragraph(status)]
    return "<div>" + "".join(parts) + "</div>"
