"""The typed function table: every function nearly computes with, typed exactly as Spark SQL types it."""

from nearly.plan.functions.aggregates import aggregate, average_type, is_aggregate
from nearly.plan.functions.casting import cast, is_castable
from nearly.plan.functions.literals import date, interval, literal, number, timestamp
from nearly.plan.functions.names import is_known, is_spelled, known_names
from nearly.plan.functions.table import call, is_function
from nearly.plan.functions.windows import is_window, window

__all__ = [
    "aggregate", "average_type", "call", "cast", "date", "interval", "is_aggregate", "is_castable", "is_function", "is_known",
    "is_spelled", "is_window",
    "known_names", "literal", "number", "timestamp", "window",
]  # fmt: skip
