"""Answers early, nearly exact, then exact, on Spark."""

from nearly import notebook as notebook  # registers itself as the place where `Query.live` shows answers
from nearly.answer import Answer
from nearly.errors import (
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
from nearly.query import Query
from nearly.session import Session, connect

__version__ = "0.1.0"

__all__ = [
    "Answer", "Constraint", "ConstraintError", "ConstraintSet", "EngineError", "NearlyError", "ParseError", "Query", "SchemaError",
    "Session", "UnknownName", "Unsupported", "connect", "constraints_from",
]  # fmt: skip
