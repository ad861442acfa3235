"""Where a query stands, in one line."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from nearly.answer import Answer
from nearly.printing.numbers import duration_text, percent_text

BAR_COLUMNS = 20


@dataclass(frozen=True, slots=True)
class Work:
    """What a query is busy with before its first answer, and in how many seconds its exact answer is expected, if that is known."""

    what: str
    seconds: float | None = None


Doing: TypeAlias = Callable[[], Work]
"""Tells what a query is doing; it is asked from another thread than the query's own."""


def waiting() -> Work:
    """What is said where nothing is known."""
    return Work("reading")


def progress_line(answer: Answer, elapsed: float) -> str:
    """Per cent read, time and error, as in `12 % read, 0.8 s, error 2.1 %`; the exact answer says so."""
    parts = [f"{percent_text(answer.progress)} read", duration_text(elapsed)]
    return ", ".join([*parts, "exact" if answer.exact else answer.told_error])


@dataclass(slots=True)
class Clock:
    """The time since a query was asked, and what the rest will take if it goes on as it has since its first answer.

    The time before the first answer says little: Spark may have been starting.
    """

    now: Callable[[], float] = time.monotonic
    elapsed: float = 0.0
    left: float | None = None
    """At the newest answer."""
    _started: float = field(init=False)
    _first: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        self._started = self.now()

    @property
    def running(self) -> float:
        """Seconds since the query was asked, up to this moment."""
        return self.now() - self._started

    @property
    def still_left(self) -> float | None:
        """What is left at this moment of what was left at the newest answer."""
        return None if self.left is None else max(0.0, self.left - (self.running - self.elapsed))

    def tick(self, answer: Answer) -> None:
        """An answer has come."""
        self.elapsed = self.now() - self._started
        if self._first is None:
            self._first = (self.elapsed, answer.progress)
            return
        began, share = self._first
        self.left = (self.elapsed - began) * (1 - answer.progress) / (answer.progress - share) if answer.progress > share else None


def progress_bar(progress: float) -> str:
    """A bar of fixed width.

    >>> progress_bar(0.5)
    '██████████░░░░░░░░░░'
    """
    filled = round(BAR_COLUMNS * min(max(progress, 0.0), 1.0))
    return "█" * filled + "░" * (BAR_COLUMNS - filled)


def remarks(answer: Answer) -> tuple[str, ...]:
    """What a reader must know beside the numbers: rows that may come or go, and the meaning of the intervals."""
    if answer.exact:
        return ()
    return (f"intervals at {percent_text(answer.confidence)} confidence", *([answer.lacks] if answer.lacks else []))
