"""Answers early, nearly exact, then exact, on Spark."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nearly.version import __version__

if TYPE_CHECKING:
    from nearly.answer import Answer
    from nearly.engine.changes.statements import Changed
    from nearly.errors import Conflict, ConstraintError, EngineError, NearlyError, ParseError, SchemaError, UnknownName, Unsupported
    from nearly.missing.constraint_set import ConstraintSet
    from nearly.missing.derive import constraints_from
    from nearly.missing.statements.constraint import Constraint
    from nearly.progressive.frame import Frame
    from nearly.progressive.measures import avg, corr, count, count_distinct, cov, median, quantile, stddev, var, weighted_avg
    from nearly.progressive.measures import max_ as max  # noqa: A004  reads as nearly.max
    from nearly.progressive.measures import min_ as min  # noqa: A004
    from nearly.progressive.measures import sum_ as sum  # noqa: A004
    from nearly.progressive.user_aggregate import Aggregate
    from nearly.query import Query
    from nearly.session import Session, connect

__all__ = [
    "Aggregate", "Answer", "Changed", "Conflict", "Constraint", "ConstraintError", "ConstraintSet", "EngineError", "Frame",
    "NearlyError", "ParseError", "Query", "SchemaError", "Session", "UnknownName", "Unsupported", "__version__", "avg", "connect",
    "constraints_from", "corr", "count", "count_distinct", "cov", "max", "median", "min", "quantile", "stddev", "sum", "var",
    "weighted_avg",
]  # fmt: skip

_HOMES = {
    "nearly.answer": ("Answer",),
    "nearly.engine.changes.statements": ("Changed",),
    "nearly.errors": (
        "Conflict", "ConstraintError", "EngineError", "NearlyError", "ParseError", "SchemaError", "UnknownName", "Unsupported",
    ),
    "nearly.missing.constraint_set": ("ConstraintSet",),
    "nearly.missing.derive": ("constraints_from",),
    "nearly.missing.statements.constraint": ("Constraint",),
    "nearly.progressive.frame": ("Frame",),
    "nearly.progressive.measures": (
        "avg", "corr", "count", "count_distinct", "cov", "max_", "median", "min_", "quantile", "stddev", "sum_", "var",
        "weighted_avg",
    ),
    "nearly.progressive.user_aggregate": ("Aggregate",),
    "nearly.query": ("Query",),
    "nearly.session": ("Session", "connect"),
}  # fmt: skip
_PLACES = {name.rstrip("_"): (home, name) for home, names in _HOMES.items() for name in names}
"""Where each public name lives; it is loaded when it is used first, so that `import nearly` itself takes no time."""


def __getattr__(name: str) -> Any:
    """A public name, or a module of the package."""
    if name in _PLACES:
        home, own = _PLACES[name]
        found = globals()[name] = getattr(import_module(home), own)
        return found
    if not name.startswith("_") and find_spec(f"nearly.{name}") is not None:
        return import_module(f"nearly.{name}")
    raise AttributeError(f"module 'nearly' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext nearly`: the magic `%%nearly`, and answers that are drawn in the notebook."""
    import_module("nearly.notebook.lazily").add_lazily(shell)


if "IPython" in sys.modules:  # a notebook, perhaps: there `Query.live` draws, and `%%nearly` is known
    import_module("nearly.notebook")
