"""Spark's ANSI CAST in DuckDB; forms that the engines read differently raise."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.dialects import sql
from nearly.plan.dialects.native_build import cast, guard, type_sql
from nearly.plan.dialects.sql import Node
from nearly.plan.expressions import Cast
from nearly.plan.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    FRACTIONS,
    INTEGERS,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    is_numeric,
)

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
    conversion = _CONVERSIONS.get((_kind(source), _kind(target)))
    if conversion is None:
        raise _unverified("CAST", source, target)
    return conversion(node, source, target)


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

_CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("integer", "integer"): _same,
    ("integer", "decimal"): _same,
    ("integer", "double"): _same,
    ("integer", "float"): _same,
    ("integer", "string"): _same,
    ("integer", "boolean"): _nonzero,
    ("decimal", "decimal"): _same,
    ("decimal", "integer"): _truncate,
    ("decimal", "double"): _same,
    ("decimal", "string"): _same,
    ("decimal", "boolean"): _nonzero,
    ("float", "double"): _same,
    ("float", "integer"): _truncate,
    ("double", "float"): _same,
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
    ("date", "string"): _same,
    ("date", "timestamp"): _same,
    ("date", "timestamp_ntz"): _same,
    ("timestamp_ntz", "date"): _same,
    ("timestamp", "date"): _same,
}
