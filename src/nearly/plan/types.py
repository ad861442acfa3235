"""Column types, with Spark's names and Spark's rules for decimals and for a common type."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from nearly.errors import SchemaError

MAX_PRECISION = 38
MIN_ADJUSTED_SCALE = 6
"""Digits after the point that Spark keeps when a decimal result would need more than 38 digits."""


@dataclass(frozen=True, slots=True)
class DataType:
    """A type named as Spark names it in `simpleString`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal(DataType):
    """`decimal(precision, scale)`; build it with `decimal`."""

    precision: int
    scale: int

    @property
    def whole_digits(self) -> int:
        return self.precision - self.scale


@dataclass(frozen=True, slots=True)
class IntervalType(DataType):
    """An ANSI interval of months or of microseconds; `fields` is Spark's qualifier, as in `day to second`."""

    unit: str
    fields: str


BOOLEAN = DataType("boolean")
BYTE = DataType("tinyint")
SHORT = DataType("smallint")
INT = DataType("int")
LONG = DataType("bigint")
FLOAT = DataType("float")
DOUBLE = DataType("double")
STRING = DataType("string")
BINARY = DataType("binary")
DATE = DataType("date")
TIMESTAMP = DataType("timestamp")
TIMESTAMP_NTZ = DataType("timestamp_ntz")
NULL = DataType("void")

INTEGERS = (BYTE, SHORT, INT, LONG)
FRACTIONS = (FLOAT, DOUBLE)
DATETIMES = (DATE, TIMESTAMP_NTZ, TIMESTAMP)

_ALIASES = {
    "byte": BYTE, "short": SHORT, "integer": INT, "long": LONG, "real": FLOAT, "timestamp_ltz": TIMESTAMP,
    "bool": BOOLEAN,
}  # fmt: skip
_INTEGER_DIGITS = {BYTE: 3, SHORT: 5, INT: 10, LONG: 20}
_ARROW = {
    BOOLEAN: pa.bool_(), BYTE: pa.int8(), SHORT: pa.int16(), INT: pa.int32(), LONG: pa.int64(),
    FLOAT: pa.float32(), DOUBLE: pa.float64(), STRING: pa.string(), BINARY: pa.binary(), DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", "UTC"), TIMESTAMP_NTZ: pa.timestamp("us"), NULL: pa.null(),
}  # fmt: skip
_BY_NAME = {each.name: each for each in _ARROW} | _ALIASES


def decimal(precision: int, scale: int) -> Decimal:
    """A decimal type, checked against Spark's limits."""
    if not 0 <= scale <= precision <= MAX_PRECISION or precision < 1:
        limits = f"1 <= precision <= {MAX_PRECISION}, 0 <= scale <= precision"
        raise SchemaError(f"decimal({precision},{scale}) is out of range: {limits}")
    return Decimal(f"decimal({precision},{scale})", precision, scale)


def adjusted_decimal(precision: int, scale: int) -> Decimal:
    """The decimal type Spark gives a result that needs `precision` and `scale`, when that may exceed 38 digits.

    Whole digits win over fractional ones, but at least `min(scale, 6)` fractional digits stay.

    >>> str(adjusted_decimal(44, 6))
    'decimal(38,6)'
    """
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    whole = precision - scale
    kept = max(MAX_PRECISION - whole, min(scale, MIN_ADJUSTED_SCALE))
    return decimal(MAX_PRECISION, kept)


def bounded_decimal(precision: int, scale: int) -> Decimal:
    """Spark's other cut, used for sums and averages: both numbers are capped at 38."""
    return decimal(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def month_interval(fields: str = "year to month") -> IntervalType:
    return IntervalType(f"interval {fields}", "month", fields)


def day_interval(fields: str = "day to second") -> IntervalType:
    return IntervalType(f"interval {fields}", "microsecond", fields)


def scale_of(type_: DataType) -> int:
    """Digits after the point that every value of the type has."""
    return type_.scale if isinstance(type_, Decimal) else 0


def is_numeric(type_: DataType) -> bool:
    return type_ in INTEGERS or type_ in FRACTIONS or isinstance(type_, Decimal)


def is_simple(type_: DataType) -> bool:
    """Whether the type is one of those this module knows, not an opaque one such as an array."""
    return type_ in _ARROW or isinstance(type_, Decimal | IntervalType)


def decimal_for(type_: DataType) -> Decimal:
    """The decimal type that holds every value of an integer or decimal type.

    >>> str(decimal_for(INT))
    'decimal(10,0)'
    """
    if isinstance(type_, Decimal):
        return type_
    return decimal(_INTEGER_DIGITS[type_], 0)


def wider_decimal(left: Decimal, right: Decimal) -> Decimal:
    """The decimal type of both, as in UNION, CASE and comparisons; beyond 38 digits the whole ones win.

    >>> str(wider_decimal(decimal(38, 0), decimal(38, 10)))
    'decimal(38,0)'
    """
    whole = max(left.whole_digits, right.whole_digits)
    scale = min(max(left.scale, right.scale), MAX_PRECISION - whole)
    return decimal(whole + scale, scale)


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The type both sides are cast to in CASE, COALESCE, IN, UNION and comparisons under ANSI rules, or None."""
    if left == right:
        return left
    if left == NULL:
        return right
    if right == NULL:
        return left
    if is_numeric(left) and is_numeric(right):
        return _common_numeric(left, right)
    if left in DATETIMES and right in DATETIMES:
        return max(left, right, key=DATETIMES.index)
    if STRING in (left, right):
        other = right if left == STRING else left
        return _common_with_string(other)
    return None


def can_store(value: DataType, column: DataType) -> bool:
    """Whether INSERT, UPDATE and MERGE cast a value to the type of a column, by Spark's ANSI rule of store assignment.

    >>> can_store(DOUBLE, INT), can_store(STRING, INT), can_store(INT, STRING)
    (True, False, True)
    """
    if value in (column, NULL):
        return True
    if is_numeric(value) and is_numeric(column):
        return True
    return (column == STRING and is_simple(value)) or (value in DATETIMES and column in DATETIMES)


def _common_numeric(left: DataType, right: DataType) -> DataType:
    """The common type of two different numeric types; a float beside anything else makes a double."""
    if left in FRACTIONS or right in FRACTIONS:
        return DOUBLE
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return wider_decimal(decimal_for(left), decimal_for(right))
    return max(left, right, key=INTEGERS.index)


def _common_with_string(other: DataType) -> DataType | None:
    """Under ANSI rules a string gives way: to bigint beside integers, to double beside fractions."""
    if other in INTEGERS:
        return LONG
    if is_numeric(other):
        return DOUBLE
    return other if other in (*DATETIMES, BOOLEAN, BINARY) else None


def from_name(text: str) -> DataType:
    """The type of a Spark `simpleString`; types this library does not compute with stay opaque.

    >>> from_name("decimal(15,2)").scale
    2
    >>> is_simple(from_name("array<int>"))
    False
    """
    lowered = text.strip().lower()
    if lowered.startswith(("decimal", "dec(", "numeric")):
        return _decimal_from_name(lowered)
    if lowered.startswith(("varchar", "char")):
        return STRING
    if lowered.startswith("interval"):
        fields = lowered.removeprefix("interval").strip()
        return month_interval(fields) if fields.startswith(("year", "month")) else day_interval(fields)
    return _BY_NAME.get(lowered) or DataType(text.strip())


def _decimal_from_name(text: str) -> Decimal:
    if "(" not in text:
        return decimal(10, 0)
    numbers = [int(part) for part in text[text.index("(") + 1 : text.index(")")].split(",")]
    return decimal(numbers[0], numbers[1] if len(numbers) > 1 else 0)


def to_arrow(type_: DataType) -> pa.DataType:
    """The Arrow type in which Spark returns values of this type."""
    if isinstance(type_, Decimal):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, IntervalType):
        return pa.int32() if type_.unit == "month" else pa.duration("us")
    if type_ not in _ARROW:
        raise SchemaError(f"type {type_} has no fixed Arrow form")
    return _ARROW[type_]


def from_arrow(type_: pa.DataType) -> DataType:
    """The Spark type as which a column of this Arrow type reads; unsigned integers widen as Spark widens them."""
    if pa.types.is_decimal(type_):
        return decimal(type_.precision, type_.scale)
    if pa.types.is_timestamp(type_):
        return TIMESTAMP if type_.tz else TIMESTAMP_NTZ
    if pa.types.is_large_string(type_) or type_ == pa.string_view():
        return STRING
    if pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return BINARY
    if pa.types.is_dictionary(type_):
        return from_arrow(type_.value_type)
    unsigned = {pa.uint8(): SHORT, pa.uint16(): INT, pa.uint32(): LONG, pa.uint64(): decimal(20, 0)}
    if type_ in unsigned:
        return unsigned[type_]
    for name, arrow in _ARROW.items():
        if arrow == type_:
            return name
    return DataType(str(type_))
