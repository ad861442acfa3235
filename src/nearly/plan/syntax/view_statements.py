"""SQL text about views: CREATE, REFRESH and DROP MATERIALIZED VIEW, taken apart by its words.

What follows AS is a query, which is checked as one (`plan.parse`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from nearly.errors import ParseError
from nearly.plan.syntax.parse import check_query, tokens_of

_VIEW = ("MATERIALIZED", "VIEW")


@dataclass(frozen=True, slots=True)
class CreateView:
    """`CREATE [OR REPLACE] MATERIALIZED VIEW [IF NOT EXISTS] name AS query`."""

    table: str
    query: str
    or_replace: bool
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class RefreshView:
    """`REFRESH MATERIALIZED VIEW name`."""

    table: str


@dataclass(frozen=True, slots=True)
class DropView:
    """`DROP MATERIALIZED VIEW [IF EXISTS] name`."""

    table: str
    if_exists: bool


ViewStatement = CreateView | RefreshView | DropView


def parse_view_statement(text: str) -> ViewStatement | None:
    """The statement about a view that a text is; None for any other text."""
    if not isinstance(text, str) or text.lstrip()[:1].upper() not in tuple("CDR-/"):
        return None
    words = _Words([token for token in tokens_of(text) if token.token_type != TokenType.SEMICOLON])
    if words.take("CREATE"):
        return _create(text, words)
    if words.take("REFRESH") and words.take(*_VIEW):
        return RefreshView(words.only_name("REFRESH MATERIALIZED VIEW"))
    if words.take("DROP") and words.take(*_VIEW):
        exists = words.take("IF", "EXISTS")
        return DropView(words.only_name("DROP MATERIALIZED VIEW"), exists)
    return None


def _create(text: str, words: _Words) -> CreateView | None:
    replaced = words.take("OR", "REPLACE")
    if not words.take(*_VIEW):
        if words.take("VIEW"):
            raise ParseError("only views whose rows are kept are made: write CREATE MATERIALIZED VIEW")
        return None
    kept = words.take("IF", "NOT", "EXISTS")
    if replaced and kept:
        raise ParseError("a view is replaced or kept where it exists: write OR REPLACE or IF NOT EXISTS, not both")
    name = words.name("CREATE MATERIALIZED VIEW")
    if not words.take("AS") or words.rest is None:
        raise ParseError("CREATE MATERIALIZED VIEW is followed by a name, AS and a query")
    return CreateView(name, check_query(text[words.rest :]).text, replaced, kept)


class _Words:
    """The words of a statement that are not read yet."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = list(tokens)

    @property
    def rest(self) -> int | None:
        """Where in the text the next word begins; None at the end."""
        return self._tokens[0].start if self._tokens else None

    def take(self, *words: str) -> bool:
        """Whether these words come next, which are then read."""
        found = [token.text.upper() for token in self._tokens[: len(words)] if token.token_type != TokenType.IDENTIFIER]
        if found != list(words):
            return False
        del self._tokens[: len(words)]
        return True

    def name(self, what: str) -> str:
        if not self._tokens or not (self._tokens[0].token_type == TokenType.IDENTIFIER or self._tokens[0].text.isidentifier()):
            raise ParseError(f"{what} needs the name of a view")
        return str(self._tokens.pop(0).text)

    def only_name(self, what: str) -> str:
        found = self.name(what)
        if self._tokens:
            raise ParseError(f"{what} takes one name; {self._tokens[0].text!r} was not expected after it")
        return found
