"""SQL text to a syntax tree: one query of Spark's dialect, or a clear refusal.

Functions stay as the user wrote them (`Anonymous` nodes): the function table of `plan.functions` gives them meaning, not
the parser.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp, parse
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError as SyntaxTrouble
from sqlglot.errors import TokenError

from nearly.errors import ParseError, Unsupported
from nearly.plan.depth import deep_recursion

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 150
"""Nesting beyond this overflows the parser's stack; nobody writes it by hand."""

FORBIDDEN_FUNCTIONS = {
    "reflect": "it calls arbitrary JVM methods",
    "try_reflect": "it calls arbitrary JVM methods",
    "java_method": "it calls arbitrary JVM methods",
    "identifier": "it names tables and functions by text that is not checked; write the name itself",
}

PATH_FORMATS = frozenset({"parquet", "csv", "json", "orc", "avro", "text", "delta", "iceberg", "binaryfile", "jdbc", "hive"})

_OWN_GRAMMAR = frozenset({
    "CAST", "TRY_CAST", "CEIL", "FLOOR", "EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM", "LISTAGG", "STRING_AGG",
    "BROADCAST", "BROADCASTJOIN", "MAPJOIN", "MERGE", "MERGEJOIN", "SHUFFLEMERGE", "SHUFFLE_HASH", "SHUFFLE_REPLICATE_NL",
})  # fmt: skip
"""Functions and hints whose arguments are not a plain list of expressions in Spark's grammar."""


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
        STRICT_CAST = True


def parse_query(text: str) -> exp.Expr:
    """The syntax tree of exactly one query."""
    if not isinstance(text, str):
        raise ParseError(f"a query is text, not {type(text).__name__}")
    if not text.strip():
        raise ParseError("the query is empty")
    if len(text) > MAX_CHARACTERS:
        raise ParseError(f"the query has {len(text):,} characters, at most {MAX_CHARACTERS:,} are accepted")
    tree = _only_statement(text)
    _refuse_what_is_not_a_query(tree)
    _drop_hints(tree)
    return tree


def to_text(tree: exp.Expr) -> str:
    """The text of a tree. Law: `parse_query(to_text(t)) == t` for a tree that `parse_query` gave."""
    with deep_recursion():
        return str(tree.sql(dialect=_Text))


def _only_statement(text: str) -> exp.Expr:
    if _nesting(text) > MAX_DEPTH:
        raise ParseError(f"the query nests more than {MAX_DEPTH} parentheses")
    try:
        with deep_recursion():
            statements = [statement for statement in parse(text, read=_Text) if statement is not None]
    except (SyntaxTrouble, TokenError) as trouble:
        raise ParseError(f"not a query that Spark SQL would accept: {_first_line(trouble)}") from None
    except RecursionError:
        raise ParseError("the query is nested too deeply") from None
    statements = [statement for statement in statements if not isinstance(statement, exp.Semicolon)]
    if not statements:
        raise ParseError("the query is empty")
    if len(statements) > 1:
        raise ParseError(f"{len(statements)} statements were given; give one query at a time")
    return statements[0]


def _drop_hints(tree: exp.Expr) -> None:
    """Hints advise Spark's planner and never change the rows; the tables they name are aliases of the query."""
    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()


def _nesting(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest


def _first_line(trouble: Exception) -> str:
    return str(trouble).replace("\x1b[4m", "").replace("\x1b[0m", "").strip().splitlines()[0]


def _refuse_what_is_not_a_query(tree: exp.Expr) -> None:
    if not isinstance(tree, exp.Query | exp.Values):
        kind = tree.name.upper() if isinstance(tree, exp.Command) else tree.key.upper()
        raise ParseError(f"only a query (SELECT, WITH, VALUES) is accepted, not {kind}; run it in Spark itself")
    for node in tree.walk():
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
            raise ParseError(f"parameter {node.sql()} has no value; write the value into the query")
