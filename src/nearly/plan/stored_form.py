"""Plans as plain values that JSON can hold, and back.

Law: `restored(stored(plan)) == plan`. What only lives in a session, such as a user's function, has no such form.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import fields
from decimal import Decimal
from typing import Any

from nearly.errors import EngineError, Unsupported
from nearly.plan import expressions, nodes, types
from nearly.plan.expressions import Expression, SortKey, UserCall, WindowFrame
from nearly.plan.nodes import Apply, Field, Output, Plan
from nearly.plan.types import DataType

_CLASSES: dict[str, type] = {
    each.__name__: each
    for module in (nodes, expressions)
    for each in vars(module).values()
    if isinstance(each, type) and (issubclass(each, Plan | Expression) or each in (Output, Field, SortKey, WindowFrame))
}
_SESSION_ONLY = (UserCall, Apply)
_CLASS, _TYPE, _VALUE, _LIST = "node", "type", "value", "list"


def stored(value: Any) -> Any:
    """A plan, an expression or a part of one, as JSON can hold it."""
    match value:
        case None | bool() | str():
            return value
        case int() | float() | Decimal() | dt.date() | bytes():
            return _constant(value)
        case tuple():
            return {_LIST: [stored(each) for each in value]}
        case DataType():
            return {_TYPE: value.name}
    kind = type(value)
    if kind in _SESSION_ONLY or kind.__name__ not in _CLASSES:
        raise Unsupported(f"{kind.__name__} lives in a session and cannot be kept")
    return {_CLASS: kind.__name__, **{field.name: stored(getattr(value, field.name)) for field in fields(value)}}


def restored(read: Any) -> Any:
    """What `stored` was given."""
    match read:
        case None | bool() | str():
            return read
        case {"node": name, **rest}:
            return _CLASSES[name](**{str(field): restored(value) for field, value in rest.items()})
        case {"list": each}:
            return tuple(map(restored, each))
        case {"type": name}:
            return types.from_name(name)
        case {"value": [kind, text]}:
            return _CONSTANTS[kind](text)
    raise EngineError(f"{read!r:.60} is no part of a plan")


def _constant(value: Any) -> Any:
    kind = type(value).__name__
    if kind not in _CONSTANTS:
        raise Unsupported(f"a constant of the type {kind} cannot be kept")
    text = value.isoformat() if isinstance(value, dt.date) else value.hex() if isinstance(value, bytes | float) else str(value)
    return {_VALUE: [kind, text]}


_CONSTANTS: dict[str, Any] = {
    "int": int, "float": float.fromhex, "Decimal": Decimal, "bytes": bytes.fromhex, "date": dt.date.fromisoformat,
    "datetime": dt.datetime.fromisoformat,
}  # fmt: skip
