"""Answers early, nearly exact, then exact, on Spark."""

from nearly import notebook as notebook  # registers itself as the place where `Query.live` shows answers
from nearly.answer import Answer
from nearly.engine.changes.statements import Changed
from nearly.errors import (
    Conflict,
    ConstraintError,
    EngineError,
    NearlyError,
    ParseError,
    SchemaError,
    UnknownName,
    Unsupported,
)
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

__version__ = "0.1.0"

__all__ = [
    "Aggregate", "Answer", "Changed", "Conflict", "Constraint", "ConstraintError", "ConstraintSet", "EngineError", "Frame",
    "NearlyError", "ParseError", "Query", "SchemaError", "Session", "UnknownName", "Unsupported", "avg", "connect",
    "constraints_from", "corr", "count", "count_distinct", "cov", "max", "median", "min", "quantile", "stddev", "sum", "var",
    "weighted_avg",
]  # fmt: skip
