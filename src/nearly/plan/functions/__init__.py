"""The typed function table: every function nearly computes with, typed exactly as Spark SQL types it."""

from nearly.plan.functions.aggregates import aggregate, is_aggregate
from nearly.plan.functions.casting import cast
from nearly.plan.functions.literals import date, interval, number
from nearly.plan.functions.table import call, is_function, is_known, is_spelled, known_names
from nearly.plan.functions.windows import is_window, window

__all__ = [
    "aggregate", "call", "cast", "date", "interval", "is_aggregate", "is_function", "is_known", "is_spelled", "is_window",
    "known_names", "number", "window",
]  # fmt: skip
