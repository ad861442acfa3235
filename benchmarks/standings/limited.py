"""States that are given up when making them takes too long: those of all subjoins take minutes for some queries."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from nearly.engine.deltas.several import Moving, PartChange
from nearly.plan.expressions import Column
from nearly.plan.nodes import Plan
from nearly.standing.states import StateRows, StateStore


class TooLong(Exception):
    """A strategy has had its time."""


class LimitedStates(StateStore):
    """States, each of which is begun only before some moment."""

    _until = math.inf

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Raise `TooLong` for what is begun after so many seconds."""
        self._until = math.inf if seconds is None else time.perf_counter() + seconds
        try:
            yield
        finally:
            self._until = math.inf

    def check(self) -> None:
        if time.perf_counter() > self._until:
            raise TooLong

    def make(
        self, found: Moving, plan: Plan, source: Plan, place: str, order: Sequence[Column], key: Iterable[str] | None
    ) -> StateRows:
        self.check()
        return super().make(found, plan, source, place, order, key)

    def apply(self, found: Moving, state: StateRows, change: PartChange) -> bool:
        self.check()
        return super().apply(found, state, change)
