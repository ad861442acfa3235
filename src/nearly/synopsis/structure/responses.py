"""What a row that matches a query adds to totals."""

from __future__ import annotations

ONE, VALUE, DELTA, SQUARE = range(4)
"""Responses of a matching row: 1; v, whether it has a value; v times its deviation from the centre; v times that squared."""
_EXPONENTS = (0, 0, 1, 2)


def product(one: int, two: int) -> int:
    """The place of the product of two responses among 1, v, v*d, v*d^2, v*d^3, v*d^4, for a deviation d."""
    return 0 if one == two == ONE else 1 + _EXPONENTS[one] + _EXPONENTS[two]
