"""Who besides the engine can answer a query: what it offers, how exact and how soon that is, or why it offers nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from nearly.answer import Answer
from nearly.engine.native.running import Ending
from nearly.engine.planner import Prepared


@dataclass(frozen=True, slots=True)
class Question:
    """A planned query; `using` names the one who alone is asked, and then what it cannot do is an error.

    With `exact` no estimate is wanted. Whoever `stops` at the first answer that is good enough needs intervals that allow it.
    What is done for it ends with `ending`.
    """

    prepared: Prepared
    confidence: float
    using: str | None = None
    exact: bool = False
    stops: bool = False
    ending: Ending = field(default_factory=Ending, compare=False)


@dataclass(frozen=True, slots=True)
class Offer:
    """An answer that `give` makes in about so many seconds with a relative `error`; `give` is None where nothing is offered.

    `reasons` tell, a line each, what was considered and why it was taken or not. `more` gives better answers after that one, the
    last of them exact.
    """

    reasons: tuple[str, ...]
    give: Callable[[], Answer] | None = None
    error: float = 0.0
    seconds: float = 0.0
    more: Callable[[Answer], Iterator[Answer]] | None = None


class Answerer(Protocol):
    """Something kept from earlier that may answer queries: a synopsis, a view. `is_exact` where it has exact answers."""

    @property
    def is_exact(self) -> bool: ...

    def knows(self, name: str) -> bool:
        """Whether this is the one to ask that has such a name."""
        ...

    def offer(self, question: Question) -> Offer: ...
