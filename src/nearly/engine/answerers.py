"""Who besides the engine can answer a query: what it offers, how exact and how soon that is, or why it offers nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from nearly.answer import Answer
from nearly.engine.planner import Prepared


@dataclass(frozen=True, slots=True)
class Question:
    """A planned query; `using` names the one who alone is asked, and then what it cannot do is an error."""

    prepared: Prepared
    confidence: float
    using: str | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """An answer that `give` makes in about so many seconds with a relative `error`; `give` is None where nothing is offered.

    `reasons` tell, a line each, what was considered and why it was taken or not.
    """

    reasons: tuple[str, ...]
    give: Callable[[], Answer] | None = None
    error: float = 0.0
    seconds: float = 0.0


class Answerer(Protocol):
    """Something kept from earlier that may answer queries: a synopsis, a view."""

    def offer(self, question: Question) -> Offer: ...
