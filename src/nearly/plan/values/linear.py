"""Linear forms of columns with exact values, for predicates that compare columns with each other."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor, lcm
from typing import Any

from nearly.algebra.half_spaces import HalfSpace
from nearly.plan.expressions import Call, Cast, Expression
from nearly.plan.types import DATE, FRACTIONS, is_numeric, scale_of
from nearly.plan.values.domains import OrderedDomain, exact_number, keeps_values

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
    """The linear form of an expression over columns of whole numbers, decimals or dates; None when it is none, or is rounded."""
    found = column(expression)
    if found is not None:
        name, domain = found
        apart = (is_numeric(domain.type) or domain.type == DATE) and not (expression.type in FRACTIONS and domain.is_wide)
        return Linear(((name, domain.unit),), Fraction(0)) if apart and domain.unit is not None else None
    value = constant(expression)
    if value is not None:
        number = exact_number(value, "the comparison") if is_numeric(expression.type) else None
        return Linear((), number) if isinstance(number, Fraction) else None
    match expression:
        case Call(function="+" | "-" | "*" as function, arguments=(left, right)) if _is_exact(expression):
            sides = linear(left, column, constant), linear(right, column, constant)
            return None if sides[0] is None or sides[1] is None else _combined(function, sides[0], sides[1])
        case Cast(operand=operand) if keeps_values(expression):
            return linear(operand, column, constant)
        case Call(function="neg", arguments=(operand,)):
            form = linear(operand, column, constant)
            return None if form is None else form.negated
    return None


def _is_exact(call: Call) -> bool:
    """Whether the operator's type keeps all digits of its result."""
    digits = [scale_of(each.type) for each in call.arguments]
    return call.type not in FRACTIONS and scale_of(call.type) >= (sum(digits) if call.function == "*" else max(digits))


def _combined(function: str, left: Linear, right: Linear) -> Linear | None:
    if function == "+":
        return left.plus(right)
    if function == "-":
        return left.minus(right)
    if not left.terms:
        return right.times(left.constant)
    return left.times(right.constant) if not right.terms else None
