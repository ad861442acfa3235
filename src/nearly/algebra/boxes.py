"""Boxes and regions: sets of rows given column by column, with exact intersection, difference and emptiness.

A box is a product of one `OrderedSet` per column; a region is a union of disjoint boxes. Boxes are closed under intersection, and
the difference of two boxes over d columns is a region of at most d boxes:

    A - B  =  union over k of  { A, inside B in columns 1..k-1, outside B in column k }

so every Boolean combination of predicates on single columns is a region, and it is satisfiable exactly when it has a box: no solver
is needed. What compares columns with each other is a half-space; a box may carry some, and only then is a solver asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from nearly.algebra.half_spaces import HalfSpace, is_feasible
from nearly.algebra.ordered_sets import OrderedSet

Space: TypeAlias = Mapping[str, OrderedSet]
"""All values of each column, null included."""


@dataclass(frozen=True, slots=True)
class Box:
    """Rows whose columns lie in `sides` (a column that is not mentioned is free) and in all `planes`. Never empty.

    Build it with `box`, `&` and `minus`, which give None or no box where nothing is left.
    """

    sides: Mapping[str, OrderedSet]
    planes: tuple[HalfSpace, ...] = ()

    def __and__(self, other: Box) -> Box | None:
        """The rows of both, or None."""
        sides = dict(self.sides)
        for column, side in other.sides.items():
            mine = sides.get(column)
            if mine is None:
                sides[column] = side
            elif mine is not side:
                common = mine & side
                if common.is_empty:
                    return None
                sides[column] = common
        planes = self.planes if not other.planes else tuple(dict.fromkeys((*self.planes, *other.planes)))
        return _checked(sides, planes)

    def meets(self, other: Box) -> bool:
        """Whether some row is in both."""
        if self.planes or other.planes:
            return self & other is not None
        mine = self.sides
        for column, side in other.sides.items():
            own = mine.get(column)
            if own is not None and not own.meets(side):
                return False
        return True

    def within(self, other: Box, space: Space) -> bool:
        """Whether every row of this box is in the other."""
        inside = all(self.sides.get(column, space[column]) <= side for column, side in other.sides.items())
        if self.planes or other.planes:
            return (inside and not other.planes) or not self.minus(other, space)
        return inside

    def minus(self, other: Box, space: Space) -> list[Box]:
        """Disjoint boxes that hold the rows of this one that are not in the other."""
        if not self.meets(other):
            return [self]
        rest = []
        sides = dict(self.sides)
        for column, side in other.sides.items():
            mine = sides.get(column, space[column])
            outside = mine - side
            if not outside.is_empty:
                piece = _checked({**sides, column: outside}, self.planes)
                rest += [piece] if piece is not None else []
            sides[column] = mine & side
        planes = self.planes
        for plane in other.planes:
            piece = _checked(sides, (*planes, plane.negated))
            rest += [piece] if piece is not None else []
            planes = (*planes, plane)
        return rest


Region: TypeAlias = tuple[Box, ...]
"""A union of disjoint boxes; the empty tuple is the empty set."""

EVERYWHERE: Region = (Box({}),)
NOWHERE: Region = ()


def box(sides: Mapping[str, OrderedSet], planes: tuple[HalfSpace, ...] = ()) -> Region:
    """The region of one box, empty when a side is."""
    made = None if any(side.is_empty for side in sides.values()) else _checked(dict(sides), planes)
    return () if made is None else (made,)


def intersection(left: Region, right: Region) -> Region:
    """The rows of both regions."""
    both = (a & b for a in left for b in right)
    return tuple(each for each in both if each is not None)


def difference(left: Region, right: Region, space: Space) -> Region:
    """The rows of the left region that are not in the right one."""
    rest = list(left)
    for each in right:
        rest = [piece for mine in rest for piece in mine.minus(each, space)]
    return tuple(rest)


def union(left: Region, right: Region, space: Space) -> Region:
    """The rows of either region, as disjoint boxes."""
    return (*left, *difference(right, left, space))


def meet(left: Region, right: Region) -> bool:
    """Whether the regions have a row in common."""
    return any(a.meets(b) for a in left for b in right)


def within(left: Region, right: Region, space: Space) -> bool:
    """Whether the left region is a subset of the right one."""
    if len(right) == 1:
        return all(each.within(right[0], space) for each in left)
    return not difference(left, right, space)


def hull(region: Region, column: str, space: Space) -> OrderedSet:
    """All values that the column takes in the region, half-spaces not considered."""
    found = OrderedSet(())
    for each in region:
        found = found | each.sides.get(column, space[column])
    return found


def _checked(sides: Mapping[str, OrderedSet], planes: tuple[HalfSpace, ...]) -> Box | None:
    if planes and not is_feasible(planes, sides):
        return None
    return Box(sides, planes)
