"""The views that questions are served by, found once: right while tables, views, experiments and the time zone are the same."""

from __future__ import annotations

from dataclasses import dataclass

from nearly.autoview.rewriter import Rewriting
from nearly.engine.planner import Prepared
from nearly.plan.remembered import Remembered

REMEMBERED = 256
"""As many as plans are."""


@dataclass(slots=True)
class KnownServing:
    """A query over the views that make it cheapest, among those that were kept when there had been so many changes of them."""

    prepared: Prepared
    changes: int
    zone: str
    best: Rewriting
    is_compared: bool = False
    """Whether experiments with other views that serve it were queued."""


class Lookups:
    """The last lookups, by question."""

    def __init__(self) -> None:
        self._known: Remembered[str, KnownServing] = Remembered(REMEMBERED)

    def get(self, question: str, prepared: Prepared, changes: int, zone: str) -> KnownServing | None:
        """What was found for a planned query, if nothing that it hangs on is another; an equal plan of the text is another."""
        known = self._known.get(question)
        right = known is not None and known.prepared is prepared and (known.changes, known.zone) == (changes, zone)
        return known if right else None

    def add(self, question: str, lookup: KnownServing) -> KnownServing:
        """Remember it; functions of users live as long as their query only."""
        return lookup if lookup.prepared.functions else self._known.add(question, lookup)

    def forget(self, question: str) -> None:
        self._known.forget(question)

    def compares(self, question: str) -> bool:
        """Whether other views shall be compared with the one that is used: once for each lookup."""
        known = self._known.get(question)
        if known is None:
            return True
        before, known.is_compared = known.is_compared, True
        return not before
