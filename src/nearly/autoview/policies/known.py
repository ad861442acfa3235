"""The policies by their names."""

from __future__ import annotations

from nearly.autoview.policies.hawc import Hawc
from nearly.autoview.policies.learned import Learned
from nearly.autoview.policies.policy import ViewPolicy
from nearly.autoview.policies.recycler import Recycler
from nearly.autoview.policies.simple import Fifo, Lfu, Lru
from nearly.errors import SchemaError

NAMES = ("learned", "lru", "lfu", "fifo", "hawc", "recycler", "off")


def policy_of(name: str, seed: int = 0) -> ViewPolicy:
    """A new policy of this name."""
    match name:
        case "learned":
            return Learned(seed)
        case "lru":
            return Lru(seed)
        case "lfu":
            return Lfu(seed)
        case "fifo":
            return Fifo(seed)
        case "hawc":
            return Hawc()
        case "recycler":
            return Recycler()
        case "off":
            return ViewPolicy()
    raise SchemaError(f"policy={name!r} must be one of {', '.join(map(repr, NAMES))}")
