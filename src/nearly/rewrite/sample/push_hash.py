"""The sample of a plan by tickets, taken as far down as it goes: rows outside of it are not even made (SVC, Definition 3).

Law (Theorem 1): the plan gives the rows of `Filter(plan, ticket(columns) < bound)`, no others, each as often.

A row's ticket is that of the rows it is made of wherever these are equal to it in the columns. So the test passes filters,
projections, groupings by the columns, windows by them and both sides of set operations. It passes a join to every side on which
each column is equal to one there, by what the join equates or by what the sides know to be equal; the side that is not kept whole
may only be thinned of rows that no kept row meets.

Reference: Krishnan et al., Stale View Cleaning, VLDB 2015, sections 4.4, 12.5 and 12.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nearly.plan.equalities import Classes, class_of, equal_columns, equated_in, united
from nearly.plan.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    WindowCall,
    columns_of,
    conjunction,
    conjuncts,
    has_subquery,
    substitute,
    walk,
)
from nearly.plan.functions.tickets import TICKETS, drawn, ticket_family
from nearly.plan.nodes import Filter, GroupBy, Join, Plan, Project, Scan, SetOperation, Sort, Window

Tested = tuple[Expression, ...]
"""What tickets are drawn for, in terms of a plan's columns."""

_KEPT_SIDES = {"inner": (True, True), "cross": (True, True), "left": (True, False), "right": (False, True),
               "semi": (True, False), "anti": (True, False), "full": (False, False)}  # fmt: skip
"""For each kind of join, the sides whose columns a row of it has as they are, so that the test can be made there."""


def push_hash(plan: Plan, columns: Sequence[Column], share: float, start: float = 0.0) -> Plan:
    """The rows of the plan whose ticket by some of its columns lies in a share of all tickets, the first unless it starts later."""
    return _Pushing(share, start).push(plan, tuple(columns))


def sampled_scans(plan: Plan) -> frozenset[Scan]:
    """The scans of which a plan reads only what has a ticket in its sample."""
    found = set()
    for node in plan.walk():
        if isinstance(node, Filter) and isinstance(node.child, Scan) and any(is_drawn(part) for part in conjuncts(node.predicate)):
            found.add(node.child)
    return frozenset(found)


def tables_drawn(plan: Plan) -> dict[str, Expression]:
    """The tables of which a plan reads only rows that pass one test of tickets, wherever it reads them, by name in lower case.

    The tests are over the columns of the tables.
    """
    found: dict[str, set[Expression | None]] = {}

    def look(node: Plan, above: Plan | None) -> None:
        if isinstance(node, Scan):
            found.setdefault(node.table.lower(), set()).add(_test_of(node, above))
        for child in node.children:
            look(child, node)

    look(plan, None)
    return {name: test for name, tests in found.items() if len(tests) == 1 and (test := next(iter(tests))) is not None}


def _test_of(scan: Scan, above: Plan | None) -> Expression | None:
    """The test of tickets right above a scan, over the columns of its table."""
    parts = [part for part in conjuncts(above.predicate) if is_drawn(part)] if isinstance(above, Filter) else []
    sources: dict[str, Expression] = {field.name: Column(field.type, field.source) for field in scan.fields}
    return conjunction([substitute(part, sources) for part in parts])


def drawn_below(test: Expression) -> tuple[tuple[str, ...], int] | None:
    """The columns whose tickets a test looks at, and the bound that they lie below; None where it is made of others."""
    for part in conjuncts(test):
        match part:
            case Call(function="<", arguments=(Call(function="ticket", arguments=drawn_for), Literal(value=bound))):
                columns = [each.name for each in drawn_for if isinstance(each, Column)]
                if len(columns) == len(drawn_for):
                    return tuple(columns), int(bound)
    return None


def is_drawn(part: Expression) -> bool:
    """Whether a predicate tests a ticket."""
    match part:
        case Call(function="<", arguments=(Call(function="ticket"), Literal(value=bound))):
            return bool(bound < TICKETS)
        case Call(function=">=", arguments=(Call(function="ticket"), Literal())):
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Pushing:
    share: float
    start: float

    def push(self, plan: Plan, tested: Tested) -> Plan:
        match plan:
            case Filter():
                return _merged(self.push(plan.child, tested), plan.predicate)
            case Sort():
                return replace(plan, child=self.push(plan.child, tested))
            case Project():
                return self._through_outputs(plan, {each.name: each.expression for each in plan.outputs}, tested)
            case GroupBy(sets=None) if _reads(tested) and _reads(tested) <= {key.name for key in plan.keys}:
                return self._through_outputs(plan, {key.name: key.expression for key in plan.keys}, tested)
            case Window() if all(_by(tested, each.expression) for each in plan.outputs):
                return replace(plan, child=self.push(plan.child, tested))
            case SetOperation() if _reads(tested):
                return self._through_sides(plan, tested)
            case Join():
                return self._through_join(plan, tested)
        return self._keep(plan, tested)

    def _keep(self, plan: Plan, tested: Tested) -> Plan:
        return Filter(plan, drawn(tested, self.share, self.start))

    def _through_outputs(self, plan: Project | GroupBy, values: dict[str, Expression], tested: Tested) -> Plan:
        below = tuple(substitute(each, values) for each in tested)
        if any(has_subquery(each) for each in below):
            return self._keep(plan, tested)
        return replace(plan, child=self.push(plan.child, below))

    def _through_sides(self, plan: SetOperation, tested: Tested) -> Plan:
        def side(child: Plan) -> Plan:
            values: dict[str, Expression] = {a.name: b for a, b in zip(plan.given, child.columns, strict=True)}
            return self.push(child, tuple(substitute(each, values) for each in tested))

        return replace(plan, left=side(plan.left), right=side(plan.right))

    def _through_join(self, plan: Join, tested: Tested) -> Plan:
        if plan.kind == "full":
            sides = _merged_keys(plan, tested)
            if sides is None:
                return self._keep(plan, tested)
            return replace(plan, left=self.push(plan.left, sides[0]), right=self.push(plan.right, sides[1]))
        above = equal_columns(plan)
        kept_left, kept_right = _KEPT_SIDES[plan.kind]
        left = _on_side(tested, plan.left, above) if kept_left else None
        right = _on_side(tested, plan.right, above) if kept_right else None
        if left is None and right is None:
            return self._keep(plan, tested)
        meeting = united((*above, *equal_columns(plan.left), *equal_columns(plan.right), *equated_in(plan.condition)))
        if right is None and left is not None:
            right = _on_side(left, plan.right, meeting)
        elif left is None and right is not None:
            left = _on_side(right, plan.left, meeting)
        return replace(
            plan,
            left=plan.left if left is None else self.push(plan.left, left),
            right=plan.right if right is None else self.push(plan.right, right),
        )


def _reads(tested: Tested) -> frozenset[str]:
    return frozenset[str]().union(*(columns_of(each) for each in tested))


def _by(tested: Tested, call: Expression) -> bool:
    """Whether a window's partitions lie wholly inside or outside of the sample."""
    return isinstance(call, WindowCall) and all(each in call.partition for each in tested)


def _merged(plan: Plan, predicate: Expression) -> Plan:
    """A filter above, and a test of tickets that stayed right below it, as one filter."""
    if isinstance(plan, Filter):
        both = conjunction([*conjuncts(predicate), *conjuncts(plan.predicate)])
        return plan if both is None else Filter(plan.child, both)
    return Filter(plan, predicate)


def _on_side(tested: Tested, side: Plan, classes: Classes) -> Tested | None:
    """What is tested in terms of one side's columns; None where it has no equal of some column."""
    types = {column.name: column for column in side.columns}
    found = []
    for each in tested:
        values: dict[str, Expression] = {}
        for column in _columns(each):
            same = sorted(name for name in class_of(column.name, classes) if name in types)
            fitting = [types[name] for name in same if _fits(types[name], column, alone=each == column)]
            if column.name in types:
                values[column.name] = types[column.name]
            elif fitting:
                values[column.name] = fitting[0]
            else:
                return None
        found.append(substitute(each, values))
    return tuple(found)


def _columns(expression: Expression) -> list[Column]:
    """The columns of an expression, each once."""
    return list(dict.fromkeys(each for each in walk(expression) if isinstance(each, Column)))


def _fits(found: Column, wanted: Column, alone: bool) -> bool:
    """Whether tickets see the same in both: as an argument of its own a whole number may have another width."""
    return found.type == wanted.type or (alone and ticket_family(found.type) == ticket_family(wanted.type))


def _merged_keys(plan: Join, tested: Tested) -> tuple[Tested, Tested] | None:
    """Of a full join, what is tested on each side, where that is the key of whichever side has the row: coalesce(left, right)."""
    pairs = equated_in(plan.condition)
    sides: tuple[list[Expression], list[Expression]] = ([], [])
    for each in tested:
        match each:
            case Call(function="coalesce", arguments=(Column() as first, Column() as second)) if (
                frozenset({first.name, second.name}) in pairs and first.type == second.type
            ):
                left, right = (first, second) if first.name in plan.left.names else (second, first)
                if left.name not in plan.left.names or right.name not in plan.right.names:
                    return None
                sides[0].append(left)
                sides[1].append(right)
            case _:
                return None
    return tuple(sides[0]), tuple(sides[1])
