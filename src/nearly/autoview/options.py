"""What policies see: views that could be made, and views that are kept, without their plans or rows.

The same policies decide in a session and in a simulation of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEAST_RATE = 1e-12


@dataclass(frozen=True, slots=True)
class ViewShape:
    """What a view is about: tables joined, columns grouped by, and how much of a column's values a predicate keeps."""

    tables: tuple[str, ...]
    groups: tuple[str, ...] = ()
    selectivities: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    """A view that could be made while a query runs.

    Expected are its bytes, the seconds of computing it alone, what the query at hand would gain if it were there, and what making
    it would cost that query. `known` are the true seconds of computing it, for those who are told.
    """

    id: str
    shape: ViewShape
    bytes: float
    seconds: float
    gain: float
    cost: float
    known: float | None = None


@dataclass(slots=True)
class Holding:
    """A view that is kept: its measured bytes, what making it cost, when that was and when it was used, counted in queries."""

    option: Option
    bytes: int
    cost: float
    made: int
    last: int = 0
    uses: int = 0
    saved: float = 0.0
    unpaid: float = 0.0
    """What of the cost no use has paid for yet."""

    def __post_init__(self) -> None:
        self.last = max(self.last, self.made)

    @property
    def id(self) -> str:
        return self.option.id


@dataclass(frozen=True, slots=True)
class Occasion:
    """A query that begins: which step of the workload, what it asks, what could be made of it, what is kept, how much fits.

    `seconds` is what it is expected to take with what is kept.
    """

    step: int
    question: str
    options: Sequence[Option]
    kept: Sequence[Holding]
    capacity: float
    seconds: float = 0.0

    @property
    def used_bytes(self) -> int:
        return sum(each.bytes for each in self.kept)
