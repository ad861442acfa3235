"""Immutable tree nodes that remember what they computed about themselves.

A tree is hashed and asked for its names again and again while it is rewritten; without memory each question would walk all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar, dataclass_transform

C = TypeVar("C", bound=type)
R = TypeVar("R", bound="Remembering")


class Remembering:
    """Base of nodes; what is remembered is no part of the node's value, and does not travel with it."""

    __slots__ = ("_hash", "_names")
    __match_args__: ClassVar[tuple[str, ...]] = ()
    """The names of its fields, as `dataclass` fills them in; `dataclasses.fields` would put them together anew each time."""
    _hash: int
    _names: frozenset[str]


class Holder:
    """What has an expression and is none: a sort key, an output of a node."""

    __slots__ = ()
    expression: Any


@dataclass_transform(frozen_default=True)
def node(cls: C) -> C:
    """A frozen dataclass with slots whose hash is computed once. Its bases must include `Remembering`."""
    made: Any = dataclass(frozen=True, slots=True)(cls)
    compute = made.__hash__

    def remembered(self: Any) -> int:
        try:
            found: int = self._hash
        except AttributeError:
            found = compute(self)
            object.__setattr__(self, "_hash", found)
        return found

    made.__hash__ = remembered
    found: C = made
    return found


def with_fields(old: R, change: Callable[[Any], Any]) -> R:
    """The same node with its fields changed; the very same object when nothing changed."""
    node: Any = old
    changes = {}
    for name in old.__match_args__:
        before = getattr(node, name)
        after = change(before)
        if after is not before:
            changes[name] = after
    made: R = replace(node, **changes) if changes else old
    return made
