"""From Arrow tables to `Rows`: coordinates, the measure, and the identity that lets a delete find its row; conditions to boxes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearly.errors import SchemaError, Unsupported, unknown
from nearly.plan import types
from nearly.plan.types import DataType
from nearly.plan.values.domains import EXACT_IN_DOUBLES
from nearly.synopsis.structure.domain import Domain, as_floats, unscaled
from nearly.synopsis.structure.rows import MISSING, Floats, Hashes, Mask, Rows, hash_columns, mix, tickets_of
from nearly.synopsis.structure.tree import Box, Condition

LARGEST_VALUE = 1e70
"""Fourth powers of values are added up."""


@dataclass(frozen=True, slots=True)
class MeasuredColumn:
    """A column that is aggregated."""

    name: str
    type: DataType

    def __post_init__(self) -> None:
        if not types.is_numeric(self.type):
            raise SchemaError(f"the measure {self.name!r} is {self.type}; a synopsis sums numbers")

    @property
    def unit(self) -> float:
        """How many of the numbers that are kept make one of the measure: decimals are kept in units of their last digit."""
        return 10.0**self.type.scale if isinstance(self.type, types.Decimal) else 1.0


@dataclass(slots=True)
class Schema:
    """The columns of a synopsis: predicate columns, the measures, and the key that tells rows apart.

    Without a key rows are told apart by all of their values here, so a delete removes some row with equal values.
    """

    domains: list[Domain]
    measures: tuple[MeasuredColumn, ...]
    key: tuple[str, ...] = ()
    seed: int = 0
    _places: dict[str, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._places = {domain.name.lower(): place for place, domain in enumerate(self.domains)}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(domain.name for domain in self.domains)

    @property
    def measured(self) -> tuple[str, ...]:
        """The names of the measures."""
        return tuple(each.name for each in self.measures)

    @property
    def types(self) -> dict[str, DataType]:
        """The types of the columns that are filtered on or aggregated."""
        return {each.name: each.type for each in self.domains} | {each.name: each.type for each in self.measures}

    @property
    def columns(self) -> list[str]:
        """The columns to read, each once."""
        return list(dict.fromkeys([*self.names, *self.measured, *self.key]))

    def place(self, name: str) -> int:
        """The dimension of a predicate column, in any case."""
        if name.lower() not in self._places:
            raise unknown("predicate column", name, self.names)
        return self._places[name.lower()]

    def measure(self, name: str | None) -> int:
        """The place of a measure, in any case; it may go without a name when there is no other."""
        if name is None and len(self.measures) > 1:
            raise SchemaError(f"say which measure is meant, such as sum({self.measured[0]}); there are {', '.join(self.measured)}")
        lowered = [each.lower() for each in self.measured]
        if name is not None and name.lower() not in lowered:
            raise unknown("measure", name, self.measured)
        return 0 if name is None else lowered.index(name.lower())

    def rows(self, table: pa.Table | pa.RecordBatch, tickets: Hashes | None = None) -> Rows:
        """The rows of a table. `tickets` are random words for tables without a key, and their identity until `identified`."""
        measures = [measured(name, table.column(name)) for name in self.measured]
        values = measures[0] if len(measures) == 1 else np.array(measures)
        lines = [domain.coordinates(table.column(domain.name)) for domain in self.domains]
        coordinates = np.array(lines).reshape(len(lines), table.num_rows)
        if self.key:
            identity = hash_columns([_words(table.column(name)) for name in self.key])
            return Rows(coordinates, values, identity, tickets_of(identity, self.seed))
        if tickets is not None:
            return Rows(coordinates, values, tickets, tickets_of(tickets, self.seed))
        identity = hash_columns([*lines, *measures])
        return Rows(coordinates, values, identity, tickets_of(identity, self.seed))

    def identified(self, rows: Rows) -> Rows:
        """Rows that were read with random words, with the identity by which deletes find them."""
        if self.key:
            return rows
        return replace(rows, identity=hash_columns([*rows.coordinates, *np.atleast_2d(rows.values)]))

    def check(self, table: pa.Table) -> None:
        """Raise an error when rows cannot be held."""
        for name in self.measured:
            measured(name, table.column(name))
        for domain in self.domains:
            domain.check(table.column(domain.name))

    @contextmanager
    def learning(self, table: pa.Table | pa.RecordBatch) -> Iterator[None]:
        """Take new texts into the dictionaries, for good when the block ends without an error."""
        known = [len(domain.texts) for domain in self.domains]
        try:
            for domain in self.domains:
                domain.add_texts(domain.new_texts(table.column(domain.name)))
            yield
        except BaseException:
            for domain, count in zip(self.domains, known, strict=True):
                domain.forget(count)
            raise

    def copied(self) -> Schema:
        """The same, for somebody who must not see texts that come later."""
        return replace(self, domains=[Domain(each.name, each.type, list(each.texts)) for each in self.domains])

    def not_finite(self, table: pa.Table) -> Mask:
        """Which rows have a measure that is NaN or infinite, or a coordinate that is infinite."""
        bad = np.zeros(table.num_rows, bool)
        for name in (*self.names, *self.measured):
            column = table.column(name)
            if pa.types.is_floating(column.type):
                numbers = np.asarray(pc.fill_null(column, 0.0))
                bad |= ~np.isfinite(numbers) if name in self.measured else np.isinf(numbers)
        return bad


def measured(name: str, column: pa.Array | pa.ChunkedArray) -> Floats:
    """The measure, decimals in units of their last digit: NaN for null; NaN or infinity in the data is an error."""
    found = unscaled(column) if pa.types.is_decimal(column.type) else as_floats(column)
    null = found == MISSING
    if column.null_count != int(null.sum()) or np.isnan(found).any() or np.isposinf(found).any():
        raise SchemaError(
            f"the measure {name!r} holds NaN or infinity, whose sums mean nothing; filter such rows out or replace them"
        )
    largest = np.abs(found[~null]).max(initial=0.0)
    if largest > (LARGEST_VALUE if pa.types.is_floating(column.type) else EXACT_IN_DOUBLES):
        raise Unsupported(f"the measure {name!r} holds {largest:g}; whole ones are added up to 2^53, others to {LARGEST_VALUE:g}")
    return np.where(null, np.nan, found) if column.null_count else found


def row_numbers(file: int, first_row: int, count: int) -> Hashes:
    """Words that differ for every row of every file."""
    base = mix(np.full(1, file, np.uint64))
    return mix(base ^ np.arange(first_row, first_row + count, dtype=np.uint64))


def _words(column: pa.Array | pa.ChunkedArray) -> Hashes:
    """A key column as 64-bit words, equal exactly for equal values (texts: with overwhelming probability)."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_integer(column.type):
        nulls = np.asarray(column.is_null())
        words = np.asarray(column.fill_null(0)).astype(np.int64).view(np.uint64)
        return np.where(nulls, np.uint64(0x5BD1E995), words)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        objects = column.to_numpy(zero_copy_only=False)
        from pandas import util  # noqa: PLC0415  loading it takes longer than a first answer

        hashed: Hashes = util.hash_array(objects, categorize=False)
        return hashed
    return np.ascontiguousarray(as_floats(column)).view(np.uint64)


PAIR = 2


def box_of(schema: Schema, conditions: Mapping[str, Any]) -> Box:
    """The box of `column=value` and `column=(low, high)` conditions; an end of None is open, a value of None means IS NULL."""
    found: dict[int, Condition] = {}
    for name, wanted in conditions.items():
        place = schema.place(name)
        if place in found:
            raise SchemaError(f"column {name!r} has two conditions; give one range")
        domain = schema.domains[place]
        if isinstance(wanted, tuple | list):
            if len(wanted) != PAIR:
                raise SchemaError(f"{name}={wanted!r}: a range is a pair (low, high), either of them None when open")
            found[place] = Condition(place, *domain.between(*wanted))
        elif wanted is None:
            found[place] = Condition(place, MISSING, MISSING)
        else:
            found[place] = Condition(place, *domain.between(wanted, wanted))
    return tuple(found.values())


def narrowed(box: Box, extra: Condition) -> Box:
    """The box with one more condition."""
    for each in box:
        if each.dimension == extra.dimension:
            met = Condition(each.dimension, max(each.low, extra.low), min(each.high, extra.high))
            return tuple(met if other is each else other for other in box)
    return (*box, extra)
