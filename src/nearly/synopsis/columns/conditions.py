"""Conditions of a query, as a user writes them, to boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearly.errors import SchemaError
from nearly.synopsis.columns.reading import Schema
from nearly.synopsis.structure.frontier import Box, Condition
from nearly.synopsis.structure.rows import MISSING

PAIR = 2


def box_of(schema: Schema, conditions: Mapping[str, Any]) -> Box:
    """The box of `column=value` and `column=(low, high)` conditions; an end of None is open, a value of None means IS NULL."""
    found: dict[int, Condition] = {}
    for name, wanted in conditions.items():
        place = schema.place(name)
        if place in found:
            raise SchemaError(f"column {name!r} has two conditions; give one range")
        domain = schema.domains[place]
        if isinstance(wanted, tuple | list):
            if len(wanted) != PAIR:
                raise SchemaError(f"{name}={wanted!r}: a range is a pair (low, high), either of them None when open")
            found[place] = Condition(place, *domain.between(*wanted))
        elif wanted is None:
            found[place] = Condition(place, MISSING, MISSING)
        else:
            found[place] = Condition(place, *domain.between(wanted, wanted))
    return tuple(found.values())


def narrowed(box: Box, extra: Condition) -> Box:
    """The box with one more condition."""
    for each in box:
        if each.dimension == extra.dimension:
            met = Condition(each.dimension, max(each.low, extra.low), min(each.high, extra.high))
            return tuple(met if other is each else other for other in box)
    return (*box, extra)
