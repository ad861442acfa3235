"""What a kept view has earned, so that it is known which one goes when room is needed.

    C(t+1) = mu * C(t) + R(t),     R = gain of a use + gamma * cost of making it again

A credit falls with every query and rises with every use. A negative one, of a view that made queries slower, does not fall back
to 0, and the cost is a penalty then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearly.autoview.options import Holding

MU = 0.997
GAMMA = 0.3


class Credits:
    """Credits by view."""

    def __init__(self) -> None:
        self._credits: dict[str, tuple[float, int]] = {}

    def use(self, holding: Holding, step: int, gain: float) -> None:
        """A query used a view."""
        before = self.of(holding, step)
        earned = gain + (GAMMA if gain >= 0 else -GAMMA) * holding.cost
        self._credits[holding.id] = (before + earned, step)

    def begin(self, holding: Holding, step: int) -> None:
        """A new view is worth what it would cost to make it again."""
        self._credits[holding.id] = (GAMMA * holding.cost, step)

    def of(self, holding: Holding, step: int) -> float:
        """What is left of a view's credit."""
        credit, last = self._credits.get(holding.id, (0.0, step))
        return credit if credit < 0 else credit * float(MU ** max(0, step - last))

    def forget(self, id_: str) -> None:
        self._credits.pop(id_, None)

    def content(self) -> Mapping[str, Any]:
        return {id_: list(each) for id_, each in self._credits.items()}

    def restore(self, content: Mapping[str, Any]) -> None:
        self._credits = {id_: (credit, last) for id_, (credit, last) in content.items()}
