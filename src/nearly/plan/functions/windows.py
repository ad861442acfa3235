"""Functions that only exist over a window."""

from __future__ import annotations

from collections.abc import Sequence

from nearly.errors import Unsupported
from nearly.plan.expressions import Call, Expression, Literal
from nearly.plan.functions.casting import coerce
from nearly.plan.functions.signatures import Arguments, Function, refuse
from nearly.plan.types import BOOLEAN, DOUBLE, INT, NULL, common_type, is_simple


def _ranking(name: str, arguments: Arguments) -> Expression:
    return Call(DOUBLE if name in ("percent_rank", "cume_dist") else INT, name, ())


def _tiles(name: str, arguments: Arguments) -> Expression:
    return Call(INT, name, (_whole_literal(name, arguments[0], least=1),))


def _neighbour(name: str, arguments: Arguments) -> Expression:
    """`lag` and `lead`: (value, offset, default), with the default in the value's type."""
    value = arguments[0]
    offset = _whole_literal(name, arguments[1]) if len(arguments) > 1 else Literal(INT, 1)
    default = arguments[2] if len(arguments) > 2 else Literal(NULL, None)
    if not is_simple(value.type) or common_type(value.type, default.type) != value.type:
        raise refuse(name, arguments)
    return Call(value.type, name, (value, offset, coerce(default, value.type)))


def _of_frame(name: str, arguments: Arguments) -> Expression:
    """`first_value` and `last_value`, with an optional literal that says whether nulls are skipped."""
    skip = arguments[1] if len(arguments) > 1 else Literal(BOOLEAN, False)
    if not is_simple(arguments[0].type) or not isinstance(skip, Literal) or not isinstance(skip.value, bool):
        raise refuse(name, arguments)
    return Call(arguments[0].type, name, (arguments[0], skip))


def _nth(name: str, arguments: Arguments) -> Expression:
    if not is_simple(arguments[0].type):
        raise refuse(name, arguments)
    return Call(arguments[0].type, name, (arguments[0], _whole_literal(name, arguments[1], least=1)))


def _whole_literal(name: str, argument: Expression, least: int | None = None) -> Literal:
    if not isinstance(argument, Literal) or argument.type != INT or argument.value is None:
        raise Unsupported(f"{name!r}: the offset must be an integer literal")
    if least is not None and argument.value < least:
        raise Unsupported(f"{name!r}: {argument.value} is below {least}")
    return argument


_FUNCTIONS = {
    **{name: Function(0, 0, _ranking) for name in ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist")},
    "ntile": Function(1, 1, _tiles),
    "lag": Function(1, 3, _neighbour),
    "lead": Function(1, 3, _neighbour),
    "first_value": Function(1, 2, _of_frame),
    "last_value": Function(1, 2, _of_frame),
    "nth_value": Function(2, 2, _nth),
}
_ALIASES = {"first": "first_value", "last": "last_value"}


def is_window(name: str) -> bool:
    return name.lower() in _FUNCTIONS


def window(name: str, arguments: Sequence[Expression]) -> Expression:
    """The typed call of a ranking or offset function; put it into a `WindowCall`."""
    function = _ALIASES.get(name.lower(), name.lower())
    if function not in _FUNCTIONS:
        raise Unsupported(f"window function {name!r} is not in nearly's verified set")
    return _FUNCTIONS[function].resolve(function, tuple(arguments))
