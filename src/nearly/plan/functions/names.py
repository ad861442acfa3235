"""Which names are names of functions: those that nearly computes with, and all others that Spark has."""

from __future__ import annotations

from nearly.plan.functions.aggregates import is_aggregate
from nearly.plan.functions.spark_names import SPARK_FUNCTIONS
from nearly.plan.functions.table import ALIASES, FUNCTIONS, is_function
from nearly.plan.functions.windows import is_window


def is_known(name: str) -> bool:
    """Whether nearly or Spark has a function of this name."""
    return is_function(name) or is_aggregate(name) or is_window(name) or name.lower() in SPARK_FUNCTIONS


def is_spelled(name: str) -> bool:
    """Whether Spark has a function of this name that queries can call; operators have names here, too, which they cannot."""
    return name.lower() in SPARK_FUNCTIONS


def known_names() -> frozenset[str]:
    """Names to offer for a misspelt one."""
    return SPARK_FUNCTIONS | {name for name in (*FUNCTIONS, *ALIASES) if name.isidentifier()}
