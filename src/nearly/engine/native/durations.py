"""How long answers take: exact ones are remembered by query, others are guessed from what they cost.

An early answer puts off the exact one by the time it takes, so it is made only where that is a small part.
"""

from __future__ import annotations

from nearly.engine.costs import Costs
from nearly.plan.nodes import Plan, Scan
from nearly.plan.remembered import Remembered
from nearly.plan.schema import FindTable

FIXED_SECONDS, STAGE_SECONDS = 0.08, 0.04
"""What a first answer takes beside reading: cutting the plan and evaluating replicates, and what each stage adds to it."""

PIECES = 1.5
"""Reading a table in pieces takes about so many times as long as reading as many rows at once."""

WORTH = 0.2
"""A first answer is made when it is expected within this share of the time of the exact one, which it puts off by as much."""

REMEMBERED = 1_000
"""Queries whose time is remembered."""


class Durations:
    """Seconds that queries took, and guesses for others; a question is a query over certain content."""

    def __init__(self, costs: Costs | None = None) -> None:
        self.costs = costs or Costs()
        self.eager = False
        """Whether early answers are made however near the exact one is."""
        self._seconds: Remembered[str, float] = Remembered(REMEMBERED)

    def expected(self, question: str, plan: Plan, find_table: FindTable, cores: int) -> float:
        """About how many seconds an exact run takes."""
        known = self._seconds.get(question)
        return self.costs.seconds(plan, find_table, cores) if known is None else known

    def knows(self, question: str) -> bool:
        """Whether a run of this question was recorded."""
        return question in self._seconds

    def is_worth(self, expected: float, stages: int, share_first: float) -> bool:
        """Whether a first answer comes well before the exact one, which is expected after some seconds.

        `share_first` is the share of the values that the exact one reads: at once for what is read whole, in pieces for the rest.
        """
        return self.eager or FIXED_SECONDS + STAGE_SECONDS * stages + share_first * expected <= WORTH * expected

    def record(self, question: str, seconds: float, expected: float | None = None) -> None:
        """Remember a run; of several the quickest, since what disturbs a run only makes it slower. The first corrects the costs."""
        if expected is not None and question not in self._seconds:
            self.costs.observe("exact", expected, seconds)
        self._seconds.add(question, min(seconds, self._seconds.get(question) or seconds))


def cells(plan: Plan, find_table: FindTable) -> int:
    """Values that a plan reads."""
    return sum(find_table(node.table).rows * max(1, len(node.fields)) for node in plan.walk() if isinstance(node, Scan))
