"""`FROM 'rides.parquet'`: files that a text names instead of tables, found among its words so that each can get a name.

Only where a user's own files are allowed, as on the command line, is a text read so; elsewhere a text in the place of a table stays
the mistake that it is in Spark SQL.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot.tokenizer_core import Token, TokenType

from nearly.errors import ParseError
from nearly.plan.syntax.parse import tokens_of

_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)


def with_named_files(text: str, name_of: Callable[[str], str]) -> str:
    """The text with a name, given by `name_of`, for each file in a FROM clause or a join.

    >>> with_named_files("select * from 'a.csv' a join 'b.csv' b using (id) where x = 'from'", lambda path: path[0].upper())
    "select * from A a join B b using (id) where x = 'from'"
    """
    try:
        tokens = tokens_of(text)
    except ParseError:
        return text  # whoever reads the query says what is wrong with it
    written = text
    for token in reversed(_file_tokens(tokens)):
        written = written[: token.start] + name_of(token.text) + written[token.end + 1 :]
    return written


def _file_tokens(tokens: list[Token]) -> list[Token]:
    """Strings where a table must stand: after JOIN, and after the FROM of a SELECT, which is not that of `extract(day FROM x)`."""
    found: list[Token] = []
    selecting = [False]
    for place, token in enumerate(tokens):
        kind = token.token_type
        if kind == TokenType.L_PAREN:
            selecting.append(False)
        elif kind == TokenType.R_PAREN and len(selecting) > 1:
            selecting.pop()
        elif kind == TokenType.SELECT:
            selecting[-1] = True
        elif kind in (TokenType.FROM, TokenType.JOIN) and place + 1 < len(tokens):
            begins = kind == TokenType.JOIN or (selecting[-1] and tokens[place - 1].token_type != TokenType.DISTINCT)
            if begins and tokens[place + 1].token_type in _STRINGS:
                found.append(tokens[place + 1])
            if begins and kind == TokenType.FROM:
                selecting[-1] = False
    return found
