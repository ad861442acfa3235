"""Constants as text that both engines read as the same value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as Number

from nearly.errors import Unsupported
from nearly.plan.expressions import Literal
from nearly.plan.types import TIMESTAMP


def literal_text(constant: Literal) -> str:
    """The text that a cast to the constant's type makes its value of."""
    value = constant.value
    match value:
        case Number():
            return format(value, "f")
        case dt.datetime() if constant.type == TIMESTAMP:
            return value.astimezone(dt.UTC).isoformat(sep=" ")
        case dt.datetime() | dt.date():
            return value.isoformat()
        case int() | float():
            return repr(value)
    raise Unsupported(f"a literal of type {constant.type} has no form in SQL")
