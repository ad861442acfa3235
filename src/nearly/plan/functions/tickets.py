"""The ticket of some columns: a number in [0, 2^30) that looks drawn at random, and that their values alone decide.

Rows whose ticket lies below a bound are a sample of all rows, whatever was inserted or deleted, and rows of two relations that are
equal in the columns are in the samples of both or of neither (SVC's hash operator). No query can name the function.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from nearly.errors import SchemaError
from nearly.plan.expressions import Call, Expression, Literal
from nearly.plan.types import BOOLEAN, FRACTIONS, INTEGERS, LONG, DataType

TICKETS = 2**30
"""Tickets are whole numbers below it."""


def ticket(columns: Sequence[Expression]) -> Call:
    """The ticket of a row by these columns; nulls are values like others."""
    if not columns:
        raise SchemaError("a ticket needs at least one column")
    return Call(LONG, "ticket", tuple(columns))


def drawn(columns: Sequence[Expression], share: float, start: float = 0.0) -> Call:
    """Whether a row is in the sample of this share, and not in that of the smaller one it may start from.

    >>> from nearly.plan.types import INT
    >>> drawn([Column(INT, "k")], 0.25).arguments[1].value == TICKETS // 4
    True
    """
    if not 0 <= start <= share <= 1:
        raise SchemaError(f"shares lie between 0 and 1, not {start} to {share}")
    below = Call(BOOLEAN, "<", (ticket(columns), Literal(LONG, ceil(share * TICKETS))))
    if not start:
        return below
    return Call(BOOLEAN, "and", (Call(BOOLEAN, ">=", (ticket(columns), Literal(LONG, ceil(start * TICKETS)))), below))


def ticket_family(type_: DataType) -> DataType:
    """What tickets see of a type. Law: values of two types of one family that are equal have equal tickets."""
    if type_ in INTEGERS:
        return LONG
    return FRACTIONS[-1] if type_ in FRACTIONS else type_
