"""Variances, covariances and correlations as arithmetic of sums, which can be merged and scaled.

Exactly they are computed from deviations, so these forms serve estimates only: x^2 loses digits where the mean is large.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import AggregateCall, Call, Expression, Literal
from nearly.plan.functions import call
from nearly.plan.functions.casting import coerce
from nearly.plan.nodes import GroupBy, Output, Plan, Project
from nearly.plan.types import BOOLEAN, DOUBLE, LONG, NULL

_FREEDOM = {"variance": 1.0, "stddev": 1.0, "var_pop": 0.0, "stddev_pop": 0.0, "covar_samp": 1.0, "covar_pop": 0.0}


@dataclass(frozen=True, slots=True)
class ByMoments:
    """An aggregate of sums, and what becomes of them."""

    inner: GroupBy
    results: tuple[Output, ...]

    def outer(self, sums: Plan) -> Plan:
        return Project(sums, self.results)


def by_moments(plan: GroupBy, fresh: FreshNames) -> ByMoments | None:
    """The aggregate in terms of sums; None when nothing in it has such a form."""
    sums = _Sums(fresh)
    results: dict[str, Expression] = {}
    kept = []
    for output in plan.aggregates:
        found = output.expression
        if isinstance(found, AggregateCall) and (found.function in _FREEDOM or found.function == "corr") and not found.distinct:
            results[output.name] = _spread(found, sums)
        else:
            kept.append(output)
    if not results:
        return None
    inner = replace(plan, aggregates=(*kept, *sums.outputs.values()))
    return ByMoments(inner, tuple(Output(column.name, results.get(column.name, column)) for column in plan.columns))


@dataclass(slots=True)
class _Sums:
    """The sums asked for so far, each once."""

    fresh: FreshNames
    outputs: dict[AggregateCall, Output] = field(default_factory=dict)

    def total(self, value: Expression, where: Expression | None) -> Expression:
        return self._added(AggregateCall(DOUBLE, "sum", (value,), False, where))

    def count(self, value: Expression, where: Expression | None) -> Expression:
        return coerce(self._added(AggregateCall(LONG, "count", (value,), False, where)), DOUBLE)

    def _added(self, aggregate: AggregateCall) -> Expression:
        if aggregate not in self.outputs:
            self.outputs[aggregate] = Output(self.fresh("moment"), aggregate)
        return self.outputs[aggregate].column


def _spread(found: AggregateCall, sums: _Sums) -> Expression:
    first, *others = (coerce(each, DOUBLE) for each in found.arguments)
    if not others:
        variance = _centred(first, first, found.where, sums, _FREEDOM[found.function])
        return call("sqrt", (variance,)) if found.function.startswith("stddev") else variance
    x, y = _where_both(first, others[0]), _where_both(others[0], first)
    if found.function != "corr":
        return _centred(x, y, found.where, sums, _FREEDOM[found.function])
    scale = call("*", (_centred(x, x, found.where, sums, 0.0), _centred(y, y, found.where, sums, 0.0)))
    return Call(DOUBLE, "average_of", (_centred(x, y, found.where, sums, 0.0), call("sqrt", (scale,))))


def _centred(x: Expression, y: Expression, where: Expression | None, sums: _Sums, freedom: float) -> Expression:
    """(sum xy - sum x sum y / n) / (n - freedom), and at least 0 when x is y."""
    count = sums.count(x, where)
    product = sums.total(Call(DOUBLE, "*", (x, y)), where)
    means = Call(DOUBLE, "average_of", (Call(DOUBLE, "*", (sums.total(x, where), sums.total(y, where))), count))
    above: Expression = Call(DOUBLE, "-", (product, means))
    if x == y:
        above = call("case", (call("<", (above, Literal(DOUBLE, 0.0))), Literal(DOUBLE, 0.0), above))
    return Call(DOUBLE, "average_of", (above, Call(DOUBLE, "-", (count, Literal(DOUBLE, freedom)))))


def _where_both(value: Expression, other: Expression) -> Expression:
    """The value where the other side of the pair is present, too."""
    return call("case", (Call(BOOLEAN, "isnull", (other,)), Literal(NULL, None), value))
