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
from fractions import Fraction
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
LARGEST = float(np.finfo(np.float64).max)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_MICROSECONDS_A_DAY = 86_400_000_000


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

    def forget(self, count: int) -> None:
        """Keep the first `count` texts only: the numbers of the others were never written down."""
        for text in self.texts[count:]:
            del self._codes[text]
        del self.texts[count:]

    def coordinates(self, column: pa.Array | pa.ChunkedArray) -> Floats:
        """The coordinates of a column; texts must be in the dictionary."""
        if self.kind == "text":
            codes = pc.index_in(column, value_set=pa.array(self.texts, pa.string()))
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

    def unknown(self, column: pa.Array | pa.ChunkedArray) -> Any:
        """Which values are texts without a number: no row that was ever taken has one of them."""
        if self.kind != "text":
            return np.zeros(len(column), bool)
        known = pc.is_in(column, value_set=pa.array(self.texts, pa.string()))
        return ~as_mask(known) & as_mask(pc.is_valid(column))

    def new_texts(self, column: pa.Array | pa.ChunkedArray) -> list[str]:
        """The different texts of a column that have no number yet, in order of first appearance."""
        if self.kind != "text":
            return []
        return [text for text in pc.unique(column).to_pylist() if text is not None and text not in self._codes]

    def between(self, low: Any, high: Any, *, above: bool = False, below: bool = False) -> tuple[float, float]:
        """The range of coordinates of the values from one constant to another; None leaves an end open, `above` and `below` leave
        the ends themselves out. No null is in it. Law: a value lies in the range exactly when it satisfies the comparisons."""
        if self.kind == "text":
            return self._one_text(low, high, strict=above or below)
        if above and isinstance(low, float) and np.isnan(low):
            return NOWHERE
        first = LOWEST if low is None else self._edge(low, strict=above, upwards=True)
        last = np.inf if high is None else self._edge(high, strict=below, upwards=False)
        return (first, last) if first <= last else NOWHERE

    def _one_text(self, low: Any, high: Any, *, strict: bool) -> tuple[float, float]:
        if strict or low is None or low != high:
            raise Unsupported(f"column {self.name!r} is text, which a synopsis compares for equality only; give one value")
        if not isinstance(low, str):
            raise SchemaError(f"column {self.name!r} holds text; {low!r} is a {type(low).__name__}")
        code = self._codes.get(low)
        return NOWHERE if code is None else (float(code), float(code))

    def _edge(self, value: Any, *, strict: bool, upwards: bool) -> float:
        """The least coordinate at or above a constant, or the greatest at or below it; beyond it when `strict`."""
        towards = np.inf if upwards else -np.inf
        exact = self._exact(value)
        if isinstance(exact, float):
            return _endless(exact, strict=strict, upwards=upwards)
        try:
            near = float(exact)
        except OverflowError:
            near = np.inf if exact > 0 else LOWEST
        outside = Fraction(near) < exact if upwards else Fraction(near) > exact if np.isfinite(near) else False
        if outside or (strict and np.isfinite(near) and Fraction(near) == exact):
            near = float(np.nextafter(near, towards))
        return near

    def _exact(self, value: Any) -> Fraction | float:
        """A constant as an exact number of units; a float when it is infinite or NaN."""
        try:
            if self.kind in ("date", "timestamp"):
                return _moment(value, days=self.kind == "date")
            if isinstance(value, str) or value is None:
                raise TypeError  # noqa: TRY301  (told below)
            if isinstance(value, float) and not np.isfinite(value):
                return value
            if isinstance(self.type, types.Decimal):
                number = value if isinstance(value, Decimal | int) else Decimal(repr(value))
                return Fraction(number) * Fraction(10) ** self.type.scale
            return Fraction(value)
        except (TypeError, ValueError, OverflowError, InvalidOperation) as trouble:
            raise SchemaError(f"column {self.name!r} is {self.type}; {value!r} is no value of it") from trouble

    def value(self, coordinate: float) -> Any:
        """The value of a coordinate. Law: `between(value(c), value(c)) == (c, c)`."""
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


def _moment(value: Any, days: bool) -> Fraction:
    """A date or time, or its ISO text, in days or microseconds since 1970; times without zone are UTC."""
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value)
    if not isinstance(value, dt.date):
        raise TypeError
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    if value.tzinfo is None:
        value = value.replace(tzinfo=dt.UTC)
    return Fraction((value - _EPOCH) // _MICROSECOND, _MICROSECONDS_A_DAY if days else 1)


def _endless(value: float, *, strict: bool, upwards: bool) -> float:
    """The edge at an infinity or NaN, which is the greatest of all; rows hold no infinities."""
    if value == -np.inf:
        return LOWEST if upwards else -np.inf
    if upwards:
        return np.inf
    return np.inf if np.isnan(value) and not strict else LARGEST


def _refuse_unrepresentable(name: str, found: Floats, nulls: int) -> None:
    finite = found[np.isfinite(found)]
    if finite.size and np.abs(finite).max() > LARGEST_WHOLE:
        raise Unsupported(f"column {name!r} has values beyond 2^53, which a synopsis cannot tell apart; cast it to a smaller range")
    if np.isposinf(found).any() or int(np.isneginf(found).sum()) != nulls:
        raise SchemaError(f"column {name!r} holds an infinite value; filter it out or replace it")


def _refuse_rounded(name: str, found: Floats, column: pa.Array | pa.ChunkedArray) -> None:
    """Microseconds after the year 2255 may have no number of their own."""
    finite = np.isfinite(found)
    if np.abs(found[finite]).max(initial=0.0) > LARGEST_WHOLE:
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
