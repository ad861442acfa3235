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
_AFTER_TABLES = frozenset({
    TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.CLUSTER_BY,
    TokenType.DISTRIBUTE_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.WINDOW, TokenType.QUALIFY, TokenType.UNION,
    TokenType.INTERSECT, TokenType.EXCEPT, TokenType.ON, TokenType.USING,
})  # fmt: skip
"""What ends the list of tables, or what is said of the last one."""


def with_named_files(text: str, name_of: Callable[[str], str]) -> str:
    """The text with a name, given by `name_of`, for each file in a FROM clause or a join.

    >>> with_named_files("select 'a', b from 'a.csv', 'b.csv' where x in ('a', 'b') order by 'c', d", lambda path: path[0].upper())
    "select 'a', b from A, B where x in ('a', 'b') order by 'c', d"
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
    """Strings where a table must stand: after JOIN, and in the FROM of a SELECT, which is not that of `extract(day FROM x)`."""
    found: list[Token] = []
    clauses: list[TokenType | None] = [None]
    for token, before, after in zip(tokens, [None, *tokens], [*tokens[1:], None], strict=False):
        kind = token.token_type
        if kind == TokenType.L_PAREN:
            clauses.append(None)
        elif kind == TokenType.R_PAREN and len(clauses) > 1:
            clauses.pop()
        elif kind == TokenType.SELECT or kind in _AFTER_TABLES:
            clauses[-1] = kind
        is_from = kind == TokenType.FROM and clauses[-1] == TokenType.SELECT and not _is(before, TokenType.DISTINCT)
        if is_from:
            clauses[-1] = TokenType.FROM
        names = is_from or kind == TokenType.JOIN or (kind == TokenType.COMMA and clauses[-1] == TokenType.FROM)
        if names and after is not None and _is(after, *_STRINGS):
            found.append(after)
    return found


def _is(token: Token | None, *kinds: TokenType) -> bool:
    return token is not None and token.token_type in kinds
