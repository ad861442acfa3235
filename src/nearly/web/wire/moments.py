"""Moments as Postgres spells them: its patterns in `to_char`, `to_date` and `to_timestamp`, and seconds since 1970.

Spark has functions of these names with other patterns, in which those of Postgres mean nothing: `YYYY` is refused
there.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

_PATTERN = re.compile(r"YYYY|HH24|HH12|MI|DD|Mon|Month")
_FUNCTIONS = ("to_char", "to_date", "to_timestamp")


def is_postgres(words: Sequence[Token]) -> bool:
    """Whether a text calls one of these functions with a pattern of Postgres, or asks for the epoch."""
    names = [each.text.lower() for each in words if each.token_type != TokenType.STRING]
    if "epoch" in names or any(each.token_type == TokenType.STRING and each.text.lower() == "epoch" for each in words):
        return "extract" in names or "date_part" in names
    patterns = any(each.token_type == TokenType.STRING and _PATTERN.search(each.text) for each in words)
    return patterns and any(each in names for each in _FUNCTIONS)


def respelled(tree: exp.Expr) -> exp.Expr:
    """The tree with moments that are told by constants as such, and seconds since 1970 as a number that Spark knows."""
    for node in list(tree.find_all(exp.StrToTime, exp.StrToDate, exp.Extract)):
        new = _seconds(node) if isinstance(node, exp.Extract) else _constant(node)
        if new is not None:
            node.replace(new)
    return tree


def _seconds(node: exp.Extract) -> exp.Expr | None:
    if node.name.upper() != "EPOCH":
        return None
    return exp.cast(exp.cast(node.expression.copy(), "timestamp", dialect="spark"), "double", dialect="spark")


def _constant(node: exp.Expr) -> exp.Expr | None:
    given, pattern = node.this, node.args.get("format")
    if not (isinstance(given, exp.Literal) and isinstance(pattern, exp.Literal)):
        return None
    try:
        found = dt.datetime.strptime(given.name, pattern.name).replace(tzinfo=dt.UTC)
    except ValueError:
        return None
    day = isinstance(node, exp.StrToDate)
    text = found.strftime("%Y-%m-%d" if day else "%Y-%m-%d %H:%M:%S.%f")
    return exp.cast(exp.Literal.string(text), "date" if day else "timestamp", dialect="spark")
