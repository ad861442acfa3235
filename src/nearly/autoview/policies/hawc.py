"""HAWC (Perez and Jermaine, 2014): what the optimiser expects decides.

The candidate with the largest expected gain is made. A table of credits has what each view would have saved, by estimate, in the
last queries; the view with the lowest credit goes.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from nearly.autoview.options import Holding, Occasion, Option
from nearly.autoview.policies.policy import ViewPolicy
from nearly.plan.remembered import Remembered

REMEMBERED = 500
"""Queries whose expected gains are credits."""


class Hawc(ViewPolicy):
    """Trusts estimates."""

    name = "hawc"

    def __init__(self) -> None:
        self._past: deque[tuple[tuple[str, float], ...]] = deque()
        self._credits: defaultdict[str, float] = defaultdict(float)
        self._gains: Remembered[str, tuple[tuple[str, float], ...]] = Remembered(REMEMBERED)

    def ranked(self, moment: Occasion) -> Sequence[Option]:
        self._note(self._gains.add(moment.question, tuple((each.id, max(0.0, each.gain)) for each in moment.options)))
        kept = {each.id for each in moment.kept}
        worth = [each for each in moment.options if each.gain > 0 and each.id not in kept]
        return sorted(worth, key=lambda each: -each.gain)[:1]

    def asked(self, question: str, step: int) -> None:  # noqa: ARG002  others need it
        self._note(self._gains.get(question) or ())

    def _note(self, gains: tuple[tuple[str, float], ...]) -> None:
        self._past.append(gains)
        for id_, gain in gains:
            self._credits[id_] += gain
        if len(self._past) > REMEMBERED:
            for id_, gain in self._past.popleft():
                self._credits[id_] -= gain
                if self._credits[id_] <= 1e-12:
                    del self._credits[id_]

    def value(self, holding: Holding, moment: Occasion) -> float:  # noqa: ARG002  others need it
        return self._credits.get(holding.id, 0.0)

    def admits(self, moment: Occasion, newcomer: Option, victims: Sequence[Holding]) -> bool:
        return all(self.value(each, moment) <= self._credits.get(newcomer.id, 0.0) for each in victims)
