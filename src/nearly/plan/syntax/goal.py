"""`WITHIN 1% CONFIDENCE 95%` and `WITHIN 2 SECONDS` at the end of a query: how good or how late the answer may be."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from nearly.errors import ParseError
from nearly.plan.syntax.parse import tokens_of

_SECONDS = {"SECOND": 1.0, "SECONDS": 1.0, "S": 1.0, "MS": 0.001, "MILLISECONDS": 0.001, "MINUTE": 60.0, "MINUTES": 60.0}
_QUOTED = (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER)


@dataclass(frozen=True, slots=True)
class Goal:
    """When to stop: at a relative error, after some seconds, or, with neither, at the exact answer."""

    error: float | None = None
    seconds: float | None = None
    confidence: float | None = None

    @property
    def possible(self) -> bool:
        """Whether an error or time above zero is asked for, and a confidence below certainty."""
        sizes = [each for each in (self.error, self.seconds) if each is not None]
        return all(0 < size < math.inf for size in sizes) and (self.confidence is None or 0 < self.confidence < 1)


def split_goal(text: str) -> tuple[str, Goal]:
    """The query without the suffix, and what the suffix asks for.

    >>> split_goal("select 1 WITHIN 5 % CONFIDENCE 99 %")
    ('select 1', Goal(error=0.05, seconds=None, confidence=0.99))
    """
    if not isinstance(text, str):
        raise ParseError(f"a query is text, not {type(text).__name__}")
    if "within" not in text.lower():
        return text, Goal()
    try:
        tokens = tokens_of(text)
    except ParseError:
        return text, Goal()  # whoever reads the query says what is wrong with it
    words = ["'" if token.token_type in _QUOTED else token.text.upper() for token in tokens]
    places = [place for place, word in enumerate(words) if word == "WITHIN" and words[place + 1 : place + 2] != ["GROUP"]]
    if not places or not _is_number(words[places[-1] + 1 : places[-1] + 2]):
        return text, Goal()
    place = places[-1]
    goal = _read(words[place + 1 :])
    if goal is None or not goal.possible:
        raise ParseError(f"{text[tokens[place].start :]!r} is no goal; write WITHIN 1% [CONFIDENCE 95%] or WITHIN 2 SECONDS")
    return text[: tokens[place].start].rstrip(), goal


def _is_number(words: list[str]) -> bool:
    try:
        float(words[0])
    except (IndexError, ValueError):
        return False
    return True


def _read(words: list[str]) -> Goal | None:
    match [word for word in words if word != ";"]:
        case [error, "%"]:
            return Goal(error=float(error) / 100)
        case [error, "%", "CONFIDENCE", confidence, "%"] if _is_number([confidence]):
            return Goal(error=float(error) / 100, confidence=float(confidence) / 100)
        case [number, unit] if unit in _SECONDS:
            return Goal(seconds=float(number) * _SECONDS[unit])
    return None
