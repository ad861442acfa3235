"""The Recycler (Nagel, Boncz and Viglas, 2013): what was dear to compute is worth keeping, the more so when it is used.

The dearest candidate is made, if it is dearer than a view that is kept. A view's cost counts the more the more often it was used,
and the less the longer that is ago.
"""

from __future__ import annotations

from collections.abc import Sequence

from nearly.autoview.options import Holding, Occasion, Option
from nearly.autoview.policies.policy import ViewPolicy

AGEING = 0.99
"""What a use counts after one more query."""


class Recycler(ViewPolicy):
    """Trusts that dear work is asked for again."""

    name = "recycler"

    def __init__(self) -> None:
        self._uses: dict[str, tuple[float, int]] = {}

    def ranked(self, moment: Occasion) -> Sequence[Option]:
        kept = {each.id for each in moment.kept}
        new = [each for each in moment.options if each.id not in kept]
        return sorted(new, key=lambda each: -_cost(each))[:1]

    def value(self, holding: Holding, moment: Occasion) -> float:
        uses, last = self._uses.get(holding.id, (1.0, holding.made))
        return _cost(holding.option) * uses * float(AGEING ** max(0, moment.step - last))

    def admits(self, moment: Occasion, newcomer: Option, victims: Sequence[Holding]) -> bool:
        return all(self.value(each, moment) < _cost(newcomer) for each in victims)

    def made(self, holding: Holding, moment: Occasion) -> None:
        self._uses[holding.id] = (1.0, moment.step)

    def used(self, holding: Holding, moment: Occasion, gain: float) -> None:  # noqa: ARG002  others need it
        uses, last = self._uses.get(holding.id, (1.0, moment.step))
        self._uses[holding.id] = (uses * float(AGEING ** (moment.step - last)) + 1.0, moment.step)

    def gone(self, holding: Holding, step: int) -> None:  # noqa: ARG002  others need it
        self._uses.pop(holding.id, None)


def _cost(option: Option) -> float:
    """The true seconds of computing a view where they are known, else the expected ones."""
    return option.seconds if option.known is None else option.known
