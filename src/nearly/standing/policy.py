"""When a standing query is refreshed: after some seconds, after some rows, or whichever of both comes first."""

from __future__ import annotations

from dataclasses import dataclass

from nearly.errors import SchemaError
from nearly.plan.time_between import seconds_of
from nearly.standing.arrivals import Next

SHORTEST = 0.05
"""Seconds."""


@dataclass(frozen=True, slots=True)
class RefreshPolicy:
    """The trigger: `every` so many seconds, or once `rows` of all tables came or went; with neither, only when asked."""

    every: float | None = None
    rows: int | None = None

    @property
    def next(self) -> Next:
        return Next(self.every, self.rows)

    def is_due(self, waited: float, arrived: float, *, ages: bool = False) -> bool:
        """Whether to refresh, so many seconds after the last time, when so many rows came or went since.

        Nothing new needs none, save where an answer that `ages` is another one later on.
        """
        is_late = self.every is not None and waited >= self.every and (arrived > 0 or ages)
        return is_late or (self.rows is not None and arrived >= self.rows)

    def wait(self, waited: float, glance: float) -> float:
        """Seconds until it is worth looking again; rows are looked for every `glance` seconds."""
        left = None if self.every is None else max(0.0, self.every - waited)
        if self.rows is None:
            return glance if left is None else max(left, glance / 10)
        return glance if left is None else min(glance, max(left, glance / 10))


def policy_of(every: str | float | None, rows: int | None) -> RefreshPolicy:
    """A policy from what a user gives."""
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        raise SchemaError(f"rows={rows!r} must be a whole number of rows, 1 at least")
    return RefreshPolicy(None if every is None else seconds_of(every, SHORTEST), rows)
