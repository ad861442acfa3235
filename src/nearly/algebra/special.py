"""The special functions of scipy, imported when one is used first: that takes longer than a small query, which needs none."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_FUNCTIONS = frozenset({"betaln", "expit", "gammaincinv", "gammaln", "logit", "logsumexp", "ndtri", "stdtrit"})


def __getattr__(name: str) -> Any:
    """scipy's function of this name."""
    if name not in _FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module("scipy.special"), name)
    return found
