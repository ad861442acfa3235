"""Queries that a synopsis can answer: one table, ranges and equalities on its columns, aggregates of its measure, its groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, localcontext
from decimal import Decimal as Number
from functools import reduce
from typing import Any

import pyarrow as pa

from nearly.algebra.boxes import EVERYWHERE, intersection
from nearly.answer import Answer
from nearly.engine.answerers import Offer, Question
from nearly.engine.storage.layouts import Table
from nearly.errors import NearlyError, UnknownName, Unsupported
from nearly.plan import types
from nearly.plan.aggregate_block import AggregateBlock, aggregate_block
from nearly.plan.expressions import AggregateCall, Cast, Column, Expression, Literal, columns_of
from nearly.plan.nodes import BoundQuery, Output, Sort
from nearly.plan.schema import TableSchema
from nearly.plan.types import DataType, to_arrow
from nearly.plan.values.domains import keeps_values
from nearly.plan.values.regions import Regions, RowSpace
from nearly.plan.values.rounding import DOWN, NEAREST, UP, typed
from nearly.synopsis.build.definition import TablePlace
from nearly.synopsis.catalogue import Synopses
from nearly.synopsis.query.answers import BOUNDS, Moment, Presence, answer_of
from nearly.synopsis.query.estimates import Estimate
from nearly.synopsis.query.totals import canonical
from nearly.synopsis.structure.domain import NOWHERE, ONE_RANGE
from nearly.synopsis.structure.tree import Box, Condition
from nearly.synopsis.synopsis import Synopsis

ROUNDING = 1e-9
"""A bound so close to a whole number, relatively, is that number but for the rounding of sums."""
MOST_DIGITS = 60


INSTANT_SECONDS = 0.001
"""About what a synopsis takes."""
MOST_WAITED_FOR = 100_000
"""Changes of so many rows are taken before a query is answered; more of them would keep it waiting."""


@dataclass(frozen=True, slots=True)
class SynopsisAnswerer:
    """Answers from the synopses of a session."""

    synopses: Synopses

    @property
    def is_exact(self) -> bool:
        return False

    def knows(self, name: str) -> bool:
        return name.lower() in self.synopses.names

    def offer(self, question: Question) -> Offer:
        """The best answer that a synopsis of the query's table has."""
        prepared, using = question.prepared, question.using
        if prepared.query is None or len(prepared.snapshot) != 1:
            return _none(using, "the query is not over one table, or is left to Spark as it is")
        query, table = prepared.query, prepared.snapshot[0]
        reasons: list[str] = []
        best: Answer | None = None
        for name in [using] if using is not None else self.synopses.names:
            try:
                answer = _asked(self.synopses.get(name), query, table, question.confidence, using is not None)
            except NearlyError as trouble:
                if using is not None:
                    missing = isinstance(trouble, UnknownName) and name.lower() not in self.synopses.names
                    raise trouble if missing else _refusal(name, trouble) from trouble
                reasons.append(f"synopsis {name}: no, {trouble}")
                continue
            if answer is not None:
                reasons.append(f"synopsis {name}: yes, relative error {answer.error:.2g} at {question.confidence:.0%} confidence")
                best = answer if best is None or answer.error < best.error else best
        return Offer(tuple(reasons)) if best is None else Offer(tuple(reasons), lambda: best, best.error, INSTANT_SECONDS)


def _asked(synopsis: Synopsis, query: BoundQuery, table: Table, confidence: float, forced: bool) -> Answer | None:
    """The answer of one synopsis; None when it is about another table and was not asked for by name."""
    if synopsis.definition.table != table.name:
        if forced:
            raise Unsupported(f"it is about table {synopsis.definition.table!r}, not {table.name!r}")
        return None
    if not forced and (lag := synopsis.subscription.lag()) > MOST_WAITED_FOR:
        synopsis.follow_later()
        behind = f"is {lag:,.0f} changed rows behind its table" if lag < math.inf else "has to count its table anew"
        raise Unsupported(f"it {behind}, and follows in the background")
    moment = synopsis.moment()
    if not forced and moment.place != TablePlace.of(table):
        raise Unsupported(f"it is at version {moment.place.version} of the table, and the query reads {table.version}")
    found = answer_query(moment, query, confidence)
    if not forced and not found.table.num_rows and not found.complete:
        raise Unsupported("it has seen no row of any group")
    return found


def _refusal(name: str, trouble: object) -> Unsupported:
    return Unsupported(f"synopsis {name!r} cannot answer this query: {trouble}")


def _none(using: str | None, reason: str) -> Offer:
    if using is not None:
        raise _refusal(using, reason)
    return Offer((f"synopses: no, {reason}",))


def answer_query(moment: Moment, query: BoundQuery, confidence: float) -> Answer:
    """The query's answer with the names and types that Spark gives it."""
    block = aggregate_block(query.plan)
    if len(block.scans) != 1:
        raise Unsupported("it knows one table, without joins")
    box = _box(moment, block)
    columns, presence = _columns(moment, block, box, confidence)
    outputs = [_output(each.expression, columns) for each in block.outputs]
    tables = _tables(outputs, query)
    if block.order is not None:
        tables = _ordered(tables, block.order, block.outputs)
    estimates = [each for output in outputs if not isinstance(output, list) for each in output.estimates]
    return answer_of(tables, estimates, presence, confidence, moment.source)


@dataclass(frozen=True, slots=True)
class _Estimates:
    """`exactly` has values that need more digits than an estimate has."""

    estimates: list[Estimate]
    type: DataType
    exactly: dict[int, Number]


_Values = list[Any] | _Estimates


def _sources(block: AggregateBlock) -> dict[str, str]:
    """The table's own names of the columns."""
    return {field.name: field.source for field in block.scans[0].fields}


def _box(moment: Moment, block: AggregateBlock) -> Box:
    """The box of coordinates in which all conditions hold."""
    schema, sources = moment.definition.schema, _sources(block)
    used = sorted({name for each in block.predicates for name in columns_of(each)})
    places = {name: schema.place(sources[name]) for name in used}
    domains = {name: schema.domains[place].ordered for name, place in places.items()}
    space = {name: domain.everything for name, domain in domains.items()}
    regions = Regions(RowSpace(TableSchema(moment.definition.name, ()), domains, space, None), {name: name for name in used})
    try:
        region = reduce(intersection, map(regions.true, block.predicates), EVERYWHERE)
    except Unsupported as trouble:
        raise Unsupported(ONE_RANGE) from trouble
    if not region:
        return (Condition(0, *NOWHERE),)
    if len(region) > 1 or region[0].planes:
        raise Unsupported(ONE_RANGE)
    sides = region[0].sides.items()
    return tuple(Condition(places[name], *schema.domains[places[name]].range_of(side)) for name, side in sides)


def _unwidened(expression: Expression) -> Expression:
    """The column below casts that keep all its values; any other expression as it is."""
    inner = expression
    while isinstance(inner, Cast) and keeps_values(inner):
        inner = inner.operand
    return inner if isinstance(inner, Column) else expression


def _columns(moment: Moment, block: AggregateBlock, box: Box, confidence: float) -> tuple[dict[str, _Values], Presence]:
    """The values of each column of the aggregation, one per group, and which groups these are."""
    sources = _sources(block)
    places = []
    for key in block.keys:
        if not isinstance(key.expression, Column):
            raise Unsupported("it groups by a column, not by an expression")
        places.append(moment.definition.schema.place(sources[key.expression.name]))
    groups = moment.groups(places, box)
    columns: dict[str, _Values] = {key.name: [each[at] for each in groups.keys] for at, key in enumerate(block.keys)}
    for output in block.aggregates:
        name, measure = _aggregate(moment, output.expression, sources)
        estimates = [moment.estimate(name, each, confidence, measure) for each in groups.boxes]
        type_ = output.expression.type
        quotients = _quotients(moment, measure, type_, groups.boxes, estimates) if name == "avg" else {}
        columns[output.name] = _Estimates(estimates, type_, quotients)
    return columns, groups.presence


def _quotients(moment: Moment, measure: int, type_: DataType, boxes: Sequence[Box], found: Sequence[Estimate]) -> dict[int, Number]:
    """Exact averages that are decimals, rounded as Spark rounds them: a double cannot tell what lies half way."""
    if not isinstance(type_, types.Decimal):
        return {}
    quotients, kept = {}, moment.definition.schema.measures[measure].unit
    unit = Number(1).scaleb(-type_.scale)
    for place, (box, average) in enumerate(zip(boxes, found, strict=True)):
        total, count = (moment.estimate(each, box, measure=measure) for each in ("sum", "count"))
        if average.exact and total.exact and count.exact and count.value:
            units = Number(round(total.value * kept))
            with localcontext(prec=MOST_DIGITS):
                quotient = units / Number(round(kept)) / Number(round(count.value))
                quotients[place] = quotient.quantize(unit, ROUND_HALF_UP)
    return quotients


def _aggregate(moment: Moment, call: Expression, sources: dict[str, str]) -> tuple[str, int]:
    """The synopsis's name for an aggregate, and of which measure it is."""
    if not isinstance(call, AggregateCall) or call.distinct or call.where is not None:
        raise Unsupported("it knows neither DISTINCT nor FILTER in aggregates")
    if call.function == "count" and not call.arguments:
        return "rows", 0
    argument = _unwidened(call.arguments[0]) if len(call.arguments) == 1 else None
    if call.function == "count" and isinstance(argument, Literal) and argument.value is not None:
        return "rows", 0
    measured = moment.definition.schema.measured
    if not isinstance(argument, Column) or sources[argument.name].lower() not in map(str.lower, measured):
        raise Unsupported(f"it aggregates {' and '.join(map(repr, measured))} only")
    return canonical(call.function), moment.definition.schema.measure(sources[argument.name])


def _output(expression: Expression, columns: dict[str, _Values]) -> _Values:
    if not isinstance(expression, Column):
        raise Unsupported("it gives aggregates as they are, not expressions of them")
    return columns[expression.name]


def _tables(outputs: Sequence[_Values], query: BoundQuery) -> dict[str, pa.Table]:
    fields = [pa.field(name, to_arrow(type_)) for name, type_ in zip(query.names, query.types, strict=True)]
    schema = pa.schema(fields)
    return {
        bound: pa.Table.from_arrays(
            [pa.array(_cells(each, bound), field.type) for each, field in zip(outputs, fields, strict=True)], schema=schema
        )
        for bound in BOUNDS
    }


def _cells(values: _Values, bound: str) -> list[Any]:
    if isinstance(values, list):
        return values
    return [
        values.exactly[place] if place in values.exactly else _cast(getattr(each, bound), values.type, bound)
        for place, each in enumerate(values.estimates)
    ]


def _cast(value: float, type_: DataType, bound: str) -> Any:
    """A number in Spark's type; low bounds are rounded down and high ones up."""
    if type_ in types.FRACTIONS:
        return value if math.isfinite(value) else None
    scaled = value * 10.0 ** (type_.scale if isinstance(type_, types.Decimal) else 0)
    is_near = math.isfinite(value) and abs(round(scaled) - scaled) <= ROUNDING * max(1.0, abs(scaled))
    return typed(value, type_, NEAREST if bound == "value" or is_near else DOWN if "low" in bound else UP)


def _ordered(tables: dict[str, pa.Table], order: Sort, outputs: tuple[Output, ...]) -> dict[str, pa.Table]:
    """All tables in the order of the values."""
    places = {output.name: place for place, output in enumerate(outputs)}
    keys = []
    for key in order.keys:
        if not isinstance(key.expression, Column) or key.expression.name not in places:
            raise Unsupported("it orders by columns of the result only")
        keys.append((places[key.expression.name], key))
    rows = list(range(tables["value"].num_rows))
    for place, key in reversed(keys):
        values = tables["value"].column(place).to_pylist()
        known = [row for row in rows if values[row] is not None]
        nulls = [row for row in rows if values[row] is None]
        known.sort(key=values.__getitem__, reverse=not key.ascending)
        rows = nulls + known if key.nulls_first else known + nulls
    return {bound: table.take(pa.array(rows, pa.int64())) for bound, table in tables.items()}
