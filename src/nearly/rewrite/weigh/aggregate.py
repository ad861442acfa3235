"""One aggregate over weighted rows: its estimate in terms of weighted sums."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from nearly.errors import Unsupported
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import AggregateCall, Call, Column, Expression, Literal, columns_of, conjunction
from nearly.plan.functions import call
from nearly.plan.functions.casting import coerce
from nearly.plan.nodes import GroupBy, Join, Output, Plan, Project, passed
from nearly.plan.types import BOOLEAN, DOUBLE, LONG
from nearly.rewrite.weigh.relax import became_double, relaxed
from nearly.rewrite.weigh.weighted import (
    FINAL,
    OPEN,
    REPLICATES,
    THEMSELVES,
    Growth,
    OfKeys,
    OfPairs,
    OfUnits,
    RowSet,
    Standing,
    Weighted,
)

_UNCHANGED = frozenset({"min", "max", "bool_and", "bool_or", "percentile"})
"""Aggregates that do not grow with the rows; within a replicate all rows weigh the same, so quantiles need no weights."""

_LINEAR = frozenset({"sum", "count", "count_if", "avg"})


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregate over weighted rows."""

    fresh: FreshNames
    plan: GroupBy
    rows: Weighted
    growth: Growth | None
    unlike: bool = False
    """Whether most of its keys may be in units unlike those read."""

    def weighted(self) -> Weighted:
        rows, plan = self.rows, self.plan
        if rows.standing == THEMSELVES and rows.replicate is None and not rows.evolving and rows.rows.final:
            return Weighted(plan if plan.child == rows.plan else replace(plan, child=rows.plan))
        calls: list[Output] = []
        results = [Output(o.name, self._estimate(o.expression, calls)) for o in plan.aggregates]
        masks = _Masks(self.fresh, rows)
        evidence = {o.name: masks.of(relaxed(o.expression, rows.doubles)) for o in plan.aggregates}
        present = masks.present() if plan.keys else frozenset[str]()
        keys = tuple(replace(key, expression=relaxed(key.expression, rows.doubles)) for key in plan.keys)
        standing, results, made = self._standing(calls, results)
        grouped, replicate_ = self._grouped(keys, (*calls, *masks.outputs))
        named = [key.column for key in keys] + [each for each in (plan.grouping_id, replicate_) if each is not None]
        outputs = (*passed(named), *results, *made, *passed(mask.column for mask in masks.outputs))
        changes = zip((*results, *keys), (*plan.aggregates, *plan.keys), strict=True)
        doubles = frozenset(new.name for new, old in changes if became_double(new, old))
        evolving = [o.name for o in plan.aggregates] + [key.name for key in plan.keys if rows.evolves(key.expression)]
        extremes = frozenset(
            o.name for o in plan.aggregates
            if rows.by_extremes or rows.unlike or _is_extreme(o.expression) or columns_of(o.expression) & rows.extremes
        )  # fmt: skip
        return Weighted(
            Project(grouped, outputs), standing, replicate_, frozenset(evolving), doubles, extremes,
            evidence, present, self._row_set(), rows.by_extremes, self._jumps(),
            curved=frozenset(o.name for o in plan.aggregates if _function(o.expression) not in _LINEAR),
        )  # fmt: skip

    def _jumps(self) -> bool:
        """Whether estimates pick what is aggregated, the rows or values of them, or bend it."""
        bent = any(_bending(self.rows, o.expression) for o in self.plan.aggregates)
        return self.rows.of_picked or self.rows.rows.undecided or bent

    def _standing(self, calls: list[Output], results: list[Output]) -> tuple[Standing, list[Output], list[Output]]:
        """What the groups stand for, the results scaled by what their keys may have missed, and the columns that tell it."""
        if not self.plan.keys or not isinstance(self.rows.standing, OfUnits):
            return THEMSELVES, results, []
        counted = Output(self.fresh("seen"), AggregateCall(LONG, "groups_seen", (self.rows.standing.unit,)))
        calls.append(counted)
        seen = Output(counted.name, counted.column)
        if self.growth is None:
            return OfKeys(None, seen.column, self.unlike), results, [seen]
        share = _share(self.growth, seen.column)
        weight = Output(self.fresh("weight"), Call(DOUBLE, "average_of", (Literal(DOUBLE, 1.0), share)))
        return OfKeys(weight.column, seen.column, self.unlike), [self._shared(each, share) for each in results], [seen, weight]

    def _grouped(self, keys: tuple[Output, ...], calls: tuple[Output, ...]) -> tuple[Plan, Column | None]:
        """The groups, in each replicate, and the column that numbers it."""
        number = self.rows.replicate
        by = keys if number is None else (*keys, *passed((number,)))
        grouped = GroupBy(self.rows.plan, by, calls, self.plan.sets, self.plan.grouping_id)
        return (grouped, number) if keys or number is None else self._one_row_each(grouped, number)

    def _row_set(self) -> RowSet:
        """Without keys there is one row; new keys come from units, or from new rows of estimates."""
        if not self.plan.keys:
            return FINAL
        if self.plan.sets is not None:
            return FINAL if self.rows.rows.final else OPEN
        changing = any(self.rows.evolves(key.expression) for key in self.plan.keys)
        below = self.rows.rows.hanging() if changing else self.rows.rows
        return replace(below, keys=(self.plan,), open=False) if isinstance(self.rows.standing, OfUnits | OfPairs) else below

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
        below = self.rows.present | self.rows.contributing(columns_of(expression))
        picking = self.rows.deciding | self.rows.contributing(_bending(self.rows, expression))
        most = frozenset(self._added(_of_mask("groups_of_most", name, None)) for name in sorted(picking))
        return self._together(below, expression.where) | most | self._of_units(_contributes(expression))

    def _of_units(self, where: Expression | None) -> frozenset[str]:
        match self.rows.standing:
            case OfUnits(unit=unit):
                units: tuple[Column, ...] = (unit,)
            case OfPairs(units=units):
                pass
            case _:
                units = ()
        wanted = units if self.rows.replicate is None else ()
        return frozenset(self._added(AggregateCall(LONG, "groups_of", (unit,), False, where)) for unit in wanted)

    def _together(self, masks: frozenset[str], where: Expression | None) -> frozenset[str]:
        return frozenset(self._added(_of_mask("groups_in", name, where)) for name in sorted(masks))

    def _added(self, call_: AggregateCall) -> str:
        if call_ not in self._made:
            self._made[call_] = Output(self.fresh("groups"), call_)
        return self._made[call_].name


def _of_mask(function: str, mask: str, where: Expression | None) -> AggregateCall:
    return AggregateCall(LONG, function, (Column(LONG, mask),), False, where)


def _bending(rows: Weighted, expression: Expression) -> frozenset[str]:
    """The estimates of which an aggregate over rows is no linear function: tested, compared, squared.

    A total over such values, each made of few rows, is off however many they are: noise that takes one over a limit is not made up
    for by noise that takes another back.
    """
    if not isinstance(expression, AggregateCall):
        return frozenset()
    tested = frozenset[str]() if expression.where is None else columns_of(expression.where)
    bent = [each for each in expression.arguments if expression.function not in _LINEAR or rows.bends(each)]
    return tested.union(*map(columns_of, bent)) & rows.evolving


def _function(expression: Expression) -> str:
    return expression.function if isinstance(expression, AggregateCall) else ""


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
    return _function(expression) in ("min", "max", "percentile")


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
