"""One aggregate over weighted rows: its estimate in terms of weighted sums."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from nearly.errors import Unsupported
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import AggregateCall, Call, Column, Expression, Literal, columns_of, conjunction
from nearly.plan.functions import call
from nearly.plan.functions.casting import coerce
from nearly.plan.nodes import GroupBy, Join, Output, Plan, Project
from nearly.plan.types import BOOLEAN, DOUBLE, LONG
from nearly.rewrite.weigh.relax import relaxed
from nearly.rewrite.weigh.weighted import FINAL, OPEN, REPLICATES, Growth, RowSet, Weighted, became_double

_UNCHANGED = frozenset({"min", "max", "bool_and", "bool_or", "percentile"})
"""Aggregates that do not grow with the rows; within a replicate all rows weigh the same, so quantiles need no weights."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate over weighted rows."""

    fresh: FreshNames
    plan: GroupBy
    rows: Weighted
    growth: Growth | None

    def weighted(self) -> Weighted:
        if self.rows.weight is None and self.rows.replicate is None and self.rows.seen is None and not self.rows.evolving:
            return Weighted(self.plan if self.plan.child == self.rows.plan else replace(self.plan, child=self.rows.plan))
        calls: list[Output] = []
        results = [Output(o.name, self._estimate(o.expression, calls)) for o in self.plan.aggregates]
        masks = _Masks(self.fresh, self.rows)
        evidence = {o.name: masks.of(relaxed(o.expression, self.rows.doubles)) for o in self.plan.aggregates}
        present = masks.present() if self.plan.keys else frozenset[str]()
        keys = tuple(replace(key, expression=relaxed(key.expression, self.rows.doubles)) for key in self.plan.keys)
        key_doubles = {new.name for new, old in zip(keys, self.plan.keys, strict=True) if became_double(new, old)}
        replicate_key = () if self.rows.replicate is None else (Output(self.rows.replicate.name, self.rows.replicate),)
        weight: Column | None = None
        seen: Column | None = None
        extra: list[Output] = []
        if self.plan.keys and self.rows.unit is not None:
            counted = Output(self.fresh("seen"), AggregateCall(LONG, "groups_seen", (self.rows.unit,)))
            calls.append(counted)
            seen = counted.column
            extra.append(Output(seen.name, seen))
        if self.growth is not None and seen is not None:
            share = _share(self.growth, seen)
            results = [self._shared(each, share) for each in results]
            stands_for = Output(self.fresh("weight"), Call(DOUBLE, "average_of", (Literal(DOUBLE, 1.0), share)))
            extra.append(stands_for)
            weight = stands_for.column
        calls += masks.outputs
        extra += [Output(each.name, each.column) for each in masks.outputs]
        grouped: Plan = GroupBy(self.rows.plan, (*keys, *replicate_key), tuple(calls), self.plan.sets, self.plan.grouping_id)
        replicate_ = self.rows.replicate
        if replicate_ is not None and not self.plan.keys:
            grouped, replicate_ = self._one_row_each(grouped, replicate_)
        passed = [Output(key.name, key.column) for key in keys]
        if self.plan.grouping_id is not None:
            passed.append(Output(self.plan.grouping_id.name, self.plan.grouping_id))
        if replicate_ is not None:
            passed.append(Output(replicate_.name, replicate_))
        finished = Project(grouped, (*passed, *results, *extra))
        doubles = frozenset(o.name for o, old in zip(results, self.plan.aggregates, strict=True) if became_double(o, old))
        evolving = frozenset(o.name for o in self.plan.aggregates) | frozenset(
            key.name for key in self.plan.keys if self.rows.evolves(key.expression)
        )
        extremes = frozenset(o.name for o in self.plan.aggregates if _is_extreme(o.expression))
        doubles |= key_doubles
        return Weighted(
            finished, replicate_, weight, None, seen, evolving, doubles, extremes, evidence, present, self._row_set()
        )  # fmt: skip

    def _row_set(self) -> RowSet:
        """Without keys there is one row; new keys come from units, or from new rows of estimates."""
        if not self.plan.keys:
            return FINAL
        if self.plan.sets is not None:
            return FINAL if self.rows.rows.final else OPEN
        changing = any(self.rows.evolves(key.expression) for key in self.plan.keys)
        below = self.rows.rows.hanging() if changing else self.rows.rows
        return replace(below, keys=(self.plan,), open=False) if self.rows.unit is not None else below

    def _one_row_each(self, grouped: Plan, replicate_: Column) -> tuple[Plan, Column]:
        """Over no rows an aggregate without keys still has a row, in every replicate."""
        name = Output(self.fresh("replicate"), REPLICATES.given[0])
        everyone = Project(REPLICATES, (name,))
        return Join(everyone, grouped, "left", Call(BOOLEAN, "=", (name.column, replicate_))), name.column

    def _shared(self, output: Output, share: Expression) -> Output:
        """A sum or count of a key that may be missed elsewhere; other aggregates do not grow with what is read."""
        if output.expression.type != DOUBLE or not self._is_total(output.name):
            return output
        return replace(output, expression=Call(DOUBLE, "*", (output.expression, share)))

    def _is_total(self, name: str) -> bool:
        found = next(o.expression for o in self.plan.aggregates if o.name == name)
        return isinstance(found, AggregateCall) and found.function in ("sum", "count", "count_if")

    def _estimate(self, expression: Expression, calls: list[Output]) -> Expression:
        """The estimate of one aggregate in terms of aggregates over the weighted rows, which are added to `calls`."""
        if not isinstance(expression, AggregateCall):
            raise Unsupported("an aggregate is expected")
        call_ = relaxed(expression, self.rows.doubles)
        assert isinstance(call_, AggregateCall)  # noqa: S101  relaxing keeps the kind
        weight = self.rows.weight
        if call_.distinct:
            raise Unsupported("distinct values of estimates")
        if call_.function in _UNCHANGED or weight is None:
            return self._added(call_, calls)
        match call_.function:
            case "count":
                return _or_zero(self._total(_present(call_.arguments), weight, call_.where, calls))
            case "count_if":
                return _or_zero(self._total(call_.arguments[0], weight, call_.where, calls))
            case "sum":
                return self._moment(call_, 1, weight, calls)
            case "avg":
                return Call(DOUBLE, "average_of", (self._moment(call_, 1, weight, calls), self._moment(call_, 0, weight, calls)))
        raise Unsupported(f"{call_.function} has no estimator yet")

    def _total(self, test: Expression, weight: Expression, where: Expression | None, calls: list[Output]) -> Expression:
        value = call("case", (test, weight, Literal(DOUBLE, 0.0)))
        return self._added(AggregateCall(DOUBLE, "sum", (value,), False, where), calls)

    def _moment(self, call_: AggregateCall, power: int, weight: Expression, calls: list[Output]) -> Expression:
        """sum of weight * x^power over the rows that have an x."""
        argument = coerce(call_.arguments[0], DOUBLE)
        value: Expression = weight
        for _ in range(power):
            value = Call(DOUBLE, "*", (value, argument))
        if power == 0:
            value = call("case", (Call(BOOLEAN, "isnotnull", (argument,)), weight, Literal(DOUBLE, None)))
        return self._added(AggregateCall(DOUBLE, "sum", (value,), False, call_.where), calls)

    def _added(self, call_: AggregateCall, calls: list[Output]) -> Column:
        output = Output(self.fresh("whole"), call_)
        calls.append(output)
        return output.column


@dataclass(slots=True)
class _Masks:
    """Columns that tell which unit groups contributed to the aggregates of some rows, one bit each. Replicates need none."""

    fresh: FreshNames
    rows: Weighted
    _made: dict[AggregateCall, Output] = field(default_factory=dict)

    @property
    def outputs(self) -> list[Output]:
        return list(self._made.values())

    def present(self) -> frozenset[str]:
        """Which unit groups the rows themselves hang on."""
        return self._together(self.rows.present, None) | self._of_units(None)

    def of(self, expression: Expression) -> frozenset[str]:
        """Which unit groups contributed to an aggregate."""
        if not isinstance(expression, AggregateCall):
            return frozenset()
        reads = columns_of(expression)
        below = self.rows.present | self.rows.contributing(reads)
        return self._together(below, expression.where) | self._of_units(_contributes(expression))

    def _of_units(self, where: Expression | None) -> frozenset[str]:
        if self.rows.unit is None or self.rows.replicate is not None:
            return frozenset()
        return frozenset({self._added(AggregateCall(LONG, "groups_of", (self.rows.unit,), False, where))})

    def _together(self, masks: frozenset[str], where: Expression | None) -> frozenset[str]:
        return frozenset(self._added(AggregateCall(LONG, "groups_in", (Column(LONG, name),), False, where)) for name in masks)

    def _added(self, call_: AggregateCall) -> str:
        if call_ not in self._made:
            self._made[call_] = Output(self.fresh("groups"), call_)
        return self._made[call_].name


def _contributes(call_: AggregateCall) -> Expression | None:
    """Whether a row says something about an aggregate: for a total, whether it changes it."""
    tests: list[Expression] = [] if call_.where is None else [call_.where]
    match call_.function:
        case "count":
            tests += [Call(BOOLEAN, "isnotnull", (argument,)) for argument in call_.arguments]
        case "count_if":
            tests.append(call_.arguments[0])
        case "sum" | "avg":
            tests.append(call("<>", (coerce(call_.arguments[0], DOUBLE), Literal(DOUBLE, 0.0))))
        case _:
            tests.append(Call(BOOLEAN, "isnotnull", (call_.arguments[0],)))
    return conjunction(tests)


def _is_extreme(expression: Expression) -> bool:
    return isinstance(expression, AggregateCall) and expression.function in ("min", "max")


def _share(growth: Growth, seen: Expression) -> Expression:
    """share(k), spelled out: k is at most the number of unit groups."""
    branches: list[Expression] = []
    for k, share in enumerate(growth, start=1):
        branches += [Call(BOOLEAN, "=", (seen, Literal(LONG, k))), Literal(DOUBLE, share)]
    return call("case", (*branches, Literal(DOUBLE, 1.0)))


def _present(arguments: tuple[Expression, ...]) -> Expression:
    """Whether `count` counts the row."""
    test: Expression = Literal(BOOLEAN, True)
    for argument in arguments:
        test = Call(BOOLEAN, "and", (test, Call(BOOLEAN, "isnotnull", (argument,))))
    return test


def _or_zero(value: Expression) -> Expression:
    return call("coalesce", (value, Literal(DOUBLE, 0.0)))
