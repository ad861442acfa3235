"""What the engine computes of the certain rows: the query itself, and sum and count behind every average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa
from sqlglot import exp

from nearly.answer import Answer
from nearly.errors import Unsupported
from nearly.missing.range_query import AnswerColumn

PIECE = "nearly_piece_"


@dataclass(frozen=True, slots=True)
class Bounds:
    """A number of the certain rows: between `low` and `high`, None where that is not known."""

    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class AverageParts:
    """Where the sum and the count behind an average are, among the columns of the extended query."""

    sum: int
    count: int


def extended(tree: exp.Expr, items: Sequence[AnswerColumn]) -> tuple[str, dict[int, AverageParts]]:
    """The query with sum and count beside each average, and where they are."""
    if not isinstance(tree, exp.Select):
        raise Unsupported("a range of a set operation or of VALUES; ask a SELECT with aggregates")
    wider = tree.copy()
    pieces: dict[int, AverageParts] = {}
    for place, item in enumerate(items):
        if item.call is not None and item.call.function == "avg":
            node = wider.expressions[place].unalias()
            pieces[place] = AverageParts(len(wider.expressions), len(wider.expressions) + 1)
            for function in ("sum", "count"):
                wider.expressions.append(exp.alias_(_renamed(node, function), f"{PIECE}{len(wider.expressions)}"))
    return str(wider.sql(dialect="spark")), pieces


def _renamed(node: exp.Expr, function: str) -> exp.Expr:
    """The same aggregate call under another name."""
    copy = node.copy()
    inner = copy.this if isinstance(copy, exp.Filter) else copy
    arguments = [argument.copy() for argument in (inner.expressions or [inner.this])]
    call = exp.Anonymous(this=function, expressions=arguments)
    if isinstance(copy, exp.Filter):
        return exp.Filter(this=call, expression=copy.expression.copy())
    return call


def bounds_at(answer: Answer, column: int, row: int, *, hard: bool) -> Bounds:
    """The bounds of a cell of the answer; both are the value when the answer is exact."""
    tables = (answer.hard_low, answer.hard_high) if hard else (answer.low, answer.high)
    low, high = (table.column(column)[row].as_py() for table in tables)
    return Bounds(low, high)


def number(value: Any) -> Fraction:
    """A number of the engine, exactly; null, the sum of nothing, is 0."""
    return Fraction(0) if value is None else Fraction(value)


def without_pieces(table: pa.Table, count: int) -> pa.Table:
    return table.select(range(count))
