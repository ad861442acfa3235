"""Functions that only exist over a window."""

from __future__ import annotations

from collections.abc import Sequence

from nearly.errors import Unsupported
from nearly.plan.expressions import Call, Expression, Literal
from nearly.plan.functions.casting import coerce
from nearly.plan.functions.signatures import Arguments, Function, fixed, refuse
from nearly.plan.types import BOOLEAN, DOUBLE, INT, NULL, common_type, is_simple


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
    **dict.fromkeys(("row_number", "rank", "dense_rank"), fixed(INT)),
    **dict.fromkeys(("percent_rank", "cume_dist"), fixed(DOUBLE)),
    "ntile": Function(1, 1, lambda name, arguments: Call(INT, name, (_whole_literal(name, arguments[0], least=1),))),
    **dict.fromkeys(("lag", "lead"), Function(1, 3, _neighbour)),
    **dict.fromkeys(("first_value", "last_value"), Function(1, 2, _of_frame)),
    "nth_value": Function(2, 2, _nth),
}


def is_window(name: str) -> bool:
    return name.lower() in _FUNCTIONS


def window(name: str, arguments: Sequence[Expression]) -> Expression:
    """The typed call of a ranking or offset function; put it into a `WindowCall`."""
    return _FUNCTIONS[name.lower()].resolve(name.lower(), tuple(arguments))
