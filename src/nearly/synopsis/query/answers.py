"""Answers of a synopsis at one version of its table: single numbers, and groups of which some may not have been seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nearly.algebra.moments import check_confidence
from nearly.answer import NO_ROWS, Answer, UnseenRows, relative_error
from nearly.errors import Unsupported
from nearly.plan.types import to_arrow
from nearly.synopsis.build.definition import Definition, TablePlace
from nearly.synopsis.query.estimates import Estimate, answer
from nearly.synopsis.query.reading import TreeReading
from nearly.synopsis.query.totals import function_and_measure
from nearly.synopsis.structure.domain import Domain
from nearly.synopsis.structure.rows import MISSING
from nearly.synopsis.structure.schema import box_of, narrowed
from nearly.synopsis.structure.tree import Box, Condition

BOUNDS = ("value", "low", "high", "hard_low", "hard_high")


@dataclass(frozen=True, slots=True)
class Presence:
    """Which groups an answer shows: all of them have rows for sure; `unseen` is what is known of those that are not shown."""

    shown: int = 1
    unseen: UnseenRows = NO_ROWS

    @property
    def complete(self) -> bool:
        """Whether no other group can have a row."""
        return not self.unseen.most

    @property
    def error(self) -> float:
        """How many groups may come, as a share of those that are shown."""
        if self.complete:
            return 0.0
        return self.unseen.most / self.shown if self.shown else math.inf


ONE_ROW = Presence()


def answer_of(
    tables: Mapping[str, pa.Table], estimates: Sequence[Estimate], presence: Presence, confidence: float, source: str
) -> Answer:
    """An answer from its five tables. It is exact when all estimates are and exactly the groups that there are are shown."""
    value, low, high, hard_low, hard_high = (tables[bound] for bound in BOUNDS)
    exact = presence.complete and all(each.exact for each in estimates)
    error = max([presence.error, *(0.0 if each.exact else relative_error(each.value, each.low, each.high) for each in estimates)])
    return Answer(
        value, low, high, hard_low, hard_high, 1.0 if exact else min((each.share for each in estimates), default=0.0), exact,
        confidence, error, source, {"sampled_rows": sum(each.processed for each in estimates)}, complete=presence.complete,
        unseen=presence.unseen,
    )  # fmt: skip


def single(name: str, estimate: Estimate, confidence: float, source: str) -> Answer:
    """The answer of one number."""
    schema = pa.schema([(name, pa.float64())])
    if estimate.exact:
        value = pa.Table.from_arrays([_numbers(estimate.value)], schema=schema)
        return Answer.exactly(value, source, confidence, {"sampled_rows": estimate.processed})
    numbers = _numbers(*(getattr(estimate, bound) for bound in BOUNDS))
    tables = {bound: pa.Table.from_arrays([numbers.slice(place, 1)], schema=schema) for place, bound in enumerate(BOUNDS)}
    return answer_of(tables, [estimate], ONE_ROW, confidence, source)


def _numbers(*values: float) -> pa.Array:
    return pa.array([value if math.isfinite(value) else None for value in values], pa.float64())


def tabular(
    columns: Sequence[tuple[str, pa.Array | Sequence[Estimate]]], presence: Presence, confidence: float, source: str
) -> Answer:
    """The answer of several columns: arrays are certain (group keys), others are estimates."""
    tables = {
        bound: pa.table([_column(values, bound) for _, values in columns], names=[name for name, _ in columns]) for bound in BOUNDS
    }
    estimates = [each for _, values in columns if not isinstance(values, pa.Array) for each in values]
    return answer_of(tables, estimates, presence, confidence, source)


def _column(values: pa.Array | Sequence[Estimate], bound: str) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    return _numbers(*(getattr(each, bound) for each in values))


@dataclass(frozen=True, slots=True)
class Moment:
    """A synopsis at one version of its table: a reading of each of its trees."""

    definition: Definition
    readings: tuple[TreeReading, ...]
    place: TablePlace

    @property
    def source(self) -> str:
        return f"synopsis {self.definition.name}"

    def query(self, aggregate: str, by: Sequence[str], confidence: float, conditions: Mapping[str, Any]) -> Answer:
        """An aggregate of a measure over the rows that satisfy some conditions, for each group by some columns."""
        schema = self.definition.schema
        (name, column), box = function_and_measure(aggregate), box_of(schema, conditions)
        measure = 0 if name == "rows" else schema.measure(column)
        check_confidence(confidence)
        if not by:
            return single(aggregate, self.estimate(name, box, confidence, measure), confidence, self.source)
        places = [schema.place(each) for each in by]
        groups = self.groups(places, box)
        found = [self.estimate(name, each, confidence, measure) for each in groups.boxes]
        domains = [schema.domains[place] for place in places]
        keys = [
            (domain.name, pa.array([key[at] for key in groups.keys], to_arrow(domain.type))) for at, domain in enumerate(domains)
        ]
        return tabular([*keys, (aggregate, found)], groups.presence, confidence, self.source)

    def estimate(self, aggregate: str, box: Box, confidence: float = 0.95, measure: int = 0) -> Estimate:
        """The estimate for a canonical aggregate of a measure over a box, from the tree that suits it best."""
        found = answer(self._reading_for(box, measure), aggregate, box, confidence)
        if aggregate in ("rows", "count"):
            return found
        return found.divided(self.definition.schema.measures[measure].unit ** (2 if aggregate.startswith("var") else 1))

    def groups(self, dimensions: Sequence[int], box: Box) -> Groups:
        """The groups by some columns of the rows in a box."""
        return groups_in(self.definition.schema.domains, dimensions, box, lambda narrow: self.estimate("rows", narrow))

    def _reading_for(self, box: Box, measure: int) -> TreeReading:
        """The tree of a measure that splits on most of the box's columns, and among these on the fewest others."""
        if len(self.readings) == 1:
            return self.readings[0]
        wanted, shapes = {each.dimension for each in box}, self.definition.shapes
        mine = (place for place, shape in enumerate(shapes) if shape.measure == measure)
        return self.readings[max(mine, key=lambda p: (len(wanted & set(shapes[p].columns)), -len(set(shapes[p].columns) - wanted)))]


@dataclass(frozen=True, slots=True)
class Groups:
    """Keys, the box of each, and which of the groups that there may be these are."""

    keys: list[tuple[Any, ...]]
    boxes: list[Box]
    presence: Presence


def groups_in(domains: Sequence[Domain], dimensions: Sequence[int], box: Box, count: Callable[[Box], Estimate]) -> Groups:
    """The values of some columns that rows in the box have together, with the box narrowed to each; `count` estimates rows.

    Groups that some known row is in are shown, so that none is too many; others that may have rows are counted as unseen.
    """
    found: list[tuple[tuple[Any, ...], Box]] = [((), box)]
    expected = most = 0.0
    for place, dimension in enumerate(dimensions):
        wider, found = found, []
        for key, wide in wider:
            for value, narrow in _split(domains, dimension, wide):
                rows = count(narrow)
                if rows.hard_low >= 1:
                    found.append(((*key, value), narrow))
                elif rows.hard_high != 0:
                    others = math.prod(_size(domains[each]) for each in dimensions[place + 1 :])
                    expected, most = expected + others * _chance(rows), most + others
    presence = Presence(len(found), UnseenRows(expected, most))
    return Groups([key for key, _ in found], [narrow for _, narrow in found], presence)


def _size(domain: Domain) -> int:
    """How many groups a column makes at most, null included."""
    if domain.kind not in ("text", "boolean"):
        raise Unsupported(f"a synopsis groups by text or booleans; {domain.name!r} is {domain.type}")
    return 1 + (len(domain.texts) if domain.kind == "text" else 2)


def _split(domains: Sequence[Domain], dimension: int, box: Box) -> Iterator[tuple[Any, Box]]:
    """All values of a column, each with the box narrowed to it."""
    domain = domains[dimension]
    for coordinate in (MISSING, *map(float, range(_size(domain) - 1))):
        yield domain.value(coordinate), narrowed(box, Condition(dimension, coordinate, coordinate))


def _chance(rows: Estimate) -> float:
    """The chance that a group has a row although none was seen: Laplace's rule, each number of rows being as likely as another."""
    seen = rows.processed + 1.0
    return 1.0 - seen / (seen + rows.hard_high)
