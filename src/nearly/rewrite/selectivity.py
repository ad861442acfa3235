"""Rough sizes of intermediate results, good enough to choose which side of a join moves."""

from __future__ import annotations

from nearly.plan.expressions import Call, Column, Expression, Literal, conjuncts

_BY_FUNCTION = {"=": 0.05, "in": 0.15, "like": 0.1, "<=>": 0.05, "isnull": 0.05, "<>": 0.9, "isnotnull": 0.95, "not": 0.7}
_RANGE = 0.4
_OTHER = 0.5


def selectivity(predicate: Expression | None) -> float:
    """The fraction of rows that a predicate is guessed to keep."""
    kept = 1.0
    for part in conjuncts(predicate):
        kept *= _one(part)
    return kept


def _one(part: Expression) -> float:
    if isinstance(part, Literal):
        return 1.0 if part.value else 0.0
    if not isinstance(part, Call):
        return _OTHER
    if part.function in ("<", "<=", ">", ">="):
        return _RANGE
    if part.function == "=" and all(isinstance(argument, Column) for argument in part.arguments):
        return _OTHER
    return _BY_FUNCTION.get(part.function, _OTHER)
