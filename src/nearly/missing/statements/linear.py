"""Linear forms of columns with exact values, for predicates that compare columns with each other."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor, lcm
from typing import Any

from nearly.algebra.half_spaces import HalfSpace
from nearly.missing.statements.domains import OrderedDomain, exact_number
from nearly.plan.expressions import Call, Cast, Expression
from nearly.plan.types import DATE, DOUBLE, FLOAT, INTEGERS, Decimal, is_numeric

_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne}


@dataclass(frozen=True, slots=True)
class Linear:
    """`sum(coefficient * rank(column)) + constant`."""

    terms: tuple[tuple[str, Fraction], ...]
    constant: Fraction

    def plus(self, other: Linear) -> Linear:
        weights = dict(self.terms)
        for column, weight in other.terms:
            weights[column] = weights.get(column, Fraction(0)) + weight
        return Linear(tuple((column, weight) for column, weight in weights.items() if weight), self.constant + other.constant)

    def times(self, factor: Fraction) -> Linear:
        return Linear(tuple((column, weight * factor) for column, weight in self.terms if factor), self.constant * factor)

    @property
    def negated(self) -> Linear:
        return self.times(Fraction(-1))

    def minus(self, other: Linear) -> Linear:
        return self.plus(other.negated)

    @property
    def at_most_zero(self) -> HalfSpace:
        """The half-space in which the form is at most 0, with whole coefficients."""
        scale = lcm(*(weight.denominator for _, weight in self.terms))
        return HalfSpace(tuple((column, int(weight * scale)) for column, weight in self.terms), floor(-self.constant * scale))

    def compares(self, function: str) -> bool:
        """Whether `constant <function> 0`, for a form without columns."""
        return bool(_COMPARISONS[function](self.constant, 0))


def linear(
    expression: Expression, column: Callable[[Expression], tuple[str, OrderedDomain] | None], constant: Callable[[Expression], Any]
) -> Linear | None:
    """The linear form of an expression over columns of whole numbers, decimals or dates; None when it is none."""
    found = column(expression)
    if found is not None:
        name, domain = found
        exact = domain.unit is not None and (is_numeric(domain.type) or domain.type == DATE)
        return Linear(((name, domain.unit),), Fraction(0)) if exact and domain.unit is not None else None
    value = constant(expression)
    if value is not None:
        number = exact_number(value, "the comparison") if is_numeric(expression.type) else None
        return Linear((), number) if isinstance(number, Fraction) else None
    match expression:
        case Call(function="+" | "-" | "*" as function, arguments=(left, right)):
            sides = linear(left, column, constant), linear(right, column, constant)
            return None if sides[0] is None or sides[1] is None else _combined(function, sides[0], sides[1])
        case Cast(operand=operand) if keeps_values(expression):
            return linear(operand, column, constant)
        case Call(function="neg", arguments=(operand,)):
            form = linear(operand, column, constant)
            return None if form is None else form.negated
    return None


def _combined(function: str, left: Linear, right: Linear) -> Linear | None:
    if function == "+":
        return left.plus(right)
    if function == "-":
        return left.minus(right)
    if not left.terms:
        return right.times(left.constant)
    return left.times(right.constant) if not right.terms else None


def keeps_values(cast: Cast) -> bool:
    """Whether a cast keeps all values of a numeric type and their order."""
    source, target = cast.operand.type, cast.type
    if source in INTEGERS:
        return target in INTEGERS or isinstance(target, Decimal) or target == DOUBLE
    if isinstance(source, Decimal):
        wider = isinstance(target, Decimal) and target.scale >= source.scale and target.whole_digits >= source.whole_digits
        return wider or target == DOUBLE
    return bool(source == FLOAT and target == DOUBLE)
