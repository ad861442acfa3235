"""Constraints bound to a table: predicates as regions, value ranges as boxes, and which constraints touch each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearly.algebra.boxes import Box, Region, box, hull, intersection, meet
from nearly.algebra.ordered_sets import OrderedSet, Rank
from nearly.errors import ConstraintError, NearlyError, Unsupported
from nearly.missing.statements.constraint import Constraint, ValueRange
from nearly.plan.binding.query import bind
from nearly.plan.expressions import has_subquery
from nearly.plan.nodes import Filter, Plan, Project, Scan
from nearly.plan.syntax.parse import parse_query
from nearly.plan.values.domains import OrderedDomain
from nearly.plan.values.regions import Regions, RowSpace


@dataclass(frozen=True, slots=True)
class BoundConstraint:
    """A constraint over a row space: rows in `predicate` lie in `allowed`, and there are `low` to `high` of them.

    `allowed` is the part of `predicate` in which the values lie in their ranges.
    """

    given: Constraint
    predicate: Region
    values: Region
    allowed: Region
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class BoundSet:
    """The constraints of one table and their connected components: two constraints touch when their predicates share a row.

    Law: components do not influence each other, so ranges of sums and counts add up over them.
    """

    rows: RowSpace
    constraints: tuple[BoundConstraint, ...]
    components: tuple[tuple[int, ...], ...]


def bind_constraints(given: Sequence[Constraint], rows: RowSpace) -> BoundSet:
    """Constraints over a table; a wrong name or type in one of them is an error that names it."""
    bound = []
    for constraint in given:
        try:
            bound.append(bind_constraint(constraint, rows))
        except NearlyError as trouble:
            raise type(trouble)(f"constraint {constraint.label!r} of table {rows.table!r}: {trouble}") from trouble
    return BoundSet(rows, tuple(bound), connected([each.predicate for each in bound], rows))


def bind_constraint(constraint: Constraint, rows: RowSpace) -> BoundConstraint:
    predicate = region_of(constraint.predicate, rows)
    sides = {}
    for name, given in constraint.values.items():
        column = rows.column(name)
        sides[column] = _side(given, column, rows.domains[column])
    values = box(sides)
    low_rows, high_rows = constraint.rows
    return BoundConstraint(constraint, predicate, values, intersection(predicate, values), low_rows, high_rows)


def region_of(predicate: str, rows: RowSpace) -> Region:
    """The rows for which a predicate over the table is true."""
    plan = bind(parse_query(f"select 1 as one from `{rows.table}` where {predicate}"), lambda _: rows.schema).plan
    if not isinstance(plan, Project) or not isinstance(plan.child, Filter) or not isinstance(plan.child.child, Scan):
        raise Unsupported(f"{predicate!r} is not one condition on the columns of table {rows.table!r}")
    condition = plan.child.predicate
    if has_subquery(condition):
        raise Unsupported("a subquery in a constraint")
    return Regions(rows, sources_of(plan.child.child)).true(condition)


def sources_of(scan: Plan) -> dict[str, str]:
    """The table's column behind each name that a scan gives."""
    return {field.name: field.source for field in scan.fields} if isinstance(scan, Scan) else {}


def connected(regions: Sequence[Region], rows: RowSpace) -> tuple[tuple[int, ...], ...]:
    """Groups of regions that touch each other, directly or through others, found by a sweep along one column."""
    parent = list(range(len(regions)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for left, right in _candidates(regions, rows):
        if root(left) != root(right) and meet(regions[left], regions[right]):
            parent[root(left)] = root(right)
    groups: dict[int, list[int]] = {}
    for index in range(len(regions)):
        groups.setdefault(root(index), []).append(index)
    return tuple(tuple(group) for group in groups.values())


def _candidates(regions: Sequence[Region], rows: RowSpace) -> list[tuple[int, int]]:
    """Pairs of regions that may share a row: those whose ranges overlap in the column that separates most."""
    best: list[tuple[int, int]] | None = None
    columns = {column for region in regions for each in region for column in each.sides}
    for column in sorted(columns):
        pairs = _overlapping(regions, column, rows)
        if best is None or len(pairs) < len(best):
            best = pairs
    if best is None:
        best = [(left, right) for right in range(len(regions)) for left in range(right)]
    return best


def _overlapping(regions: Sequence[Region], column: str, rows: RowSpace) -> list[tuple[int, int]]:
    sides = [hull(region, column, rows.everything) for region in regions]
    spans = sorted((side.first, side.end, index) for index, side in enumerate(sides) if side.pieces)
    with_null = [index for index, side in enumerate(sides) if side.null]
    pairs = [(left, right) for place, right in enumerate(with_null) for left in with_null[:place]]
    active: list[tuple[Rank, int]] = []
    for first, end, index in spans:
        active = [(other_end, other) for other_end, other in active if other_end > first]
        pairs += [(other, index) for _, other in active]
        active.append((end, index))
    return pairs


def _side(given: ValueRange, column: str, domain: OrderedDomain) -> OrderedSet:
    side = domain.values
    if given.low is not None:
        side = side & domain.at_least(given.low)
    if given.high is not None:
        side = side & domain.at_most(given.high)
    if side.is_empty:
        raise ConstraintError(f"the range of {column!r} from {given.low!r} to {given.high!r} holds no value of type {domain.type}")
    return OrderedSet(side.pieces, null=given.nullable)


def sole_box(region: Region) -> Box | None:
    """The box of a region of one box without half-spaces."""
    return region[0] if len(region) == 1 and not region[0].planes else None
