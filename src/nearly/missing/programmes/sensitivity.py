"""Which constraints bind an end of a range, and how much it would move if they were tighter.

Of the row bounds this is the solver's dual price: one row less in an upper bound (one more in a lower bound) shrinks the range by
the price, to first order. Of a value range it is the number of rows that sit at its end in the extreme instance: each unit less
shrinks a sum by that many units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nearly.algebra.boxes import Region, hull
from nearly.missing.programmes.aggregate_range import ENDS, AggregateRange
from nearly.missing.programmes.problem import End, Stake
from nearly.missing.statements.bound_set import BoundConstraint, BoundSet

SMALLEST = 1e-12


@dataclass(frozen=True, slots=True)
class Binding:
    """A part of a constraint that holds an end of the range where it is.

    `shrink` is by how much the range would shrink for each `unit` (a row, or 1 of the column) by which that part were tightened.
    """

    constraint: str
    part: str
    end: str
    shrink: float
    unit: str

    def __str__(self) -> str:
        return f"{self.end:>4}  {self.shrink:>14,.6g} per {self.unit:<8}  {self.part}  where {self.constraint}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What to find out next: the bindings of both ends, the most rewarding first."""

    low: object
    high: object
    bindings: tuple[Binding, ...]

    def __str__(self) -> str:
        head = f"range {self.low} to {self.high}; the range shrinks by"
        return "\n".join([head, *map(str, self.bindings)] if self.bindings else [f"range {self.low} to {self.high}; nothing binds"])


def bindings(found: AggregateRange, bound: BoundSet) -> tuple[Binding, ...]:
    """What holds both ends of a range."""
    both = [each for side in ENDS for each in _of_end(found, found.end(side), bound)]
    return tuple(sorted(both, key=lambda each: -each.shrink))


def _of_end(found: AggregateRange, end: End, bound: BoundSet) -> Iterator[Binding]:
    if found.function in ("min", "max"):
        yield from _of_extreme(found, end, bound)
        return
    for place, (stake, counts, takes) in enumerate(zip(end.stakes, end.counts, end.takes, strict=False)):
        gains = [0.0 if gain is None else float(gain * end.units[place]) for gain in end.gains[place]] if end.gains else []
        yield from _of_rows(stake, gains, end.side, bound) if gains else ()
        if found.function != "count":
            weight = _weight(found, end)
            yield from _of_values(found, stake, counts, takes, weight, end.side, bound)


def _of_rows(stake: Stake, gains: Sequence[float], side: str, bound: BoundSet) -> Iterator[Binding]:
    upper, lower = stake.part.block.prices(gains)
    for local, price in upper.items():
        constraint = bound.constraints[stake.part.constraints[local]]
        if price > SMALLEST:
            yield Binding(constraint.given.label, f"rows at most {constraint.high}", side, price, "row")
    for local, price in lower.items():
        constraint = bound.constraints[stake.part.constraints[local]]
        if price > SMALLEST:
            yield Binding(constraint.given.label, f"rows at least {constraint.low}", side, price, "row")


def _of_values(
    found: AggregateRange,
    stake: Stake,
    counts: Sequence[int],
    takes: Sequence[bool],
    weight: float,
    side: str,
    bound: BoundSet,
) -> Iterator[Binding]:
    column = found.question.measure.column
    if column is None:
        return
    rows: dict[int, int] = {}
    for cell, count, take in zip(stake.part.cells, counts, takes, strict=True):
        if count and take:
            for local in cell.members:
                constraint = bound.constraints[stake.part.constraints[local]]
                if _at_end(constraint, cell.region, column, side, bound):
                    rows[stake.part.constraints[local]] = rows.get(stake.part.constraints[local], 0) + count
    for place, count in rows.items():
        yield _value_binding(bound.constraints[place], column, side, count * weight)


def _of_extreme(found: AggregateRange, end: End, bound: BoundSet) -> Iterator[Binding]:
    """MIN and MAX hang on the value ranges of the cells that have the extreme value."""
    column = found.question.measure.column
    if column is None:
        return
    blamed: set[int] = set()
    for stake, counts in zip(end.stakes, end.counts, strict=False):
        for cell, effect, count in zip(stake.part.cells, stake.effects, counts, strict=True):
            if count and effect.counts and effect.at(end.side) == end.value:
                blamed |= {
                    stake.part.constraints[local]
                    for local in cell.members
                    if _at_end(bound.constraints[stake.part.constraints[local]], cell.region, column, end.side, bound)
                }
    for place in sorted(blamed):
        yield _value_binding(bound.constraints[place], column, end.side, 1.0)


def _at_end(constraint: BoundConstraint, cell: Region, column: str, side: str, bound: BoundSet) -> bool:
    """Whether it is this constraint's value range that ends the cell's range."""
    if not constraint.values or column not in constraint.values[0].sides:
        return False
    mine, all_ = constraint.values[0].sides[column], hull(cell, column, bound.rows.everything)
    return bool(mine.first == all_.first) if side == "low" else bool(mine.end == all_.end)


def _value_binding(constraint: BoundConstraint, column: str, side: str, shrink: float) -> Binding:
    given = next(given for name, given in constraint.given.values.items() if name.lower() == column.lower())
    limit = f"{column} at least {given.low}" if side == "low" else f"{column} at most {given.high}"
    return Binding(constraint.given.label, limit, side, shrink, column)


def _weight(found: AggregateRange, end: End) -> float:
    """A row at its value adds it to a sum, and an n-th of it to an average of n rows."""
    if found.function != "avg":
        return 1.0
    rows = sum(
        count
        for counts, takes in zip(end.counts, end.takes, strict=True)
        for count, take in zip(counts, takes, strict=True)
        if take
    )
    return 1.0 / max(1, rows + end.certain)
