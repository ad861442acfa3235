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
from nearly.session import Query, Session, connect

__version__ = "0.1.0"

__all__ = [
    "Answer", "ConstraintError", "EngineError", "NearlyError", "ParseError", "Query", "SchemaError", "Session", "UnknownName",
    "Unsupported", "connect",
]  # fmt: skip
