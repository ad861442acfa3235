"""Text functions in DuckDB; where the engines differ on rare text, a guard leaves it to Spark."""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.dialects import sql
from nearly.plan.dialects.native_build import Builder, cast, guard, literal_value, renamed, retyped
from nearly.plan.dialects.sql import Node
from nearly.plan.expressions import Call, Literal
from nearly.plan.types import INT


def _ascii_only(name: str) -> Builder:
    """Case mapping and reversal of other letters differ between Java and DuckDB."""

    def build(call: Call, arguments: list[Node]) -> Node:
        (value,) = arguments
        return guard(not_ascii(value), sql.function(name, value.copy()), f"{name} over text beyond ASCII")

    return build


def not_ascii(value: Node) -> Node:
    """Text has as many bytes as characters exactly when all of it is ASCII."""
    return sql.binary(exp.NEQ, sql.function("strlen", value.copy()), sql.function("length", value.copy()))


def _concatenate(call: Call, arguments: list[Node]) -> Node:
    """`||` is null when any part is; DuckDB's concat would skip nulls."""
    return reduce(lambda left, right: sql.binary(exp.DPipe, left, right), arguments)


def _like(kind: type[exp.Binary]) -> Builder:
    """Spark rejects a pattern whose escape stands before an ordinary character, so only sound literal patterns pass."""

    def build(call: Call, arguments: list[Node]) -> Node:
        pattern, escape = call.arguments[1], literal_value(call, 2)
        text = pattern.value if isinstance(pattern, Literal) else None
        if not isinstance(text, str):
            raise Unsupported(f"{call.function.upper()} with a computed pattern is not in the native kernel's verified set")
        match = kind(this=sql.operand(arguments[0]), expression=arguments[1])
        if escape not in text:
            return match
        _check_escapes(text, escape)
        return exp.Escape(this=match, expression=sql.text(escape))

    return build


def _check_escapes(pattern: str, escape: str) -> None:
    position = 0
    while position < len(pattern):
        if pattern[position] == escape:
            position += 1
            if position == len(pattern) or pattern[position] not in ("%", "_", escape):
                raise Unsupported(f"LIKE pattern {pattern!r}: escape {escape!r} must stand before %, _ or itself")
        position += 1


def _ilike(call: Call, arguments: list[Node]) -> Node:
    pattern = literal_value(call, 1)
    if not pattern.isascii():
        raise Unsupported("ILIKE with a pattern beyond ASCII is not in the native kernel's verified set")
    match = _like(exp.ILike)(call, arguments)
    return guard(not_ascii(arguments[0]), match, "ILIKE over text beyond ASCII")


def _trim(call: Call, arguments: list[Node]) -> Node:
    """Only blanks unless other characters are given."""
    return sql.function(call.function, arguments[0], *(arguments[1:] or [sql.text(" ")]))


def _substring(call: Call, arguments: list[Node]) -> Node:
    """Counted from 1, or back from the end; 0 means 1. A start before the text uses up length before it."""
    text, start = arguments[0], literal_value(call, 1)
    length = literal_value(call, 2) if len(call.arguments) > 2 else None
    if length is not None and length <= 0:
        return sql.case([sql.is_null(text), exp.Null()], sql.text(""))
    if start >= 0:
        return sql.function("substring", text, sql.integer(max(start, 1)), *([] if length is None else [sql.integer(length)]))
    return _substring_from_end(text, start, length)


def _substring_from_end(text: Node, start: int, length: int | None) -> Node:
    tail = sql.function("right", text, sql.integer(-start))
    if length is None:
        return tail
    missing = sql.binary(exp.Sub, sql.integer(-start), sql.function("length", text.copy()))
    kept = sql.binary(exp.Sub, sql.integer(length), sql.function("greatest", missing, sql.integer(0)))
    return sql.function("left", tail, sql.function("greatest", kept, sql.integer(0)))


def _end(name: str) -> Builder:
    """`left` and `right`: nothing for a length of zero or less, where DuckDB counts from the other end."""

    def build(call: Call, arguments: list[Node]) -> Node:
        return sql.function(name, arguments[0], sql.function("greatest", arguments[1], sql.integer(0)))

    return build


LOWERINGS: dict[str, Builder] = {
    "concat": _concatenate,
    "like": _like(exp.Like),
    "ilike": _ilike,
    "upper": _ascii_only("upper"),
    "lower": _ascii_only("lower"),
    "reverse": _ascii_only("reverse"),
    "trim": _trim,
    "ltrim": _trim,
    "rtrim": _trim,
    "length": retyped("length"),
    "octet_length": retyped("strlen"),
    "substring": _substring,
    "left": _end("left"),
    "right": _end("right"),
    "replace": renamed("replace"),
    "startswith": renamed("starts_with"),
    "endswith": renamed("ends_with"),
    "contains": renamed("contains"),
}
