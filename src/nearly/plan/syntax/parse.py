"""SQL text to a syntax tree: one query of Spark's dialect, or a clear refusal.

Functions stay as the user wrote them (`Anonymous` nodes): the function table of `plan.functions` gives them meaning, not
the parser. Whoever needs the query as text gets the words that were parsed here (`plan.spelling`), not the user's characters.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError as SyntaxTrouble
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from nearly.errors import ParseError, Unsupported
from nearly.plan.depth import deep_recursion
from nearly.plan.syntax.silence import silently
from nearly.plan.syntax.spelling import spelled
from nearly.plan.syntax.words import FORBIDDEN_FUNCTIONS, refuse_words, unread

MAX_CHARACTERS = 1_000_000
MOST_JOINS = 100
"""Planners take minutes to order more of them."""

CHANGES = ("INSERT", "DELETE", "UPDATE", "MERGE")
"""Statements that change a table (`plan.syntax.statements`)."""

_BEGINNINGS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", *CHANGES)
"""Words with which a query or a statement begins."""

PATH_FORMATS = frozenset({"parquet", "csv", "json", "orc", "avro", "text", "delta", "iceberg", "binaryfile", "jdbc", "hive", "xml"})

_OWN_GRAMMAR = frozenset({
    "CAST", "TRY_CAST", "CEIL", "FLOOR", "EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM", "LISTAGG", "STRING_AGG",
})  # fmt: skip
"""Functions whose arguments are not a plain list of expressions in Spark's grammar."""


def _as_number(parser: Any) -> exp.Expr:
    operand = parser._parse_unary()
    if operand is None:
        parser.raise_error("Expecting a value after +")
    return exp.Anonymous(this="positive", expressions=[operand])


class _Text(Spark):
    """Spark's grammar without rewriting of functions and casts."""

    STRICT_CAST = True

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
        """A doubled quote is one quote, as in Spark 4; sqlglot still reads two adjacent strings."""

    class Parser(Spark.Parser):  # type: ignore[valid-type, misc]
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser for name, parser in Spark.Parser.FUNCTION_PARSERS.items() if name in _OWN_GRAMMAR
        }
        UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
            **Spark.Parser.UNARY_PARSERS,
            TokenType.PLUS: _as_number,
        }
        """A plus sign makes a number of a text; sqlglot leaves it out."""
        STRICT_CAST = True


@dataclass(frozen=True, slots=True)
class Checked:
    """A query that may be run: its tree, and the words it was read from as text. Law: the text gives the same again.

    Where the tree and the words differ in what they say, `doubt` tells it, and only Spark knows what the words mean.
    """

    tree: exp.Expr
    text: str
    doubt: str | None = None


def parse_query(text: str) -> exp.Expr:
    """The syntax tree of exactly one query."""
    return check_query(text).tree


def check_query(text: str) -> Checked:
    """Exactly one query, in the only spelling in which others may be given it."""
    tree, tokens = read_text(text)
    _refuse_what_is_not_a_query(tree, tokens)
    return Checked(tree, spelled(text, tokens), unread(tokens, tokens_of(to_text(tree))))


def read_text(text: str) -> tuple[exp.Expr, list[Token]]:
    """The tree of exactly one statement of whichever kind, and its words, of which none may never stand in a text."""
    if not isinstance(text, str):
        raise ParseError(f"a query is text, not {type(text).__name__}")
    if not text.strip():
        raise ParseError("the query is empty")
    if len(text) > MAX_CHARACTERS:
        raise ParseError(f"the query has {len(text):,} characters, at most {MAX_CHARACTERS:,} are accepted")
    tokens = _words(text)
    refuse_words(tokens)
    return _only_statement(text, tokens), tokens


def tokens_of(text: str) -> list[Token]:
    """The words of a text; comments are not among them."""
    try:
        return list(_Text().tokenize(text))
    except TokenError:
        raise ParseError("not a query that Spark SQL would accept: a quote or a comment is open at its end") from None


def to_text(tree: exp.Expr) -> str:
    """The text of a tree. Law: `parse_query(to_text(t)) == t` for a tree that `parse_query` gave."""
    with deep_recursion():
        return str(tree.sql(dialect=_Text, comments=False))


def _words(text: str) -> list[Token]:
    """The words of a query without hints, which advise Spark's planner and never change the rows, and without a last semicolon."""
    tokens = [token for token in tokens_of(text) if token.token_type != TokenType.HINT]
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise ParseError("the query is empty")
    return tokens


def _only_statement(text: str, tokens: list[Token]) -> exp.Expr:
    try:
        with deep_recursion(), silently():
            statements = [each for each in _Text().parser().parse(tokens, text) if each is not None]
    except SyntaxTrouble as trouble:
        raise ParseError(f"not a query that Spark SQL would accept: {_misspelt(tokens) or _explained(trouble)}") from None
    except RecursionError:
        raise ParseError("the query is nested too deeply") from None
    statements = [statement for statement in statements if not isinstance(statement, exp.Semicolon)]
    if not statements:
        raise ParseError("the query is empty")
    if len(statements) > 1:
        raise ParseError(f"{len(statements)} statements were given; give one query at a time")
    return statements[0]


def _misspelt(tokens: Sequence[Token]) -> str | None:
    """The first word where it begins no statement but resembles one that does."""
    word = tokens[0].text.upper()
    close = difflib.get_close_matches(word, _BEGINNINGS, n=1, cutoff=0.7)
    return f"it begins with {tokens[0].text!r}; did you mean {close[0]}?" if close and word not in _BEGINNINGS else None


def _explained(trouble: SyntaxTrouble) -> str:
    """The parser's finding in plain words, and where it was made."""
    if not trouble.errors:
        return "its words make no sentence"
    found = trouble.errors[0]
    said = str(found.get("description") or "")
    what = "something is missing" if said.startswith("Required keyword") else "this was not expected here"
    if said.startswith("Expecting "):
        what = f"expected {said.removeprefix('Expecting ')}"
    near = str(found.get("highlight") or "")[:40]
    return f"{what} near {near!r} at line {found.get('line')}, column {found.get('col')}"


def _refuse_what_is_not_a_query(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    if not isinstance(tree, exp.Query | exp.Values):
        kind = tokens[0].text.upper()
        ours = kind in CHANGES or tree.find(exp.MaterializedProperty) is not None
        advice = "use db.execute" if ours else "run it in Spark itself"
        raise ParseError(f"only a query (SELECT, WITH, VALUES) is accepted, not {kind}; {advice}")
    joins = 0
    for node in tree.walk():
        _refuse_emptiness(node)
        joins += isinstance(node, exp.Join)
        if joins > MOST_JOINS:
            raise Unsupported(f"more than {MOST_JOINS} joins in one query; join in steps and register what comes out of each")
        if isinstance(node, exp.Anonymous) and node.name.lower() in FORBIDDEN_FUNCTIONS:
            raise Unsupported(f"function {node.name!r} is refused: {FORBIDDEN_FUNCTIONS[node.name.lower()]}")
        if isinstance(node, exp.QueryTransform):
            raise Unsupported("TRANSFORM ... USING is refused: it runs a program on every executor")
        if isinstance(node, exp.Table) and node.db.lower() in PATH_FORMATS:
            raise Unsupported(
                f"a path as a table ({node.db}.`{node.name}`) is refused; use db.register(name, path) and query the name"
            )
        if isinstance(node, exp.DDL | exp.DML | exp.Command | exp.Into):
            raise ParseError(f"only a query is accepted, this one contains {node.key.upper()}")
        if isinstance(node, exp.Placeholder | exp.Parameter):
            raise ParseError(f"parameter {node.sql()} has no value; write the value into the query, or give it in args")


def _refuse_emptiness(node: exp.Expr) -> None:
    """The parser takes some lists without elements, and a star under another name, for which SQL has no meaning."""
    match node:
        case exp.Select(expressions=[]):
            raise ParseError("SELECT has nothing to select; name a column, or write SELECT *")
        case exp.Group() if node.expressions and node.args.get("all") is not None:
            raise ParseError("GROUP BY ALL takes no keys besides")
        case exp.In() if not any(node.args.get(name) for name in ("expressions", "query", "unnest", "field")):
            raise ParseError("IN has no values; write IN (value, ...) or IN (query)")
        case exp.Distinct(expressions=[]) if isinstance(node.parent, exp.Anonymous):
            raise ParseError(f"{node.parent.name}(DISTINCT) has no argument")
        case exp.Alias() if node.this.is_star and not isinstance(node.this, exp.Subquery):
            raise ParseError(f"a star cannot have the name {node.alias!r}")


def refuse_clauses_besides(node: exp.Expr, *known: str) -> None:
    """Refuse a node that carries a clause nobody looks at: ignoring it would answer another question."""
    for name, value in node.args.items():
        if value and name not in known:
            raise Unsupported(f"{node.key} with {name.strip('_').replace('_', ' ')}")
