"""Columns as coordinates: every value a predicate column can have becomes a float64, in the column's own order.

Numbers are themselves (decimals in units of their last digit), dates count days, timestamps microseconds, booleans are 0 and 1, and
text is the number of its entry in a dictionary (so it has equality but no order). Null lies below everything, NaN above. Whole
numbers beyond 2^53 would fall together and are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearly.algebra.ordered_sets import ONLY_NULL, OrderedSet
from nearly.errors import EngineError, SchemaError, Unsupported
from nearly.plan import types
from nearly.plan.types import DataType
from nearly.plan.values.domains import EXACT_IN_DOUBLES, OrderedDomain, domain_of
from nearly.synopsis.structure.rows import LOWEST, MISSING, Floats

MOST_DIGITS = 18
MOST_TEXTS = 100_000
NOWHERE = (np.inf, -np.inf)
"""A range that holds nothing."""
LARGEST = float(np.finfo(np.float64).max)
ONE_RANGE = "it answers conditions of the form column <op> constant, joined by AND"


def kind_of(name: str, type_: DataType) -> str:
    """How a column of this type is turned into numbers."""
    if types.is_numeric(type_):
        return "number"
    kinds = {types.BOOLEAN: "boolean", types.DATE: "date", types.TIMESTAMP: "timestamp", types.TIMESTAMP_NTZ: "timestamp"}
    if type_ == types.STRING:
        return "text"
    if type_ not in kinds:
        raise Unsupported(
            f"a synopsis cannot filter on column {name!r} of type {type_}; use numbers, dates, times, booleans or text"
        )
    return kinds[type_]


@dataclass(slots=True)
class Domain:
    """One predicate column. The dictionary of a text column grows when new texts are inserted; numbers once given stay."""

    name: str
    type: DataType
    texts: list[str] = field(default_factory=list)
    kind: str = field(init=False)
    ordered: OrderedDomain = field(init=False, repr=False, compare=False)
    _codes: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.kind = kind_of(self.name, self.type)
        self.ordered = domain_of(self.type, "UTC", self.name)
        if self.type == types.LONG:  # larger ones are refused below
            self.ordered = replace(self.ordered, first=-EXACT_IN_DOUBLES, end=EXACT_IN_DOUBLES + 1)
        self._codes = {text: code for code, text in enumerate(self.texts)}

    def add_texts(self, texts: Iterable[str]) -> None:
        """Give new texts the next numbers."""
        new = [text for text in dict.fromkeys(texts) if text not in self._codes]
        self._refuse_many(len(new))
        self._codes |= {text: len(self.texts) + place for place, text in enumerate(new)}
        self.texts += new

    def _refuse_many(self, new: int) -> None:
        if len(self.texts) + new > MOST_TEXTS:
            raise Unsupported(
                f"column {self.name!r} has more than {MOST_TEXTS:,} different texts, and a synopsis keeps all; use a coarser column"
            )

    def forget(self, count: int) -> None:
        """Keep the first `count` texts only: no row has the others."""
        for text in self.texts[count:]:
            del self._codes[text]
        del self.texts[count:]

    def coordinates(self, column: pa.Array | pa.ChunkedArray) -> Floats:
        """The coordinates of a column; texts must be in the dictionary."""
        if self.kind == "text":
            codes = pc.index_in(column, value_set=pa.array(self.texts, pa.string()))
            if codes.null_count != column.null_count:
                raise EngineError(
                    f"a text of column {self.name!r} has no number, although it should; drop the synopsis, build it again"
                )
            return as_floats(codes)
        found = unscaled(column) if isinstance(self.type, types.Decimal) else as_floats(column)
        if self.kind == "number":
            _refuse_unrepresentable(self.name, found, column.null_count)
        elif self.kind == "timestamp":
            _refuse_rounded(self.name, found, column)
        if self.type in types.FRACTIONS:
            nan = as_mask(pc.is_nan(column))
            found = np.where(nan, np.inf, found)
        return found

    def check(self, column: pa.Array | pa.ChunkedArray) -> None:
        """Raise what `coordinates` would, were the texts learnt."""
        if self.kind != "text":
            self.coordinates(column)
        else:
            self._refuse_many(len(self.new_texts(column)))

    def new_texts(self, column: pa.Array | pa.ChunkedArray) -> list[str]:
        """The different texts of a column that have no number yet, in order of first appearance."""
        if self.kind != "text":
            return []
        return [text for text in pc.unique(column).to_pylist() if text is not None and text not in self._codes]

    def between(self, low: Any, high: Any) -> tuple[float, float]:
        """The range of coordinates of the values from one constant to another, both included; None leaves an end open. No null is
        in it. Law: a value lies in the range exactly when it lies between the constants."""
        values = self.ordered.values
        for end, compare in ((low, self.ordered.at_least), (high, self.ordered.at_most)):
            try:
                values = values if end is None else values & compare(bool(end) if self.kind == "boolean" and end in (0, 1) else end)
            except SchemaError as trouble:
                raise SchemaError(f"column {self.name!r} is {self.type}; {end!r} is no value of it") from trouble
        return self.range_of(values)

    def range_of(self, values: OrderedSet) -> tuple[float, float]:
        """The range of coordinates that holds these values and no others."""
        if values.is_empty:
            return NOWHERE
        if values == ONLY_NULL:
            return MISSING, MISSING
        if len(values.pieces) != 1 or values.null:
            raise Unsupported(f"column {self.name!r} is asked for several ranges; {ONE_RANGE}")
        if values == self.ordered.values:
            return LOWEST, np.inf
        if self.kind == "text":
            if self.ordered.last(values) != values.first:
                raise Unsupported(f"column {self.name!r} is text, which a synopsis compares for equality only; give one value")
            code = self._codes.get(values.first)
            return NOWHERE if code is None else (float(code), float(code))
        first, last = self._edge(values.first, upwards=True), self._edge(values.end - 1, upwards=False)
        return (first, last) if first <= last else NOWHERE

    def _edge(self, rank: int, *, upwards: bool) -> float:
        """The least coordinate at or above a rank, or the greatest at or below it; rows hold no infinities, and NaN is on top."""
        if self.type in types.FRACTIONS:
            value = float(self.ordered.value(rank))
            if np.isnan(value):
                return np.inf
            return float(np.clip(value, LOWEST, np.inf)) if upwards else float(np.clip(value, -np.inf, LARGEST))
        near = float(rank)
        if near < rank if upwards else near > rank:
            near = float(np.nextafter(near, np.inf if upwards else -np.inf))
        return near

    def value(self, coordinate: float) -> Any:
        """The value of a coordinate. Law: `between(value(c), value(c)) == (c, c)`."""
        if coordinate == MISSING:
            return None
        if self.kind == "text":
            return self.texts[int(coordinate)]
        exact = self.type not in types.FRACTIONS and np.isfinite(coordinate)
        return self.ordered.value(int(coordinate)) if exact else coordinate


def _refuse_unrepresentable(name: str, found: Floats, nulls: int) -> None:
    finite = found[np.isfinite(found)]
    if finite.size and np.abs(finite).max() > EXACT_IN_DOUBLES:
        raise Unsupported(f"column {name!r} has values beyond 2^53, which a synopsis cannot tell apart; cast it to a smaller range")
    if np.isposinf(found).any() or int(np.isneginf(found).sum()) != nulls:
        raise SchemaError(f"column {name!r} holds an infinite value; filter it out or replace it")


def _refuse_rounded(name: str, found: Floats, column: pa.Array | pa.ChunkedArray) -> None:
    """Microseconds after the year 2255 may have no number of their own."""
    finite = np.isfinite(found)
    if np.abs(found[finite]).max(initial=0.0) > EXACT_IN_DOUBLES:
        plain = pc.fill_null(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()), 0)
        if (found[finite].astype(np.int64) != np.asarray(plain)[finite]).any():
            raise Unsupported(
                f"column {name!r} has times that a synopsis cannot tell apart, before 1684 or after 2255 to the microsecond"
            )


def as_mask(array: pa.Array | pa.ChunkedArray) -> Any:
    """A boolean column as numpy, null as False."""
    return np.asarray(pc.fill_null(array, False)).astype(bool)


def unscaled(column: pa.Array | pa.ChunkedArray) -> Floats:
    """A decimal column in units of its last digit, exactly, with nulls at `MISSING`; its values must fit in 64 bits."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.type.precision > MOST_DIGITS:
        raise Unsupported(f"a synopsis reads decimals of at most {MOST_DIGITS} digits, not {column.type}; cast the column")
    words = np.frombuffer(column.cast(pa.decimal128(column.type.precision, column.type.scale)).buffers()[1], np.int64)
    found: Floats = words[2 * column.offset : 2 * (column.offset + len(column)) : 2].astype(np.float64)
    return np.where(np.asarray(column.is_null()), MISSING, found) if column.null_count else found


def as_floats(column: pa.Array | pa.ChunkedArray) -> Floats:
    """A column as float64 with nulls at `MISSING`; dates as days, times as microseconds."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_decimal(column.type) and column.type.precision <= MOST_DIGITS:
        scaled: Floats = unscaled(column) / 10.0**column.type.scale
        return scaled
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    elif pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    plain = column.cast(pa.float64(), safe=False)
    if plain.null_count:
        plain = pc.fill_null(plain, MISSING)
    return np.asarray(plain, dtype=np.float64)


def domains_for(columns: Sequence[tuple[str, DataType]]) -> list[Domain]:
    """The domains of some columns; one whose type cannot be filtered on is an error."""
    return [Domain(name, type_) for name, type_ in columns]
