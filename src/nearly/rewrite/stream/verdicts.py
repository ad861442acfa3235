"""What is known of a test before the values in it are final: that it will surely hold, that it surely never will, or neither.

A test compares values of a row with values that may still move within variation ranges. With [low, high] the range of u,

    d < u   surely holds where d < low,             and never where d >= high;
    d = u   never holds where d < low or d > high,  and is never sure;
    d <> u  surely holds where d < low or d > high.

A null d never passes. AND is sure when all parts are, and never holds when one never does; OR is the other way round; NOT goes down
to the comparisons, as SQL's three values allow. What is not understood is neither sure nor never.

Law: as long as every value stays in its range, a test that is `sure` is true and one that is `never` is not true (false or null).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nearly.plan.expressions import FALSE, TRUE, Call, Column, Expression, Literal, UserCall, columns_of, walk
from nearly.plan.functions import call
from nearly.plan.functions.casting import coerce
from nearly.plan.types import BOOLEAN, DOUBLE

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_NEGATED = {
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "=", "isnull": "isnotnull", "isnotnull": "isnull",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """Two conditions on a row and the ranges it falls under, neither ever null."""

    sure: Expression
    never: Expression


UNKNOWN = Verdict(FALSE, FALSE)
ALWAYS = Verdict(TRUE, FALSE)
NEVER = Verdict(FALSE, TRUE)

Leaf = Callable[[Call], Verdict]
"""What is known of a comparison or of `isnull` and `isnotnull`."""


def verdict(test: Expression, own: frozenset[str], leaf: Leaf, *, holds: bool = True) -> Verdict:
    """What is known of a test, or, unless it is to hold, of its negation; `own` are columns whose values are final."""
    match test:
        case Call(function="and" | "or", arguments=parts):
            verdicts = [verdict(part, own, leaf, holds=holds) for part in parts]
            return all_of(verdicts) if (test.function == "and") == holds else any_of(verdicts)
        case Call(function="not", arguments=(inner,)):
            return verdict(inner, own, leaf, holds=not holds)
    if columns_of(test) <= own:
        return _known(test, holds)
    if isinstance(test, Call) and test.function in _NEGATED:
        return leaf(test if holds else replace(test, function=_NEGATED[test.function]))
    return UNKNOWN


def _known(test: Expression, holds: bool) -> Verdict:
    """A test of final values alone; a user's function is not called twice."""
    if isinstance(test, Literal):
        return ALWAYS if test.value is holds else NEVER
    if any(isinstance(each, UserCall) for each in walk(test)):
        return UNKNOWN
    passes = call("coalesce", (test if holds else call("not", (test,)), FALSE))
    return Verdict(passes, call("not", (passes,)))


def compared(own: Expression, operator: str, low: Column, high: Column) -> Verdict:
    """What is known of `own operator u` for u in [low, high]; the ends are null where the range is not known."""
    d = coerce(own, DOUBLE)
    missing = FALSE if isinstance(d, Literal) and d.value is not None else call("isnull", (d,))

    def surely(function: str, end: Column) -> Expression:
        return call("coalesce", (call(function, (d, end)), FALSE))

    outside = either([surely("<", low), surely(">", high)])
    match operator:
        case "<" | "<=":
            return Verdict(surely(operator, low), either([missing, surely(_NEGATED[operator], high)]))
        case ">" | ">=":
            return Verdict(surely(operator, high), either([missing, surely(_NEGATED[operator], low)]))
        case "=":
            return Verdict(FALSE, either([missing, outside]))
    return Verdict(outside, missing)


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a conjunction."""
    return Verdict(both([each.sure for each in verdicts]), either([each.never for each in verdicts]))


def any_of(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a disjunction."""
    return Verdict(either([each.sure for each in verdicts]), both([each.never for each in verdicts]))


def both(parts: Sequence[Expression]) -> Expression:
    """AND, without what is true anyway."""
    return _folded("and", parts, TRUE, FALSE)


def either(parts: Sequence[Expression]) -> Expression:
    """OR, without what is false anyway."""
    return _folded("or", parts, FALSE, TRUE)


def _folded(function: str, parts: Sequence[Expression], neutral: Literal, decisive: Literal) -> Expression:
    wanted = [part for part in dict.fromkeys(parts) if part != neutral]
    if not wanted or decisive in wanted:
        return decisive if wanted else neutral
    result = wanted[0]
    for part in wanted[1:]:
        result = Call(BOOLEAN, function, (result, part))
    return result
