"""Text functions in DuckDB; where the engines differ on rare text, a guard leaves it to Spark."""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.dialects import sql
from nearly.plan.dialects.native_build import Builder, cast, guard, literal_value, renamed, retyped
from nearly.plan.dialects.sql import Node
from nearly.plan.expressions import Call, Literal
from nearly.plan.types import INT, LONG


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


def _concatenate_separated(call: Call, arguments: list[Node]) -> Node:
    """Nulls are skipped; a null separator makes null, also when there is nothing to separate."""
    if len(arguments) > 1:
        return sql.function("concat_ws", *arguments)
    return sql.case([sql.is_null(arguments[0]), exp.Null()], sql.text(""))


def _like(kind: type[Node]) -> Builder:
    """Spark rejects a pattern whose escape stands before an ordinary character; such patterns are left to it."""

    def build(call: Call, arguments: list[Node]) -> Node:
        pattern, escape = call.arguments[1], literal_value(call, 2)
        match = kind(this=sql.operand(arguments[0]), expression=sql.operand(arguments[1]))
        if not isinstance(pattern, Literal):
            escaped = sql.function("contains", arguments[1].copy(), sql.text(escape))
            return guard(escaped, match, "a computed LIKE pattern with an escape")
        if pattern.value is None or escape not in pattern.value:
            return match
        _check_escapes(pattern.value, escape)
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
        return sql.function(name, arguments[0], _not_negative(arguments[1]))

    return build


def _not_negative(count: Node) -> Node:
    """The count, with zero instead of less; null stays null, which DuckDB's greatest would skip."""
    return sql.case([sql.binary(exp.LT, count, sql.integer(0)), sql.integer(0)], count.copy())


def _locate(call: Call, arguments: list[Node]) -> Node:
    """(part, text, start): counted in characters; starts other than 1 search the rest and count on."""
    part, text, start = arguments
    first = literal_value(call, 2)
    if first < 1:
        raise Unsupported("locate with a start below 1 is not in the native kernel's verified set")
    if first == 1:
        return cast(sql.function("strpos", text, part), INT)
    rest = sql.function("strpos", sql.function("substring", text, start), part)
    found = sql.case(
        [sql.binary(exp.EQ, rest, sql.integer(0)), sql.integer(0)],
        sql.binary(exp.Add, rest.copy(), sql.integer(first - 1)),
    )
    odd = sql.binary(exp.EQ, part.copy(), sql.text(""))
    return guard(odd, cast(found, INT), "locate of empty text")


def _pad(call: Call, arguments: list[Node]) -> Node:
    """Cuts text that is longer; padding with nothing only cuts."""
    text, length, padding = arguments
    wanted = _not_negative(length)
    cut = sql.function("left", text, wanted)
    padded = sql.function(call.function, text.copy(), cast(wanted.copy(), INT), padding)
    return sql.case([sql.binary(exp.EQ, padding.copy(), sql.text("")), cut], padded)


def _repeat(call: Call, arguments: list[Node]) -> Node:
    return sql.function("repeat", arguments[0], cast(_not_negative(arguments[1]), LONG))


def _split_part(call: Call, arguments: list[Node]) -> Node:
    """Part 0 is an error in Spark, and an empty delimiter does not split there."""
    odd = sql.binary(exp.Or, sql.binary(exp.EQ, arguments[2], sql.integer(0)), sql.binary(exp.EQ, arguments[1], sql.text("")))
    parts = sql.function("split_part", *(argument.copy() for argument in arguments))
    return guard(odd, parts, "split_part by nothing or part 0")


def _first_code(call: Call, arguments: list[Node]) -> Node:
    """0 for empty text."""
    (text,) = arguments
    return sql.case([sql.binary(exp.EQ, text, sql.text("")), sql.integer(0)], sql.function("unicode", text.copy()))


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
    "concat_ws": _concatenate_separated,
    "locate": _locate,
    "lpad": _pad,
    "rpad": _pad,
    "repeat": _repeat,
    "split_part": _split_part,
    "ascii": _first_code,
    "translate": renamed("translate"),
}
