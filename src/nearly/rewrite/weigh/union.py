"""UNION ALL of weighted rows: all rows of both sides, each with what it stands for and what contributed to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from nearly.errors import Unsupported
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import Column, Expression, Literal
from nearly.plan.functions.casting import coerce
from nearly.plan.nodes import Output, Plan, Project, SetOperation, passed
from nearly.plan.types import DOUBLE, INT, LONG
from nearly.rewrite.weigh.weighted import OfKeys, OfUnits, Weighted

EVERYWHERE = 64
"""Rows that hang on no unit count as seen in more groups than there are."""
EVERY_GROUP = Literal(LONG, -1)
"""The mask of such rows."""


@dataclass(frozen=True, slots=True)
class Uniting:
    """A union, and its sides as they are weighted."""

    fresh: FreshNames
    plan: SetOperation
    left: Weighted
    right: Weighted

    @property
    def sides(self) -> tuple[tuple[Weighted, Plan], ...]:
        return (self.left, self.plan.left), (self.right, self.plan.right)

    def rows(self, of_left: OfUnits, of_right: OfUnits) -> Weighted:
        """Rows of units, with their replicate, weight and unit."""
        left, right, plan = self.left, self.right, self.plan
        evolving = left.evolving & plan.left.names or right.evolving & plan.right.names
        if evolving or (left.replicate is None) != (right.replicate is None):
            raise Unsupported("a union of estimates with rows")
        kinds = [(left.replicate, right.replicate), (of_left.weight, of_right.weight), (of_left.unit, of_right.unit)]
        pairs = [(a, b) for a, b in kinds if isinstance(a, Column) and isinstance(b, Column)]
        present, deciding = (
            [Column(LONG, self.fresh("groups")) for _ in range(max(map(len, masks)))]
            for masks in ((left.present, right.present), (left.deciding, right.deciding))
        )
        made = [*(Column(a.type, self.fresh("carried")) for a, _ in pairs), *present, *deciding]
        sides = []
        for at, (side, old) in enumerate(self.sides):
            masks = [*_filled(side.present, len(present)), *_filled(side.deciding, len(deciding))]
            sides.append(Project(side.plan, (*passed(old.columns), *self._named([*(pair[at] for pair in pairs), *masks]))))
        united = SetOperation(sides[0], sides[1], "union", True, (*plan.given, *made))
        renamed = {a.name: new for (a, _), new in zip(pairs, made, strict=False)}

        def after(column: Expression | None) -> Any:
            return renamed.get(column.name, column) if isinstance(column, Column) else column

        return Weighted(
            united, OfUnits(after(of_left.weight), after(of_left.unit)), after(left.replicate),
            present=frozenset(each.name for each in present), rows=left.rows.and_of(right.rows),
            by_extremes=left.by_extremes or right.by_extremes, of_picked=left.of_picked or right.of_picked,
            deciding=frozenset(each.name for each in deciding),
        )  # fmt: skip

    def estimates(self) -> Weighted:
        """Rows of estimates; both sides are in replicates, or neither is."""
        left, right, places = self.left, self.right, range(len(self.plan.given))
        evolving, doubles, extremes, curved = (
            self._either(getattr(left, kind), getattr(right, kind)) for kind in ("evolving", "doubles", "extremes", "curved")
        )
        given = tuple(replace(each, type=DOUBLE) if place in doubles else each for place, each in enumerate(self.plan.given))
        widths = [max(len(self._masks(side, old, place)) for side, old in self.sides) for place in places]
        masks = [[Column(LONG, self.fresh("groups")) for _ in range(width)] for width in widths]
        extra = [Column(DOUBLE, self.fresh("weight")), Column(LONG, self.fresh("seen"))]
        extra += [] if left.replicate is None else [Column(INT, self.fresh("replicate"))]
        sides = [Project(side.plan, tuple(self._named(self._estimate(side, old, doubles, widths)))) for side, old in self.sides]
        united = SetOperation(sides[0], sides[1], "union", True, (*given, *(each for part in masks for each in part), *extra))

        def names(at: frozenset[int]) -> frozenset[str]:
            return frozenset(given[place].name for place in at)

        standing = OfKeys(extra[0] if left.weight or right.weight else None, extra[1], left.unlike or right.unlike)
        return Weighted(
            united, standing, extra[2] if len(extra) > 2 else None,
            names(evolving), names(doubles), names(extremes),
            {given[place].name: frozenset(each.name for each in masks[place]) for place in evolving},
            rows=left.rows.and_of(right.rows), by_extremes=left.by_extremes or right.by_extremes,
            of_picked=left.of_picked or right.of_picked,
            deciding=frozenset(each.name for part in masks for each in part) if left.deciding or right.deciding else frozenset(),
            curved=names(curved),
        )  # fmt: skip

    def _estimate(self, side: Weighted, old: Plan, doubles: frozenset[int], widths: list[int]) -> list[Expression]:
        """A row of one side: its columns, the masks of each, and what it stands for."""
        types = {column.name: column for column in side.plan.columns}
        row: list[Expression] = [
            coerce(types[column.name], DOUBLE) if place in doubles else column for place, column in enumerate(old.columns)
        ]
        for place, width in enumerate(widths):
            names = self._masks(side, old, place)
            row += [*(Column(LONG, name) for name in names), *[EVERY_GROUP] * (width - len(names))]
        row += [side.weight or Literal(DOUBLE, 1.0), side.seen or Literal(LONG, EVERYWHERE)]
        return row if side.replicate is None else [*row, side.replicate]

    def _either(self, left: frozenset[str], right: frozenset[str]) -> frozenset[int]:
        """The places of columns that are among these on one side."""
        pairs = zip(self.plan.left.columns, self.plan.right.columns, strict=True)
        return frozenset(place for place, (a, b) in enumerate(pairs) if a.name in left or b.name in right)

    def _masks(self, side: Weighted, plan: Plan, place: int) -> list[str]:
        return sorted(side.evidence.get(plan.columns[place].name, ()))

    def _named(self, row: list[Expression]) -> tuple[Output, ...]:
        return tuple(Output(self.fresh("side"), each) for each in row)


def _filled(masks: frozenset[str], width: int) -> list[Expression]:
    """So many masks: those of one side, and for each that only the other has, all groups."""
    found: list[Expression] = [Column(LONG, name) for name in sorted(masks)]
    return found + [EVERY_GROUP] * (width - len(found))
