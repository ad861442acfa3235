"""Arrow's compute functions, imported when one is used first: small queries use none, and the import takes as long as they do."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """The function of this name."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module("pyarrow.compute"), name)
    return found
