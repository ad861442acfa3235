"""Which questions are thought about: a quick one as well, but seldom, since finding a view for it may take as long as it does."""

from __future__ import annotations

from nearly.plan.remembered import Remembered

ENOUGH = 0.01
"""Seconds that a question takes, in all, until it is thought about again: many times what thinking takes."""
REMEMBERED = 2_000


class Attention:
    """What questions took since they were thought about last.

    Law: of n askings of a question that takes s seconds, those that are thought about are n times min(1, s / ENOUGH), about.
    """

    def __init__(self) -> None:
        self._took: Remembered[str, float] = Remembered(REMEMBERED)

    def is_due(self, question: str, seconds: float) -> bool:
        """Whether a question that takes so many seconds is thought about now."""
        took = (self._took.get(question) or 0.0) + seconds
        is_due = took >= ENOUGH
        self._took.add(question, 0.0 if is_due else took)
        return is_due
