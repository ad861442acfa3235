"""Closure: where no constraint says anything, no row is taken to be missing. This tells where that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nearly.algebra.boxes import EVERYWHERE, Box, Region
from nearly.algebra.ordered_sets import OrderedSet
from nearly.missing.statements.bound_set import BoundSet
from nearly.missing.statements.domains import OrderedDomain, RowSpace
from nearly.missing.statements.literals import decoded, point

MOST_BOXES = 5_000


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows that no constraint covers: a condition that describes them, and one of them (columns it leaves out are free)."""

    where: str
    example: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.where}    for example {dict(self.example)}"


def gaps(bound: BoundSet, region: Region = EVERYWHERE, most: int = 10) -> list[Gap]:
    """Regions that no constraint covers, at most so many; none when the set is closed over the given region."""
    rest = list(region)
    for constraint in bound.constraints:
        rest = [piece for each in rest for piece in _minus(each, constraint.predicate, bound.rows)]
        if len(rest) > MOST_BOXES:
            rest = rest[:MOST_BOXES]
    return [Gap(_condition(each, bound.rows), decoded(_point(each, bound.rows), bound.rows)) for each in rest[:most]]


def _minus(each: Box, region: Region, rows: RowSpace) -> list[Box]:
    pieces = [each]
    for other in region:
        pieces = [piece for mine in pieces for piece in mine.minus(other, rows.everything)]
    return pieces


def _point(each: Box, rows: RowSpace) -> dict[str, Any]:
    """A row whose values are plain ones: near the finite end of a range rather than the least value of the type."""
    ranks = point(each, {})
    for column, side in each.sides.items():
        domain = rows.domains[column]
        if side.pieces and not each.planes and side.first == domain.first and side.pieces[0][1] != domain.end:
            last = domain.last(OrderedSet(side.pieces[:1]))
            ranks[column] = side.first if last is None else last
    return ranks


def _condition(each: Box, rows: RowSpace) -> str:
    parts = [_side(column, side, rows.domains[column]) for column, side in sorted(each.sides.items())]
    parts += [
        " + ".join(f"{weight}*{column}" for column, weight in plane.terms) + f" <= {plane.bound} (ranks)" for plane in each.planes
    ]
    return " and ".join(parts) or "TRUE"


def _side(column: str, side: OrderedSet, domain: OrderedDomain) -> str:
    options = [_piece(column, first, end, domain) for first, end in side.pieces]
    options += [f"{column} is null"] if side.null else []
    if side.pieces == ((domain.first, domain.end),):
        return f"{column} is not null" if not side.null else "TRUE"
    return options[0] if len(options) == 1 else f"({' or '.join(options)})"


def _piece(column: str, first: Any, end: Any, domain: OrderedDomain) -> str:
    if end == domain.next(first):
        return f"{column} = {_literal(domain.value(first))}"
    low = "" if first == domain.first else f"{column} >= {_literal(domain.value(first))}"
    high = "" if end == domain.end else f"{column} < {_literal(domain.value(end))}"
    return " and ".join(part for part in (low, high) if part) or f"{column} is not null"


def _literal(value: Any) -> str:
    return str(value) if isinstance(value, int | float) else f"'{value}'"
