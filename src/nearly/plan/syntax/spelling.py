"""The words of a query in one spelling that every lexer of Spark SQL reads alike.

Spark is given the words that were parsed and checked, never the user's characters: the lexers of Spark and of the parser differ in
where comments end, and Spark replaces `${...}` before it reads anything. Without comments and hints, with strings escaped and names
quoted in one way, there is nothing left to read differently.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from sqlglot.tokenizer_core import Token, TokenType

from nearly.errors import ParseError, Unsupported
from nearly.plan.quoting import spark_name

_WORD = re.compile(r"\w+(?:\s+\w+)*")
_SYMBOLS = frozenset({
    "(", ")", "[", "]", ",", ".", ":", "::", "*", "+", "-", "/", "%", "=", "==", "<", ">", "<=", ">=", "<>", "!=", "!", "<=>", "||",
    "&", "|", "^", "~", "<<", ">>", ">>>", "->", "=>", "|>", "?",
})  # fmt: skip
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[A-Za-z]{0,2}")
_STRINGS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING)
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\x1a": "\\Z"}


def spelled(text: str, tokens: Sequence[Token]) -> str:
    """The tokens of a text as text again. Law: it has the same tokens, and it is spelled as it is: `spelled(s, tokens(s)) == s`."""
    parts: list[str] = []
    end = -1
    quoted = True
    for start, group in groupby(tokens, key=lambda token: token.start):
        token = next(iter(group))
        # a number with a suffix is several tokens of the same characters
        loose = quoted or token.token_type in _STRINGS or start != end + 1
        if parts and loose:
            parts.append(" ")
        parts.append(_word(text, token))
        quoted, end = token.token_type in _STRINGS, token.end
    return "".join(parts)


def string(value: str) -> str:
    """A text constant in Spark SQL; no `${` stays that variables could be put in for.

    >>> print(string("it's ${x}"))
    'it\\'s \\u0024{x}'
    """
    escaped = "".join(_ESCAPES.get(character, character) for character in value)
    return "'" + escaped.replace("${", "\\u0024{") + "'"


def name(value: str) -> str:
    """A quoted name in Spark SQL."""
    if "${" in value:
        raise Unsupported(f"Spark is not given the name {value!r}: it could put a variable's value in its place")
    return spark_name(value)


def _word(text: str, token: Token) -> str:
    written = text[token.start : token.end + 1]
    match token.token_type:
        case TokenType.STRING | TokenType.RAW_STRING:
            return string(token.text)
        case TokenType.HEX_STRING if re.fullmatch(r"[0-9A-Fa-f]*", token.text) and written[:1] in "xX":
            return f"X'{token.text}'"
        case TokenType.IDENTIFIER:
            return name(token.text)
        case TokenType.NUMBER if _NUMBER.fullmatch(written):
            return written
        case TokenType.VAR if _WORD.fullmatch(written) and not written.isascii():
            return name(written)
        case TokenType.PARAMETER | TokenType.HASH | TokenType.L_BRACE | TokenType.R_BRACE | TokenType.HEX_STRING:
            pass
        case _ if written in _SYMBOLS or (_WORD.fullmatch(written) and written.isascii()):
            return " ".join(written.split())
    raise ParseError(f"not a query that Spark SQL would accept: {written[:20]!r} at line {token.line}, column {token.col}")
