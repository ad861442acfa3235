"""What `Frame.agg` computes: aggregates of SQL expressions, by name.

Each function makes a `Measure`, the text of one SQL aggregate; `nearly.sum("l_quantity")` is `sum(l_quantity)`.
"""

from __future__ import annotations

from dataclasses import dataclass

from nearly.errors import SchemaError
from nearly.plan.syntax.compose import item
from nearly.plan.syntax.parse import to_text


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate in SQL."""

    text: str


def _call(function: str, *arguments: str) -> Measure:
    return Measure(f"{function}({', '.join(_checked(function, each) for each in arguments)})")


def _checked(function: str, text: str) -> str:
    """The argument as text that is one expression for sure."""
    if not isinstance(text, str):
        raise SchemaError(f"nearly.{function} takes SQL text such as 'price * 2', not {text!r}")
    return to_text(item(text).unalias())


def sum_(x: str) -> Measure:
    return _call("sum", x)


def count(x: str = "*") -> Measure:
    """Rows, or with an expression the rows where it is not null."""
    return Measure("count(*)") if x == "*" else _call("count", x)


def avg(x: str) -> Measure:
    return _call("avg", x)


def weighted_avg(x: str, weight: str) -> Measure:
    """sum(x * weight) / sum(weight) over the rows that have both; null where the weights add up to 0."""
    value, share = _checked("weighted_avg", x), _checked("weighted_avg", weight)
    total = f"sum(CASE WHEN ({value}) IS NOT NULL THEN ({share}) END)"
    return Measure(f"sum(({value}) * ({share})) / nullif({total}, 0)")


def min_(x: str) -> Measure:
    return _call("min", x)


def max_(x: str) -> Measure:
    return _call("max", x)


def var(x: str) -> Measure:
    """The sample variance, as SQL's `variance`."""
    return _call("variance", x)


def stddev(x: str) -> Measure:
    """The sample standard deviation."""
    return _call("stddev", x)


def median(x: str) -> Measure:
    return _call("median", x)


def quantile(x: str, p: float) -> Measure:
    """The value below which a share `p` of the rows lies, with linear interpolation, as SQL's `percentile`."""
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
        raise SchemaError(f"quantile p={p!r} must be a number from 0 to 1")
    return Measure(f"percentile({_checked('quantile', x)}, {float(p)!r}D)")


def count_distinct(*columns: str) -> Measure:
    """Different values of an expression, or combinations of several; nulls do not count."""
    if not columns:
        raise SchemaError("nearly.count_distinct needs at least one expression")
    return Measure(f"count(DISTINCT {', '.join(_checked('count_distinct', each) for each in columns)})")


def cov(x: str, y: str) -> Measure:
    """The sample covariance."""
    return _call("covar_samp", x, y)


def corr(x: str, y: str) -> Measure:
    """Pearson's correlation."""
    return _call("corr", x, y)
