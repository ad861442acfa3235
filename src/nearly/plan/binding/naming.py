"""Names that Spark gives to expressions without an alias, for the forms that are easy to name; the rest is Spark's to say."""

from __future__ import annotations

from sqlglot import exp

_OPERATORS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_FUNCTIONS = frozenset({"sum", "min", "max", "avg", "count"})


def pretty_name(node: exp.Expr) -> str | None:
    """Spark's name for the column, or None when this module does not know it.

    >>> from nearly.plan.syntax.parse import parse_query
    >>> [pretty_name(item) for item in parse_query("select a, t.b, sum(a + 1), count(*), upper(a) from t").expressions]
    ['a', 'b', 'sum((a + 1))', 'count(1)', None]
    """
    match node:
        case exp.Column():
            return node.name
        case exp.Paren():
            return pretty_name(node.this)
        case exp.Literal() if node.is_int:
            return str(node.name)
        case exp.Anonymous():
            return _function(node)
    if type(node) in _OPERATORS:
        left, right = pretty_name(node.this), pretty_name(node.expression)
        return None if left is None or right is None else f"({left} {_OPERATORS[type(node)]} {right})"
    return None


def _function(node: exp.Anonymous) -> str | None:
    name = str(node.this).lower()
    if name not in _FUNCTIONS or len(node.expressions) != 1:
        return None
    argument = node.expressions[0]
    inner = "1" if isinstance(argument, exp.Star) else pretty_name(argument)
    return None if inner is None else f"{name}({inner})"
