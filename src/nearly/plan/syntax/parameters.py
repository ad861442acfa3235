"""Values for the parameters of a text: `:name` takes one of a mapping, `?` the next of a sequence, as in Spark.

A value becomes a literal of Spark SQL in the words of the text, and is never read as anything else.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from sqlglot.tokenizer_core import Token, TokenType

from nearly.errors import ParseError, SchemaError
from nearly.plan.syntax.parse import tokens_of

Arguments: TypeAlias = Mapping[str, Any] | Sequence[Any]

_VALUES_END = frozenset({
    TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN, TokenType.R_BRACKET,
})  # fmt: skip
"""Words after which a colon selects from a value; elsewhere it begins the name of a parameter."""


def with_arguments(text: str, arguments: Arguments) -> str:
    """The text with a literal for each of its parameters; too few values, or too many, are an error.

    >>> with_arguments("select * from t where a > :low and b = ':low'", {"low": 5})
    "select * from t where a > 5 and b = ':low'"
    >>> with_arguments("select ?, ?", ["it's", None])
    "select 'it\\\\'s', NULL"
    """
    if isinstance(arguments, str | bytes) or not isinstance(arguments, Mapping | Sequence):
        raise SchemaError(f"args are a mapping for :name, or a list for ?, not {type(arguments).__name__}")
    places = _places(tokens_of(text))
    if isinstance(arguments, Mapping):
        known = {str(name).lower(): value for name, value in arguments.items()}
        missing = [name for _, _, name in places if name is None or name.lower() not in known]
        if missing:
            raise ParseError(f"parameter {'?' if missing[0] is None else ':' + missing[0]} has no value in args")
        spare = known.keys() - {name.lower() for _, _, name in places if name is not None}
        values = [known[(name or "").lower()] for _, _, name in places]
    else:
        if any(name is not None for _, _, name in places):
            raise ParseError("a text with :name takes args as a mapping")
        if len(places) != len(arguments):
            raise ParseError(f"the text has {len(places)} parameters, and args {len(arguments)} values")
        spare, values = set(), list(arguments)
    if spare:
        raise ParseError(f"args has a value for {min(spare)!r}, which the text does not use")
    written = text
    for (first, last, _), value in reversed(list(zip(places, values, strict=True))):
        written = written[:first] + literal(value) + written[last + 1 :]
    return written


def _places(tokens: Sequence[Token]) -> list[tuple[int, int, str | None]]:
    """Where the parameters stand, and the names of those that have one."""
    found: list[tuple[int, int, str | None]] = []
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.token_type == TokenType.PLACEHOLDER:
            found.append((token.start, token.end, None))
        elif token.token_type == TokenType.COLON and after is not None and after.start == token.end + 1:
            begins = before is None or before.token_type not in _VALUES_END
            if begins and after.text.isidentifier():
                found.append((token.start, after.end, after.text))
    return found


def literal(value: Any) -> str:
    """A value as Spark SQL writes it, with the type that Spark gives to such a value of Python's."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return _whole(value)
        case float():
            return f"CAST('{_double(value)}' AS DOUBLE)"
        case Decimal():
            return _decimal(value)
        case str():
            return _text(value)
        case bytes() | bytearray():
            return f"X'{bytes(value).hex()}'"
        case dt.datetime():
            return _time(value)
        case dt.date():
            return f"DATE '{value.isoformat()}'"
    raise SchemaError(f"a parameter cannot be {type(value).__name__}; give a number, text, time, bytes or None")


def _whole(value: int) -> str:
    if not -(2**63) < value < 2**63:
        raise SchemaError(f"{value} is larger than any bigint; give it as a Decimal")
    return f"({value})" if value < 0 else str(value)


def _double(value: float) -> str:
    return repr(value) if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise SchemaError(f"{value} is no decimal number")
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    if precision > 38:
        raise SchemaError(f"{value} has more than 38 digits")
    return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"


def _text(value: str) -> str:
    if "\0" in value:
        raise SchemaError("a text with a zero character cannot be a parameter")
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _time(value: dt.datetime) -> str:
    if value.tzinfo is None:
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    return f"TIMESTAMP '{value.astimezone(ZoneInfo('UTC')).replace(tzinfo=None).isoformat(sep=' ')} UTC'"
