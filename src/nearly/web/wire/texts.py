"""Texts of Postgres clients: taken apart into statements, and read as queries of nearly.

What a query means is Spark's, as everywhere in nearly; how it is spelled may be Postgres': `"names"` in double quotes, `x::type`,
parameters `$1`, tables as `public.rides`. Expressions without a name get the one that Postgres gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from nearly.errors import ParseError, Unsupported
from nearly.plan.syntax.parse import parse_query, to_text
from nearly.plan.syntax.silence import silently
from nearly.web.wire import moments

SCHEMA, DATABASE = "public", "nearly"
_MARKS = frozenset({TokenType.DCOLON, TokenType.PARAMETER, TokenType.BYTE_STRING, TokenType.TILDE, TokenType.HEREDOC_STRING})
_LABEL_ENDS = frozenset({TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN})
_WIDE = exp.DataType.build("decimal(38, 18)", dialect="spark")


Give = Callable[[int, bool], exp.Expr]
"""What stands in the place of a parameter, by its number, and whether it is a number of rows."""


NAME = r"\"(?:[^\"]|\"\")+\"|[^\W\d][\w$]*"
"""A name as Postgres spells it, as a pattern."""


class WireDialect(Postgres):
    """Postgres' spelling with Spark's order of nulls."""

    NULL_ORDERING = "nulls_are_small"


class WireWords(Postgres):
    """Postgres' words, those of statements that sqlglot would pass over, too."""

    class Tokenizer(Postgres.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()


def tokens_of(text: str) -> list[Token]:
    try:
        return list(sqlglot.tokenize(text, read=WireWords))
    except SqlglotError:
        raise ParseError("the text cannot be read: a quote or a comment is open at its end") from None


def split_statements(text: str) -> list[str]:
    """The statements of a text, as they are written; a semicolon in a literal or a comment parts nothing, and a comment is none.

    >>> split_statements("select ';' as a; select 2 -- ;")
    ["select ';' as a", 'select 2 -- ;']
    """
    parts, start, some = [], 0, False
    for token in tokens_of(text):
        if token.token_type == TokenType.SEMICOLON:
            if some:
                parts.append(text[start : token.start].strip())
            start, some = token.end + 1, False
        else:
            some = True
    return [*parts, text[start:].strip()] if some else parts


def without_comment(text: str) -> str:
    """A statement from its first word on.

    >>> without_comment("/* a tool */ begin")
    'begin'
    """
    words = tokens_of(text)
    return text[words[0].start :] if words else ""


def folded(name: str) -> str:
    """A name as Postgres keeps it: in small letters, unless it is quoted.

    >>> folded("Rides"), folded('"Rides"')
    ('rides', 'Rides')
    """
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def read(text: str) -> exp.Expr | None:
    """The tree of a text in Postgres' spelling; None where it is none."""
    tree = _parsed(text)
    labelled = text if tree is not None else _with_quoted_labels(text)
    return tree if labelled == text else _parsed(labelled)


def _parsed(text: str) -> exp.Expr | None:
    try:
        with silently():
            found = sqlglot.parse(text, read=WireDialect, error_level=ErrorLevel.RAISE)
    except (SqlglotError, RecursionError):
        return None
    return found[0] if len(found) == 1 and found[0] is not None and not isinstance(found[0], exp.Command) else None


def _with_quoted_labels(text: str) -> str:
    """Any word may name a column after AS and after a point in Postgres, `select` too; in quotes it is read so.

    >>> _with_quoted_labels("select 1 as select, t.b from t")
    'select 1 as "select", t."b" from t'
    """
    try:
        words = tokens_of(text)
    except ParseError:
        return text
    for before, word, after in reversed(list(zip(words, words[1:], [*words[2:], None], strict=False))):
        label = before.token_type == TokenType.ALIAS and (after is None or after.token_type in _LABEL_ENDS)
        part = before.token_type == TokenType.DOT and (after is None or after.token_type != TokenType.L_PAREN)
        if (label or part) and word.token_type != TokenType.IDENTIFIER and word.text.isidentifier():
            text = f'{text[: word.start]}"{word.text.lower()}"{text[word.end + 1 :]}'
    return text


def is_foreign(text: str) -> bool:
    """Whether a text has something that only Postgres spells so."""
    words = tokens_of(text)
    return moments.is_postgres(words) or any(
        each.token_type in _MARKS or (each.token_type == TokenType.IDENTIFIER and text[each.start] == '"') for each in words
    )


def parameters_of(tree: exp.Expr) -> dict[int, exp.Parameter]:
    """The parameters of a query by number; one that stands in several places, where it stands first."""
    found: dict[int, exp.Parameter] = {}
    for each in tree.find_all(exp.Parameter, bfs=False):
        if isinstance(each.this, exp.Literal) and not each.this.is_string:
            found.setdefault(int(each.this.name), each)
    return found


def query_text(text: str, give: Give | None = None) -> str:
    """A query as nearly reads it. `give` tells what stands in the place of each parameter."""
    if not is_foreign(text):
        return str(to_text(_adjusted(parse_query(text))))
    tree = read(text)
    if tree is None:
        return str(to_text(_adjusted(parse_query(text))))  # its own words say what is wrong
    return rendered(_adjusted(with_values(tree, give)))


def change_text(text: str, give: Give | None = None) -> str:
    """A statement that changes a table, as nearly reads it."""
    tree = read(text) if is_foreign(text) else None
    return text if tree is None else rendered(_adjusted(with_values(tree, give)))


def with_values(tree: exp.Expr, give: Give | None) -> exp.Expr:
    """The tree with something in the place of each parameter; in LIMIT and OFFSET that is a plain number, without its cast."""
    for each in list(tree.find_all(exp.Parameter)):
        if give is None:
            raise ParseError(f"parameter ${each.name} has no value")
        place: exp.Expr = each
        while isinstance(place.parent, exp.Cast | exp.Paren) and place.find_ancestor(exp.Limit, exp.Offset, exp.Select) is not None:
            if not isinstance(place.find_ancestor(exp.Limit, exp.Offset, exp.Select), exp.Limit | exp.Offset):
                break
            place = place.parent
        place.replace(give(int(each.name), isinstance(place.parent, exp.Limit | exp.Offset)))
    return tree


def rendered(tree: exp.Expr) -> str:
    """A tree in Spark's spelling; what that lacks is an error, not left out."""
    tree = moments.respelled(tree)
    for each in tree.find_all(exp.Cast):
        kind = each.to
        if isinstance(kind, exp.DataType) and kind.this == exp.DType.DECIMAL and not kind.expressions:
            each.set("to", _WIDE.copy())
    try:
        return str(tree.sql(dialect="spark", unsupported_level=ErrorLevel.RAISE))
    except SqlglotError as trouble:
        raise Unsupported(f"this cannot be said in Spark's SQL: {str(trouble).splitlines()[0]}") from None


def _adjusted(tree: exp.Expr) -> exp.Expr:
    """Without the schema before names, and with a name for every column."""
    for table in tree.find_all(exp.Table):
        if table.db.lower() == SCHEMA and table.catalog.lower() in ("", DATABASE):
            table.set("db", None)
            table.set("catalog", None)
    for column in tree.find_all(exp.Column):
        if column.args.get("db") is not None and column.db.lower() == SCHEMA:
            column.set("db", None)
            column.set("catalog", None)
    first = tree
    while isinstance(first, exp.SetOperation):
        first = first.this
    while isinstance(first, exp.Subquery):
        first = first.this
    if isinstance(first, exp.Select):
        first.set("expressions", [_named(each) for each in first.expressions])
    return tree


def _named(item: exp.Expr) -> exp.Expr:
    if isinstance(item, exp.Alias | exp.Column | exp.Star | exp.Aliases) or item.is_star:
        return item
    return exp.alias_(item, name_of(item), quoted=True)


def name_of(item: exp.Expr) -> str:
    """What Postgres calls a column that has no name.

    >>> name_of(sqlglot.parse_one("count(*)")), name_of(sqlglot.parse_one("a + 1")), name_of(sqlglot.parse_one("cast(a as int)"))
    ('count', '?column?', 'a')
    """
    match item:
        case exp.Cast():
            inner = name_of(item.this)
            return inner if inner != "?column?" else str(item.to.sql()).lower()
        case exp.Column():
            return str(item.name)
        case exp.Case() | exp.If():
            return "case"
        case exp.Paren() | exp.Window():
            return name_of(item.this)
        case exp.Subquery():
            chosen = item.this.selects if isinstance(item.this, exp.Select) else []
            return str(chosen[0].alias_or_name or "?column?") if chosen else "?column?"
        case exp.Anonymous():
            return str(item.name).lower()
        case exp.Binary() | exp.Unary() | exp.Literal() | exp.Null():
            return "?column?"
        case exp.CurrentVersion():
            return "version"
        case exp.Func():
            return str(item.sql_name()).lower()
    return "?column?"


def tables_of(tree: exp.Expr) -> Sequence[exp.Table]:
    """The tables that a text names, without those that it defines itself."""
    own = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    return [
        each
        for each in tree.find_all(exp.Table)
        if isinstance(each.this, exp.Identifier) and (each.db or each.name.lower() not in own)
    ]
