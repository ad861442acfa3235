"""A text of several statements, cut at its semicolons."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from nearly.errors import ParseError
from nearly.plan.syntax.parse import tokens_of


def statements_of(text: str) -> list[str]:
    """The statements, without semicolons; those in quotes and comments separate nothing.

    >>> statements_of("select ';' as a; -- one; two\\nselect 2;")
    ["select ';' as a", '-- one; two\\nselect 2']
    """
    try:
        ends = [token.start for token in tokens_of(text) if token.token_type == TokenType.SEMICOLON]
    except ParseError:
        return [text]  # whoever reads it says what is wrong
    pieces = [text[begin:end].strip() for begin, end in zip([0, *(end + 1 for end in ends)], [*ends, len(text)], strict=True)]
    found = [piece for piece in pieces if _has_words(piece)]
    return found or [text]


def is_complete(text: str) -> bool:
    """Whether a text that is being typed ends in a semicolon that is one."""
    try:
        tokens = tokens_of(text)
    except ParseError:
        return False
    return bool(tokens) and tokens[-1].token_type == TokenType.SEMICOLON


def _has_words(text: str) -> bool:
    return bool(tokens_of(text))
