"""Spark's ANSI CAST in DuckDB; forms that the engines read differently raise."""

from __future__ import annotations

from collections.abc import Callable

from nearly.errors import Unsupported
from nearly.plan.dialects import sql
from nearly.plan.dialects.native_build import NOT_UTC, cast, guard, instant, tree, type_name, type_sql
from nearly.plan.dialects.sql import Node
from nearly.plan.expressions import Cast
from nearly.plan.types import INTEGERS, LONG, MAX_PRECISION, NULL, TIMESTAMP_NTZ, DataType, Decimal, decimal, decimal_for

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


def _written(text: str) -> Conversion:
    """A cast as an expression over the value x, in which `TYPE` stands for the type it is cast to."""
    return lambda node, _source, target: tree(text.replace("TYPE", type_name(target)), x=node)


def _truncate_decimal(node: Node, source: DataType, target: DataType) -> Node:
    """Exact for bigint; Spark goes through double for shorter integers, so values where that matters are left to it."""
    found = f"CAST(trunc(x) AS {type_name(target)})"
    if target == LONG or (isinstance(source, Decimal) and source.precision <= EXACT_DOUBLE_DIGITS):
        return tree(found, x=node)
    odd = "CAST(trunc(x) AS DOUBLE) <> trunc(CAST(x AS DOUBLE))"
    return guard(odd, found, "a decimal next to a whole number", x=node)


def _write_decimal(node: Node, source: DataType, target: DataType) -> Node:
    """DuckDB leaves out the zero before the point when a type has no whole digits."""
    given = decimal_for(source)
    if given.scale == MAX_PRECISION:
        raise _unverified("CAST", source, target)
    return cast(cast(node, decimal(max(given.precision, given.scale + 1), given.scale)), target)


def _write_moment(moment: str) -> Conversion:
    """Years are written alike from 1 to 9999."""
    odd = f"{moment} < CAST('0001-01-01' AS DATE) OR {moment} > CAST('9999-12-31' AS DATE)"
    return lambda node, _source, _target: guard(odd, f"CAST({moment} AS VARCHAR)", "a year beyond 9999", x=node)


def _to_instant(node: Node, source: DataType, target: DataType) -> Node:
    """Clock times that occur twice are resolved differently, so only zones without such times pass."""
    return guard(NOT_UTC, "CAST(x AS TIMESTAMPTZ)", "local time to instant outside UTC", x=node)


_OFFSET = "(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])"
_MOMENT = f"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,6}})?{_OFFSET}?)?"


def _read_timestamp(node: Node, source: DataType, target: DataType) -> Node:
    """Text with an offset tells an instant in every zone, other text a local time, as `_to_instant` reads it."""
    local = f"{NOT_UTC} AND NOT regexp_full_match(x, '.*{_OFFSET}')"
    odd = f"NOT regexp_full_match(x, '{_MOMENT}') OR ({local})"
    return guard(odd, "CAST(x AS TIMESTAMPTZ)", "text that is no plain timestamp", x=node)


def _read_local_timestamp(node: Node, source: DataType, target: DataType) -> Node:
    """An offset is passed over, as Spark does."""
    odd = f"NOT regexp_full_match(x, '{_MOMENT}')"
    return guard(odd, f"CAST(regexp_replace(x, '{_OFFSET}$', '') AS TIMESTAMP)", "text that is no plain timestamp", x=node)


def _matching(pattern: str, form: str) -> Conversion:
    """A cast of text that has this plain form; other forms are Spark's to read or to reject."""
    odd = f"NOT regexp_full_match(x, '{pattern}')"
    return lambda node, _source, target: guard(odd, f"CAST(x AS {type_name(target)})", f"text that is no plain {form}", x=node)


_SAME = {
    "integer": "integer decimal double float string", "decimal": "decimal double", "float": "double", "double": "float",
    "boolean": "integer decimal double float string", "timestamp": "timestamp_ntz date", "timestamp_ntz": "date",
    "date": "timestamp_ntz",
}  # fmt: skip
"""Casts that DuckDB does as Spark does."""

CONVERSIONS: dict[tuple[str, str], Conversion] = {
    **{(source, target): _written("CAST(x AS TYPE)") for source, targets in _SAME.items() for target in targets.split()},
    **{(source, "boolean"): _written("x <> 0") for source in ("integer", "decimal", "float", "double")},
    # Spark cuts the fraction off where DuckDB rounds; out of range and NaN raise in both
    **{(source, "integer"): _written("CAST(trunc(x) AS TYPE)") for source in ("float", "double")},
    ("decimal", "integer"): _truncate_decimal,
    ("decimal", "string"): _write_decimal,
    # through the shortest decimal form, as Java does, and rounded HALF_UP from there
    ("double", "decimal"): _written("CAST(CAST(x AS VARCHAR) AS TYPE)"),
    ("string", "integer"): _matching("[+-]?[0-9]{1,18}", "integer"),
    ("string", "decimal"): _matching("[+-]?[0-9]{1,18}([.][0-9]{0,18})?", "decimal"),
    ("string", "double"): _matching("[+-]?[0-9]{1,18}([.][0-9]{0,18})?([eE][+-]?[0-9]{1,2})?", "number"),
    ("string", "boolean"): _matching("(?i)true|false", "boolean"),
    ("string", "date"): _matching("[0-9]{4}-[0-9]{2}-[0-9]{2}", "date"),
    ("string", "timestamp"): _read_timestamp,
    ("string", "timestamp_ntz"): _read_local_timestamp,
    ("date", "string"): _write_moment("x"),
    ("date", "timestamp"): lambda node, _source, _target: instant(cast(node, TIMESTAMP_NTZ)),
    ("timestamp_ntz", "timestamp"): _to_instant,
    # local time in the session's zone, without zeros at the end of the fraction
    **{(source, "string"): _write_moment("CAST(x AS TIMESTAMP)") for source in ("timestamp", "timestamp_ntz")},
    ("timestamp", "double"): _written("CAST(epoch_us(x) AS DOUBLE) / 1000000e0"),
    # whole seconds since 1970, rounded down
    ("timestamp", "integer"): _written("CAST((epoch_us(x) - CASE WHEN epoch_us(x) < 0 THEN 999999 ELSE 0 END) // 1000000 AS TYPE)"),
}
