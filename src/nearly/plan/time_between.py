"""The time between two refreshes, as a user writes it."""

from __future__ import annotations

import re

from nearly.errors import SchemaError

_UNITS = {"ms": 0.001, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86400,
          "day": 86400}  # fmt: skip
LONGEST = 366 * 86400.0


def seconds_of(text: str | float, shortest: float) -> float:
    """A time between refreshes, such as `60s`, `5 minutes` or a number of seconds.

    >>> seconds_of("5 minutes", 0.1), seconds_of(2, 0.1)
    (300.0, 2.0)
    """
    found = None
    if isinstance(text, int | float) and not isinstance(text, bool):
        found = float(text)
    elif isinstance(text, str) and (match := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", text.lower())):
        unit = _UNITS.get(match.group(2)) or _UNITS.get(match.group(2).removesuffix("s"))
        found = None if unit is None else float(match.group(1)) * unit
    if found is None or not shortest <= found <= LONGEST:
        raise SchemaError(f"every={text!r} is no time between refreshes; write for example '60s', '5 minutes' or '1 hour'")
    return found
