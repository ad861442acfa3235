"""Queries out of queries: the syntax trees that operations on data frames stand for.

Every operation puts the query so far into FROM, so that a chain of operations is one query of nested selects: it is bound,
rewritten and run like any query text. Names are always quoted; expressions are SQL text of the user, parsed one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from nearly.errors import ParseError, SchemaError
from nearly.plan.syntax.parse import parse_query

JOINS = {"inner": {"kind": "INNER"}, "left": {"side": "LEFT"}, "semi": {"side": "LEFT", "kind": "SEMI"},
         "anti": {"side": "LEFT", "kind": "ANTI"}}  # fmt: skip
LEFT, RIGHT = "left_side", "right_side"


def item(text: str) -> exp.Expr:
    """One select item from text: an expression, perhaps with an alias; its names are quoted, as Spark wants some of them to be.

    >>> item("price * 2 as twice").alias
    'twice'
    """
    if not isinstance(text, str) or not text.strip():
        raise ParseError(f"an expression is SQL text, not {text!r}")
    tree = parse_query(f"SELECT {text}\n")
    others = [name for name, value in tree.args.items() if value and name not in ("expressions", "kind")]
    if not isinstance(tree, exp.Select) or others or len(tree.expressions) != 1:
        raise ParseError(f"{text!r} is not one SQL expression")
    found: exp.Expr = tree.expressions[0]
    found.pop()
    for identifier in found.find_all(exp.Identifier):
        identifier.set("quoted", True)
    return found


def column(name: str, side: str | None = None) -> exp.Column:
    return exp.column(name, table=side, quoted=True)


def named(expression: exp.Expr, name: str) -> exp.Expr:
    """The expression under a name; an alias it had is gone."""
    return exp.alias_(expression.unalias(), name, quoted=True)


def table(name: str, columns: Sequence[str]) -> exp.Select:
    """All rows of a stored table."""
    source = exp.Table(this=exp.to_identifier(name, quoted=True))
    return exp.Select(expressions=[column(each) for each in columns], from_=exp.From(this=source))


def project(query: exp.Query, items: Sequence[exp.Expr]) -> exp.Select:
    """Select items over the rows of a query."""
    return exp.Select(expressions=list(items), from_=exp.From(this=_derived(query, "frame")))


def filtered(query: exp.Query, columns: Sequence[str], predicate: exp.Expr) -> exp.Select:
    """The rows of a query for which a predicate holds."""
    selected = project(query, [column(each) for each in columns])
    selected.set("where", exp.Where(this=predicate))
    return selected


def grouped(query: exp.Query, keys: Sequence[exp.Expr], aggregates: Sequence[exp.Expr]) -> exp.Select:
    """Aggregates by keys; without aggregates the distinct keys."""
    selected = project(query, [*keys, *aggregates])
    if keys:
        selected.set("group", exp.Group(expressions=[exp.Paren(this=key.unalias().copy()) for key in keys]))
    return selected


def joined(
    left: exp.Query, right: exp.Query, pairs: Mapping[str, str], how: str, items: Sequence[exp.Expr], null_safe: bool = False
) -> exp.Select:
    """Rows of two queries that agree in pairs of columns; `null_safe` lets null agree with null."""
    equal = exp.NullSafeEQ if null_safe else exp.EQ
    tests = [equal(this=column(a, LEFT), expression=column(b, RIGHT)) for a, b in pairs.items()]
    selected = exp.Select(expressions=list(items), from_=exp.From(this=_derived(left, LEFT)))
    words = JOINS[how] if tests else {"kind": "CROSS"}
    selected.append("joins", exp.Join(this=_derived(right, RIGHT), on=exp.and_(*tests) if tests else None, **words))
    return selected


def united(left: exp.Query, right: exp.Query) -> exp.Union:
    """The rows of both, duplicates and all."""
    return exp.Union(this=left.copy(), expression=right.copy(), distinct=False)


def ordered(query: exp.Query, columns: Sequence[str], keys: Sequence[tuple[exp.Expr, bool]]) -> exp.Select:
    """The rows in an order of expressions, each descending or not."""
    selected = project(query, [column(each) for each in columns])
    selected.set("order", exp.Order(expressions=[exp.Ordered(this=key, desc=down, nulls_first=not down) for key, down in keys]))
    return selected


def limited(query: exp.Query, columns: Sequence[str], count: int) -> exp.Query:
    """The first rows; of a query that has just been put in order, the first ones in that order."""
    is_sorted = isinstance(query, exp.Select) and query.args.get("order") is not None and query.args.get("limit") is None
    found = query.copy() if is_sorted else project(query, [column(each) for each in columns])
    found.set("limit", exp.Limit(expression=exp.Literal.number(count)))
    return found


def refuse_repeated(names: Sequence[str], advice: str) -> None:
    """Columns of a frame have different names, whatever the case."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise SchemaError(f"column {name!r} would be there twice; {advice}")
        seen.add(name.lower())


def _derived(query: exp.Query, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query.copy(), alias=exp.TableAlias(this=exp.to_identifier(alias)))
