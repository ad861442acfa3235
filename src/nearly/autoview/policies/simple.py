"""Policies of caches: any candidate is made, and what was used least lately, least often or made first goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nearly.autoview.options import Holding, Occasion, Option
from nearly.autoview.policies.policy import ViewPolicy


class _Random(ViewPolicy):
    """Makes candidates in random order."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def ranked(self, moment: Occasion) -> Sequence[Option]:
        order = self._random.permutation(len(moment.options))
        return [moment.options[place] for place in order]


class Lru(_Random):
    """The least recently used goes."""

    name = "lru"

    def value(self, holding: Holding, moment: Occasion) -> float:  # noqa: ARG002  others need it
        return holding.last


class Lfu(_Random):
    """The least frequently used goes."""

    name = "lfu"

    def value(self, holding: Holding, moment: Occasion) -> float:  # noqa: ARG002  others need it
        return holding.uses


class Fifo(_Random):
    """The oldest goes."""

    name = "fifo"

    def value(self, holding: Holding, moment: Occasion) -> float:  # noqa: ARG002  others need it
        return holding.made
