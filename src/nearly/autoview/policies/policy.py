"""What a policy is: it ranks what a query could make, says what goes for it, and is told what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nearly.autoview.options import Holding, Occasion, Option


class ViewPolicy:
    """The base of all policies: makes nothing, and lets go of the least valuable views first."""

    name = "off"

    def ranked(self, moment: Occasion) -> Sequence[Option]:  # noqa: ARG002  others need it
        """What the query at hand shall make, the best first; nothing where none is worth it."""
        return ()

    def asked(self, question: str, step: int) -> None:
        """A query came for which nothing is made this time, as it is quick: what serves it is still asked for."""

    def value(self, holding: Holding, moment: Occasion) -> float:  # noqa: ARG002  others need it
        """How much a kept view is worth; the least valuable goes first."""
        return 0.0

    def victims(self, moment: Occasion, newcomer: Option, size: float) -> list[Holding] | None:
        """The views that go so that a new one of this size fits; None where it shall not be made instead."""
        return self.first_of(moment, newcomer, size, lambda holding: self.value(holding, moment))

    def first_of(self, moment: Occasion, newcomer: Option, size: float, value: Callable[[Holding], float]) -> list[Holding] | None:
        """The views of least value that make room, the older ones first; None where there is none, or they are not to go."""
        room = moment.capacity - moment.used_bytes
        found: list[Holding] = []
        for each in sorted(moment.kept, key=lambda holding: (value(holding), holding.made)):
            if room >= size:
                break
            found.append(each)
            room += each.bytes
        return found if room >= size and self.admits(moment, newcomer, found) else None

    def admits(self, moment: Occasion, newcomer: Option, victims: Sequence[Holding]) -> bool:  # noqa: ARG002  others need it
        """Whether a new view is worth more than those that would go."""
        return True

    def made(self, holding: Holding, moment: Occasion) -> None:
        """A view was made; its cost and its bytes are measured."""

    def used(self, holding: Holding, moment: Occasion, gain: float) -> None:
        """A query used a view, and gained so many seconds by it, as far as is known."""

    def gone(self, holding: Holding, step: int) -> None:
        """A view went, to make room or since its tables changed."""

    def lost(self, id_: str) -> None:
        """A view went since its tables changed."""

    def measured(self, question: str, id_: str, gain: float) -> None:
        """An experiment told what a query gains by a view."""

    def train(self) -> None:
        """Learn from what was seen; it is called when nothing else is to be done."""

    def content(self) -> Mapping[str, Any]:
        """What is to survive, as JSON can hold it."""
        return {}

    def restore(self, content: Mapping[str, Any]) -> None:
        """Have what an earlier session learned."""
