"""Columns nobody reads are not computed, not read and not sent.

A subplan used twice keeps the columns that either use needs, so that it stays one subplan.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from nearly.plan.expressions import Column, Expression, columns_of
from nearly.plan.nodes import Exchange, GroupBy, Output, Plan, Project, Scan, SetOperation, Window, passed

Needed = dict[Plan, frozenset[str]]


def prune(plan: Plan) -> Plan:
    """The plan without unread columns; its own columns all stay."""
    return _rebuild(plan, needed_of(plan))


def needed_of(plan: Plan) -> Needed:
    """The columns of each part of a plan that something above it reads."""
    needed: Needed = {}
    _collect(plan, plan.names, needed)
    return needed


def _collect(plan: Plan, wanted: frozenset[str], needed: Needed) -> None:
    known = needed.get(plan)
    if known is not None and wanted <= known:
        return
    wanted = wanted | (known or frozenset())
    needed[plan] = wanted
    for child in plan.children:
        _collect(child, _wanted_of(plan, child, wanted), needed)


def _wanted_of(plan: Plan, child: Plan, wanted: frozenset[str]) -> frozenset[str]:
    match plan:
        case Project():
            return _reads(output.expression for output in plan.outputs if output.name in wanted) & child.names
        case GroupBy():
            used = [output for output in plan.aggregates if output.name in wanted]
            return _reads(output.expression for output in (*plan.keys, *used)) & child.names
        case Window():
            return (wanted | _reads(o.expression for o in plan.outputs if o.name in wanted)) & child.names
        case SetOperation():
            if plan.kind == "union" and plan.every:
                return frozenset(b.name for a, b in zip(plan.given, child.columns, strict=True) if a.name in wanted)
            return child.names
        case Exchange():
            return (wanted | {key.name for key in plan.keys}) & child.names
    return (wanted | _reads(plan.expressions())) & child.names


def _reads(expressions: Iterable[Expression]) -> frozenset[str]:
    return frozenset(name for expression in expressions for name in columns_of(expression))


def _rebuild(plan: Plan, needed: Needed) -> Plan:
    wanted = needed[plan]
    match plan:
        case Scan():
            return replace(plan, fields=tuple(field for field in plan.fields if field.name in wanted))
        case Project():
            return Project(_rebuild(plan.child, needed), _kept(plan.outputs, wanted))
        case Window():
            outputs, child = _kept(plan.outputs, wanted), _rebuild(plan.child, needed)
            return Window(child, outputs) if outputs else child
        case GroupBy():
            return replace(plan, child=_rebuild(plan.child, needed), aggregates=_kept(plan.aggregates, wanted))
        case SetOperation():
            return _set_operation(plan, [_rebuild(side, needed) for side in (plan.left, plan.right)], wanted)
    return plan.map_children(lambda child: _rebuild(child, needed))


def _kept(outputs: tuple[Output, ...], wanted: frozenset[str]) -> tuple[Output, ...]:
    return tuple(output for output in outputs if output.name in wanted)


def _set_operation(plan: SetOperation, rebuilt: list[Plan], wanted: frozenset[str]) -> Plan:
    """The sides may keep columns that another use of them needs: pick by position."""
    if not (plan.kind == "union" and plan.every):
        wanted = plan.names
    places = [place for place, column in enumerate(plan.given) if column.name in wanted]
    given = tuple(plan.given[place] for place in places)
    sides = []
    for old, new in zip((plan.left, plan.right), rebuilt, strict=True):
        sides.append(_select(new, [old.columns[place] for place in places]))
    return SetOperation(sides[0], sides[1], plan.kind, plan.every, given)


def _select(plan: Plan, columns: list[Column]) -> Plan:
    if [column.name for column in plan.columns] == [column.name for column in columns]:
        return plan
    return Project(plan, passed(columns))
