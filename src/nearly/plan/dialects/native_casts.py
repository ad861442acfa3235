"""Spark's ANSI CAST in DuckDB; forms that the engines read differently raise."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.dialects import sql
from nearly.plan.dialects.native_build import cast, guard, instant, not_utc, type_sql
from nearly.plan.dialects.sql import Node
from nearly.plan.expressions import Cast
from nearly.plan.types import (
    DATE,
    DOUBLE,
    INTEGERS,
    LONG,
    MAX_PRECISION,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    decimal,
    decimal_for,
)

EXACT_DOUBLE_DIGITS = 15
"""Decimals of so many digits are told apart as doubles."""

Conversion = Callable[[Node, DataType, DataType], Node]


def convert(call: Cast, node: Node) -> Node:
    """The cast, or Unsupported when the pair is not verified."""
    source, target = call.operand.type, call.type
    if call.safe:
        return _safe(node, source, target)
    if source == NULL:
        return cast(node, target)
    if isinstance(source, Decimal) and isinstance(target, Decimal) and _only_widens(source, target):
        return node
    conversion = CONVERSIONS.get(pair(call))
    if conversion is None:
        raise _unverified("CAST", source, target)
    return conversion(node, source, target)


def pair(call: Cast) -> tuple[str, str]:
    """The kinds of type a cast goes between: one entry of the table."""
    return _kind(call.operand.type), _kind(call.type)


def _only_widens(source: Decimal, target: Decimal) -> bool:
    return source.scale == target.scale and source.precision <= target.precision


def _unverified(word: str, source: DataType, target: DataType) -> Unsupported:
    return Unsupported(f"{word} from {source} to {target} is not in the native kernel's verified set")


def _safe(node: Node, source: DataType, target: DataType) -> Node:
    """TRY_CAST between exact numbers, where null stands for out of range in both engines."""
    if _kind(source) == "integer" and _kind(target) in ("integer", "decimal"):
        return sql.cast(node, type_sql(target), safe=True)
    raise _unverified("TRY_CAST", source, target)


def _kind(type_: DataType) -> str:
    if type_ in INTEGERS:
        return "integer"
    return "decimal" if isinstance(type_, Decimal) else type_.name


def _same(node: Node, source: DataType, target: DataType) -> Node:
    return cast(node, target)


def _truncate(node: Node, source: DataType, target: DataType) -> Node:
    """Spark cuts the fraction off where DuckDB rounds; out of range and NaN raise in both."""
    return cast(sql.function("trunc", node), target)


def _truncate_decimal(node: Node, source: DataType, target: DataType) -> Node:
    """Exact for bigint; Spark goes through double for shorter integers, so values where that matters are left to it."""
    exact = sql.function("trunc", node)
    if target == LONG or (isinstance(source, Decimal) and source.precision <= EXACT_DOUBLE_DIGITS):
        return cast(exact, target)
    through_double = sql.function("trunc", cast(node.copy(), DOUBLE))
    odd = sql.binary(exp.NEQ, cast(exact, DOUBLE), through_double)
    return guard(odd, cast(exact.copy(), target), "a decimal next to a whole number")


def _write_decimal(node: Node, source: DataType, target: DataType) -> Node:
    """DuckDB leaves out the zero before the point when a type has no whole digits."""
    given = decimal_for(source)
    if given.scale == MAX_PRECISION:
        raise _unverified("CAST", source, target)
    return cast(cast(node, decimal(max(given.precision, given.scale + 1), given.scale)), STRING)


def _read_double(node: Node, source: DataType, target: DataType) -> Node:
    """Through the shortest decimal form, as Java does, and rounded HALF_UP from there."""
    return cast(cast(node, STRING), target)


def _write_date(node: Node, source: DataType, target: DataType) -> Node:
    return _in_written_years(node, cast(node.copy(), STRING))


def _write_timestamp(node: Node, source: DataType, target: DataType) -> Node:
    """Local time in the session's zone, without zeros at the end of the fraction."""
    local = cast(node, TIMESTAMP_NTZ)
    return _in_written_years(local, cast(local.copy(), STRING))


def _in_written_years(moment: Node, value: Node) -> Node:
    """Years are written alike from 1 to 9999."""
    low, high = (cast(sql.text(text), DATE) for text in ("0001-01-01", "9999-12-31"))
    odd = sql.binary(exp.Or, sql.binary(exp.LT, moment, low), sql.binary(exp.GT, moment.copy(), high))
    return guard(odd, value, "a year beyond 9999")


def _epoch_seconds(node: Node, source: DataType, target: DataType) -> Node:
    """Whole seconds since 1970, rounded down."""
    micros = sql.function("epoch_us", node)
    below = sql.case([sql.binary(exp.LT, micros, sql.integer(0)), sql.integer(999_999)], sql.integer(0))
    return cast(sql.binary(exp.IntDiv, sql.binary(exp.Sub, micros.copy(), below), sql.integer(1_000_000)), target)


def _midnight(node: Node, source: DataType, target: DataType) -> Node:
    return instant(cast(node, TIMESTAMP_NTZ))


def _to_instant(node: Node, source: DataType, target: DataType) -> Node:
    """Clock times that occur twice are resolved differently, so only zones without such times pass."""
    return guard(not_utc(), cast(node, TIMESTAMP), "local time to instant outside UTC")


def _read_timestamp(node: Node, source: DataType, target: DataType) -> Node:
    plain = _matching("[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?)?", "timestamp")
    return _to_instant(plain(node, source, TIMESTAMP_NTZ), TIMESTAMP_NTZ, target)


def _nonzero(node: Node, source: DataType, target: DataType) -> Node:
    return sql.binary(exp.NEQ, node, sql.integer(0))


def _matching(pattern: str, form: str) -> Conversion:
    """A cast of text that has this plain form; other forms are Spark's to read or to reject."""

    def conversion(node: Node, source: DataType, target: DataType) -> Node:
        odd = exp.Not(this=sql.function("regexp_full_match", node, sql.text(pattern)))
        return guard(odd, cast(node.copy(), target), f"text that is no plain {form}")

    return conversion


_WHOLE = _matching("[+-]?[0-9]{1,18}", "integer")
_POINT = _matching("[+-]?[0-9]{1,18}([.][0-9]{0,18})?", "decimal")
_SCIENTIFIC = _matching("[+-]?[0-9]{1,18}([.][0-9]{0,18})?([eE][+-]?[0-9]{1,2})?", "number")
_CALENDAR = _matching("[0-9]{4}-[0-9]{2}-[0-9]{2}", "date")
_TRUTH = _matching("(?i)true|false", "boolean")

CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("integer", "integer"): _same,
    ("integer", "decimal"): _same,
    ("integer", "double"): _same,
    ("integer", "float"): _same,
    ("integer", "string"): _same,
    ("integer", "boolean"): _nonzero,
    ("decimal", "decimal"): _same,
    ("decimal", "integer"): _truncate_decimal,
    ("decimal", "double"): _same,
    ("decimal", "string"): _write_decimal,
    ("decimal", "boolean"): _nonzero,
    ("float", "double"): _same,
    ("float", "integer"): _truncate,
    ("double", "float"): _same,
    ("double", "decimal"): _read_double,
    ("double", "integer"): _truncate,
    ("double", "boolean"): _nonzero,
    ("float", "boolean"): _nonzero,
    ("boolean", "integer"): _same,
    ("boolean", "decimal"): _same,
    ("boolean", "double"): _same,
    ("boolean", "float"): _same,
    ("boolean", "string"): _same,
    ("string", "integer"): _WHOLE,
    ("string", "decimal"): _POINT,
    ("string", "double"): _SCIENTIFIC,
    ("string", "boolean"): _TRUTH,
    ("string", "date"): _CALENDAR,
    ("date", "string"): _write_date,
    ("date", "timestamp"): _midnight,
    ("timestamp", "timestamp_ntz"): _same,
    ("timestamp_ntz", "timestamp"): _to_instant,
    ("timestamp", "string"): _write_timestamp,
    ("timestamp_ntz", "string"): _write_timestamp,
    ("timestamp", "integer"): _epoch_seconds,
    ("string", "timestamp"): _read_timestamp,
    ("date", "timestamp_ntz"): _same,
    ("timestamp_ntz", "date"): _same,
    ("timestamp", "date"): _same,
}
