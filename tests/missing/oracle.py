"""The oracle of the range tests: all instances of the missing rows, enumerated, over a domain of a handful of rows.

Column `a` is a decimal that predicates and value ranges keep between -1 and 2 (or null), column `g` a boolean (or null).
Predicates are drawn as pairs of SQL text and a Python function with SQL's three-valued meaning.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from nearly.missing.statements.constraint import Constraint
from nearly.plan.schema import SchemaColumn, TableSchema
from nearly.plan.types import BOOLEAN, decimal

SCHEMA = TableSchema("t", (SchemaColumn("a", decimal(4, 1)), SchemaColumn("g", BOOLEAN)))
NUMBERS = (None, -1, 0, 2)
ROWS = tuple(product(NUMBERS, (None, False, True)))
Row = tuple[Any, Any]
Truth = Callable[[Row], bool | None]


@dataclass(frozen=True)
class Predicate:
    text: str
    holds: Truth


def predicate(draw: random.Random, depth: int = 1) -> Predicate:
    """A random predicate; `in (-1, 0, 2)` and the like keep column a in the small domain."""
    if depth and draw.random() < 0.35:
        left, right = predicate(draw, depth - 1), predicate(draw, depth - 1)
        if draw.random() < 0.5:
            return Predicate(f"({left.text} and {right.text})", lambda row: _both(left.holds(row), right.holds(row)))
        return Predicate(f"({left.text} or {right.text})", lambda row: _either(left.holds(row), right.holds(row)))
    if depth and draw.random() < 0.15:
        inner = predicate(draw, depth - 1)
        return Predicate(f"not ({inner.text})", lambda row: None if inner.holds(row) is None else not inner.holds(row))
    return draw.choice([_on_a, _on_g, _null_of])(draw)


def _on_a(draw: random.Random) -> Predicate:
    value = draw.choice([-1, 0, 1, 2])
    name, compare = draw.choice([
        ("<", lambda a: a < value), ("<=", lambda a: a <= value), (">", lambda a: a > value), (">=", lambda a: a >= value),
        ("=", lambda a: a == value), ("<>", lambda a: a != value),
    ])  # fmt: skip
    return Predicate(f"a {name} {value}", lambda row: None if row[0] is None else compare(row[0]))


def _on_g(draw: random.Random) -> Predicate:
    wanted = draw.random() < 0.5
    return Predicate("g" if wanted else "g = false", lambda row: None if row[1] is None else row[1] == wanted)


def _null_of(draw: random.Random) -> Predicate:
    place = draw.randrange(2)
    wanted = draw.random() < 0.5
    return Predicate(f"{'ag'[place]} is {'' if wanted else 'not '}null", lambda row: (row[place] is None) == wanted)


def _both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _either(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


SMALL = Predicate("(a is null or a in (-1, 0, 2))", lambda row: row[0] in NUMBERS)


@dataclass(frozen=True)
class Statement:
    """A constraint, and its meaning."""

    given: Constraint
    holds: Truth
    low_value: int | None
    high_value: int | None

    def allows(self, row: Row) -> bool:
        if self.holds(row) is not True or self.low_value is None or self.high_value is None:
            return True
        return row[0] is not None and self.low_value <= row[0] <= self.high_value


def statement(draw: random.Random) -> Statement:
    inner = predicate(draw)
    low = draw.choice([0, 0, 0, 1, 2])
    high = low + draw.randrange(3)
    values: dict[str, Any] = {}
    ends: tuple[int | None, int | None] = (None, None)
    if draw.random() < 0.6:
        first, last = sorted(draw.choices([-1, 0, 1, 2], k=2))
        values, ends = {"a": (first, last)}, (first, last)
    text = f"{inner.text} and {SMALL.text}"
    return Statement(
        Constraint(text, rows=(low, high), values=values), lambda row: _both(inner.holds(row), SMALL.holds(row)), *ends
    )


def instances(statements: Sequence[Statement]) -> Iterator[dict[Row, int]]:
    """Every multiset of rows that satisfies all constraints and lies in the predicates (closure)."""
    rows = [
        row for row in ROWS if any(each.holds(row) is True for each in statements) and all(each.allows(row) for each in statements)
    ]
    members = [[number for number, each in enumerate(statements) if each.holds(row) is True] for row in rows]
    left = [each.given.rows[1] or 0 for each in statements]
    used = [0] * len(statements)
    counts = [0] * len(rows)

    def fill(place: int) -> Iterator[dict[Row, int]]:
        if place == len(rows):
            if all(count >= each.given.rows[0] for count, each in zip(used, statements, strict=True)):
                yield {row: count for row, count in zip(rows, counts, strict=True) if count}
            return
        most = min(left[number] - used[number] for number in members[place])
        for count in range(most + 1):
            counts[place] = count
            for number in members[place]:
                used[number] += count
            yield from fill(place + 1)
            for number in members[place]:
                used[number] -= count
        counts[place] = 0

    return fill(0)


def aggregate(function: str, column: bool, rows: Sequence[tuple[Row, int]]) -> Fraction | None:
    """An aggregate over rows with multiplicities; an empty sum is 0."""
    counted = [(row[0], count) for row, count in rows if not column or row[0] is not None]
    match function:
        case "count":
            return Fraction(sum(count for _, count in counted))
        case "sum":
            return Fraction(sum(value * count for value, count in counted))
        case _ if not counted:
            return None
        case "avg":
            return Fraction(sum(value * count for value, count in counted), sum(count for _, count in counted))
        case "min":
            return Fraction(min(value for value, _ in counted))
    return Fraction(max(value for value, _ in counted))
