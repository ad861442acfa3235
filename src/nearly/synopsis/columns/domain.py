"""Columns as coordinates: every value a predicate column can have becomes a float64, in the column's own order.

Numbers are themselves (decimals in units of their last digit), dates count days, timestamps microseconds, booleans are 0 and 1, and
text is the number of its entry in a dictionary (so it has equality but no order). Null lies below everything, NaN above. Whole
numbers beyond 2^53 would fall together and are refused.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearly.errors import SchemaError, Unsupported
from nearly.plan import types
from nearly.plan.types import DataType
from nearly.synopsis.structure.rows import LOWEST, MISSING, Floats

LARGEST_WHOLE = 2.0**53
MOST_DIGITS = 18
MOST_TEXTS = 100_000
NOWHERE = (np.inf, -np.inf)
"""A range that holds nothing."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


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
    _codes: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.kind = kind_of(self.name, self.type)
        self._codes = {text: code for code, text in enumerate(self.texts)}

    def add_texts(self, texts: Iterable[str]) -> None:
        """Give new texts the next numbers."""
        for text in texts:
            if text not in self._codes:
                self._codes[text] = len(self.texts)
                self.texts.append(text)
        if len(self.texts) > MOST_TEXTS:
            raise Unsupported(
                f"column {self.name!r} has more than {MOST_TEXTS:,} different texts, and a synopsis keeps all; use a coarser column"
            )

    def coordinates(self, column: pa.Array | pa.ChunkedArray) -> Floats:
        """The coordinates of a column; texts must be in the dictionary."""
        if self.kind == "text":
            codes = pc.index_in(column, value_set=pa.array(self.texts, pa.string()))
            return as_floats(codes)
        found = unscaled(column) if isinstance(self.type, types.Decimal) else as_floats(column)
        if self.kind == "number":
            _refuse_unrepresentable(self.name, found, column.null_count)
        if self.type in types.FRACTIONS:
            nan = as_mask(pc.is_nan(column))
            found = np.where(nan, np.inf, found)
        return found

    def new_texts(self, column: pa.Array | pa.ChunkedArray) -> list[str]:
        """The different texts of a column that have no number yet, in order of first appearance."""
        if self.kind != "text":
            return []
        return [text for text in pc.unique(column).to_pylist() if text is not None and text not in self._codes]

    def coordinate(self, value: Any) -> float | None:
        """The coordinate of one constant; None for a text that no row has. A constant of another kind is an error."""
        if value is None:
            return float(MISSING)
        if self.kind == "text":
            if not isinstance(value, str):
                raise SchemaError(f"column {self.name!r} holds text; {value!r} is a {type(value).__name__}")
            code = self._codes.get(value)
            return None if code is None else float(code)
        return self._number(value)

    def _number(self, value: Any) -> float:
        try:
            if self.kind in ("date", "timestamp"):
                return _moment(value, days=self.kind == "date")
            if isinstance(self.type, types.Decimal) and not isinstance(value, str):
                return float((value if isinstance(value, Decimal) else Decimal(repr(value))).scaleb(self.type.scale))
            return float("no number" if isinstance(value, str) else value)
        except (TypeError, ValueError, OverflowError, InvalidOperation) as trouble:
            raise SchemaError(f"column {self.name!r} is {self.type}; {value!r} is no value of it") from trouble

    def span(self, low: Any, high: Any) -> tuple[float, float]:
        """The range of coordinates from one constant to another, both included; None leaves an end open. No null is in it."""
        if self.kind == "text" and not (low == high and low is not None):
            raise Unsupported(f"column {self.name!r} is text, which a synopsis compares for equality only; give one value")
        first = LOWEST if low is None else self.coordinate(low)
        last = np.inf if high is None else self.coordinate(high)
        return NOWHERE if first is None or last is None else (first, last)

    def value(self, coordinate: float) -> Any:
        """The value of a coordinate. Law: `coordinate(value(c)) == c`."""
        if coordinate == MISSING:
            return None
        match self.kind:
            case "text":
                return self.texts[int(coordinate)]
            case "boolean":
                return bool(coordinate)
            case "date" if np.isfinite(coordinate):
                return dt.date(1970, 1, 1) + dt.timedelta(days=float(coordinate))
            case "timestamp" if np.isfinite(coordinate):
                moment = _EPOCH + dt.timedelta(microseconds=float(coordinate))
                return moment if self.type == types.TIMESTAMP else moment.replace(tzinfo=None)
        if self.type in types.INTEGERS and np.isfinite(coordinate):
            return int(coordinate)
        if isinstance(self.type, types.Decimal) and np.isfinite(coordinate):
            return Decimal(int(coordinate)).scaleb(-self.type.scale)
        return coordinate


def _moment(value: Any, days: bool) -> float:
    """A date or time, or its ISO text, in days or microseconds since 1970; times without zone are UTC."""
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value)
    if not isinstance(value, dt.date):
        raise TypeError
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if value.tzinfo is None:
        value = value.replace(tzinfo=dt.UTC)
    since = value - _EPOCH
    return float(since / dt.timedelta(days=1) if days else since / dt.timedelta(microseconds=1))


def _refuse_unrepresentable(name: str, found: Floats, nulls: int) -> None:
    finite = found[np.isfinite(found)]
    if finite.size and np.abs(finite).max() > LARGEST_WHOLE:
        raise Unsupported(f"column {name!r} has values beyond 2^53, which a synopsis cannot tell apart; cast it to a smaller range")
    if np.isposinf(found).any() or int(np.isneginf(found).sum()) != nulls:
        raise SchemaError(f"column {name!r} holds an infinite value; filter it out or replace it")


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
