"""Which queries have ranges: aggregates over one table, or over an inner join, with WHERE and GROUP BY.

The engine computes the query over the certain rows, with sum and count beside every average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.aggregate_block import aggregate_block
from nearly.plan.expressions import AggregateCall, Column, Expression, columns_of
from nearly.plan.nodes import BoundQuery, Scan

Key = tuple[Any, ...]
"""The values of the grouping columns."""

FUNCTIONS = ("sum", "count", "avg", "min", "max")
PIECE = "nearly_piece_"


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A column of the answer: a grouping key (its expression over the tables), or an aggregate."""

    key: Expression | None
    call: AggregateCall | None


@dataclass(frozen=True, slots=True)
class RangeQuery:
    """`SELECT keys, aggregates FROM scans WHERE predicates GROUP BY keys`, in terms of the scans' columns."""

    scans: tuple[Scan, ...]
    predicates: tuple[Expression, ...]
    items: tuple[AnswerColumn, ...]
    keys: tuple[Expression, ...]

    @property
    def aggregates(self) -> list[int]:
        """The places of the aggregates among the columns of the answer."""
        return [place for place, item in enumerate(self.items) if item.call is not None]


def range_query(query: BoundQuery) -> RangeQuery:
    """The parts of a bound query, or `Unsupported` with the reason."""
    try:
        block = aggregate_block(query.plan)
    except Unsupported as reason:
        raise Unsupported(f"no range: {reason}") from None
    made = {each.name: _item(each.expression) for each in block.aggregates}
    made |= {key.name: AnswerColumn(key.expression, None) for key in block.keys}
    items = []
    for output in block.outputs:
        if not isinstance(output.expression, Column) or output.expression.name not in made:
            raise Unsupported("an expression over aggregates has no range of its own; select the aggregates themselves")
        items.append(made[output.expression.name])
    return RangeQuery(block.scans, block.predicates, tuple(items), tuple(key.expression for key in block.keys))


def _item(call: Expression) -> AnswerColumn:
    if not isinstance(call, AggregateCall):
        raise Unsupported("a range of something that is no aggregate")
    if call.function not in FUNCTIONS:
        raise Unsupported(f"a range of {call.function}(); SUM, COUNT, AVG, MIN and MAX have one")
    if call.distinct and call.function not in ("min", "max"):
        raise Unsupported(f"a range of {call.function}(DISTINCT ...)")
    if len(call.arguments) > 1:
        raise Unsupported(f"a range of {call.function}() of several columns")
    return AnswerColumn(None, call)


def belongs_to(expression: Expression, scan: Scan) -> bool:
    """Whether the expression reads columns of this scan only."""
    return columns_of(expression) <= scan.names


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
