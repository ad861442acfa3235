"""Partial results of units under weights: many estimates of the same aggregates at once, one for each set of weights.

The number of the set is one more key. Law: with weight 1 for every unit the results are those of the aggregate over all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nearly.plan.expressions import AggregateCall, Call, Column, Expression, columns_of
from nearly.plan.functions.casting import coerce
from nearly.plan.nodes import Filter, GroupBy, Input, Join, Limit, Output, Plan, Project, Sort, passed
from nearly.plan.types import BOOLEAN, DOUBLE, INT
from nearly.rewrite.sample.sampled_query import UNIT, CoreParts
from nearly.rewrite.weigh.relax import became_double, relaxed, relaxed_keys
from nearly.rewrite.weigh.weighted import WEIGHTS

PARTS = "sample_parts"
CELLS = "sample_cells"
CELL = Column(INT, "sample_cell")
"""The number of a group."""
REPLICATE = WEIGHTS.given[0]


def weigh_parts(parts: CoreParts, given: tuple[Column, ...]) -> Plan:
    """For each set of weights and each group, the linear aggregates as doubles, over the inputs `PARTS` and `weights`.

    `given` are the columns of the parts: the group's number, the unit, and partial results.
    """
    rows = Join(Input(PARTS, given), WEIGHTS, "inner", Call(BOOLEAN, "=", (UNIT, WEIGHTS.given[1])))
    weight = WEIGHTS.given[2]
    merges = []
    for merge in parts.steps.merges:
        assert isinstance(merge.expression, AggregateCall)  # noqa: S101  nodes check it
        (part,) = merge.expression.arguments
        value = Call(DOUBLE, "*", (weight, coerce(part, DOUBLE)))
        merges.append(Output(merge.name, AggregateCall(DOUBLE, "sum", (value,))))
    merged = GroupBy(rows, (Output(REPLICATE.name, REPLICATE), Output(CELL.name, CELL)), tuple(merges))
    doubles = frozenset(merge.name for merge in merges)
    identity = passed((REPLICATE, CELL))
    outputs = [each for each in parts.steps.results if each.name not in {key.name for key in parts.keys}]
    results = tuple(replace(each, expression=coerce(relaxed(each.expression, doubles), DOUBLE)) for each in outputs)
    found: Plan = Project(merged, (*identity, *results))
    if parts.moments is None:
        return found
    doubles = frozenset(each.name for each in results)
    keyed = {key.name for key in parts.keys}
    outer = [each for each in parts.moments.results if each.name not in keyed]
    spread = tuple(replace(each, expression=coerce(relaxed(each.expression, doubles), DOUBLE)) for each in outer)
    return Project(found, (*identity, *spread))


@dataclass(frozen=True, slots=True)
class Finished:
    """A plan over estimated cells, and of which aggregates of the core each of its columns is made."""

    plan: Plan
    made_of: dict[str, frozenset[str]]


def finished(finish: tuple[Plan, ...], core: GroupBy, cells: Plan, whole: bool) -> Finished:
    """What a query does with its aggregates, over estimates of them.

    Numbers that are estimated are doubles. Without `whole`, filters, order and limits are left out, so that a row is made of every
    cell. `cells` has the columns of the core, `CELL` and perhaps `REPLICATE`, which are passed on.
    """
    made_of = {output.name: frozenset({output.name}) for output in core.aggregates}
    doubles = frozenset(column.name for column in cells.columns if column.type == DOUBLE and column.name in made_of)
    carried = passed(column for column in cells.columns if column.name in (CELL.name, REPLICATE.name))
    found = cells
    for node in reversed(finish):
        match node:
            case Project():
                outputs = tuple(replace(each, expression=relaxed(each.expression, doubles)) for each in node.outputs)
                doubles = frozenset(
                    new.name for new, old in zip(outputs, node.outputs, strict=True)
                    if became_double(new, old) or (new.expression.type == DOUBLE and columns_of(old.expression) & doubles)
                )  # fmt: skip
                sources = {each.name: _sources(each.expression, made_of) for each in node.outputs}
                made_of = {name: names for name, names in sources.items() if names}
                found = Project(found, (*outputs, *carried))
            case Filter() if whole:
                found = Filter(found, relaxed(node.predicate, doubles))
            case Sort() if whole:
                found = Sort(found, relaxed_keys(node.keys, doubles))
            case Limit() if whole:
                found = replace(node, child=found)
    return Finished(found, made_of)


def _sources(expression: Expression, made_of: dict[str, frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*(made_of.get(name, frozenset()) for name in columns_of(expression)))
