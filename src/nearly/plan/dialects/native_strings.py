"""Text functions in DuckDB; where the engines differ on rare text, a guard leaves it to Spark."""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan.dialects import sql
from nearly.plan.dialects.native_build import guard, guarded, literal_value, renamed, retyped, tree, written
from nearly.plan.dialects.sql import Builder, Node
from nearly.plan.expressions import Call, Literal
from nearly.plan.quoting import native_text


def _not_ascii(text: str) -> str:
    """Text has as many bytes as characters exactly when all of it is ASCII."""
    return f"strlen({text}) <> length({text})"


def _ascii_only(name: str) -> Builder:
    """Case mapping and reversal of other letters differ between Java and DuckDB."""
    return written(guarded(_not_ascii("a"), f"{name}(a)", f"{name} over text beyond ASCII"))


def _concatenate(call: Call, arguments: list[Node]) -> Node:
    """`||` is null when any part is; DuckDB's concat would skip nulls."""
    return reduce(lambda left, right: sql.binary(exp.DPipe, left, right), arguments)


def _concatenate_separated(call: Call, arguments: list[Node]) -> Node:
    """Nulls are skipped; a null separator makes null, also when there is nothing to separate."""
    if len(arguments) > 1:
        return sql.function("concat_ws", *arguments)
    return tree("CASE WHEN a IS NULL THEN NULL ELSE '' END", a=arguments[0])


def _like(call: Call) -> str:
    """Spark rejects a pattern whose escape stands before an ordinary character; such patterns are left to it."""
    pattern, escape, match = call.arguments[1], literal_value(call, 2), f"a {call.function.upper()} b"
    if not isinstance(pattern, Literal):
        return guarded("contains(b, c)", match, "a computed LIKE pattern with an escape")
    if pattern.value is None or escape not in pattern.value:
        return match
    _check_escapes(pattern.value, escape)
    return f"{match} ESCAPE {native_text(escape)}"


def _check_escapes(pattern: str, escape: str) -> None:
    position = 0
    while position < len(pattern):
        if pattern[position] == escape:
            position += 1
            if position == len(pattern) or pattern[position] not in ("%", "_", escape):
                raise Unsupported(f"LIKE pattern {pattern!r}: escape {escape!r} must stand before %, _ or itself")
        position += 1


def _ilike(call: Call) -> str:
    if not literal_value(call, 1).isascii():
        raise Unsupported("ILIKE with a pattern beyond ASCII is not in the native kernel's verified set")
    return guarded(_not_ascii("a"), _like(call), "ILIKE over text beyond ASCII")


def _trim(call: Call, arguments: list[Node]) -> Node:
    """Only blanks unless other characters are given."""
    return sql.function(call.function, arguments[0], *(arguments[1:] or [sql.text(" ")]))


def _substring(call: Call, arguments: list[Node]) -> Node:
    """Counted from 1, or back from the end; 0 means 1. A start before the text uses up length before it."""
    start = literal_value(call, 1)
    length = literal_value(call, 2) if len(call.arguments) > 2 else None
    if length is not None and length <= 0:
        found = "CASE WHEN x IS NULL THEN NULL ELSE '' END"
    elif start >= 0:
        found = f"substring(x, {max(start, 1)})" if length is None else f"substring(x, {max(start, 1)}, {length})"
    elif length is None:
        found = f"right(x, {-start})"
    else:
        found = f"left(right(x, {-start}), greatest({length} - greatest({-start} - length(x), 0), 0))"
    return tree(found, x=arguments[0])


def _not_negative(count: str) -> str:
    """The count, with zero instead of less; null stays null, which DuckDB's greatest would skip."""
    return f"CASE WHEN {count} < 0 THEN 0 ELSE {count} END"


def _locate(call: Call, arguments: list[Node]) -> Node:
    """(part, text, start): counted in characters; starts other than 1 search the rest and count on."""
    part, text, _ = arguments
    first = literal_value(call, 2)
    if first < 1:
        raise Unsupported("locate with a start below 1 is not in the native kernel's verified set")
    if first == 1:
        return tree("CAST(strpos(whole, part) AS INTEGER)", part=part, whole=text)
    rest = f"strpos(substring(whole, {first}), part)"
    found = f"CAST(CASE WHEN {rest} = 0 THEN 0 ELSE {rest} + {first - 1} END AS INTEGER)"
    return guard("part = ''", found, "locate of empty text", part=part, whole=text)


def _pad(name: str) -> Builder:
    """Cuts text that is longer; padding with nothing only cuts."""
    wanted = _not_negative("b")
    return written(f"CASE WHEN c = '' THEN left(a, {wanted}) ELSE {name}(a, CAST({wanted} AS INTEGER), c) END")


LOWERINGS: dict[str, Builder] = {
    "concat": _concatenate,
    "concat_ws": _concatenate_separated,
    "like": lambda call, arguments: written(_like(call))(call, arguments),
    "ilike": lambda call, arguments: written(_ilike(call))(call, arguments),
    "length": retyped("length"),
    "octet_length": retyped("strlen"),
    "substring": _substring,
    "startswith": renamed("starts_with"),
    "endswith": renamed("ends_with"),
    "locate": _locate,
    "repeat": written(f"repeat(a, CAST({_not_negative('b')} AS BIGINT))"),
    # part 0 is an error in Spark, and an empty delimiter does not split there
    "split_part": written(guarded("c = 0 OR b = ''", "split_part(a, b, c)", "split_part by nothing or part 0")),
    "ascii": written("CASE WHEN a = '' THEN 0 ELSE unicode(a) END"),
    **{name: _ascii_only(name) for name in ("upper", "lower", "reverse")},
    **dict.fromkeys(("trim", "ltrim", "rtrim"), _trim),
    **{name: _pad(name) for name in ("lpad", "rpad")},
    # nothing for a length of zero or less, where DuckDB counts from the other end
    **{name: written(f"{name}(a, {_not_negative('b')})") for name in ("left", "right")},
    **{name: renamed(name) for name in ("replace", "contains", "translate")},
}
