"""The range of one aggregate over certain and missing rows together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from nearly.missing.programmes.cells import TimeLimit
from nearly.missing.programmes.effects import AMOUNTS, RANKS, RangeQuestion
from nearly.missing.programmes.ends import average_end, count_end, extreme_end, sum_end
from nearly.missing.programmes.problem import AffectedPart, End, Problem
from nearly.missing.range_answer import KnownAggregate, number
from nearly.plan.types import DataType
from nearly.plan.values.ranges import Extent
from nearly.plan.values.rounding import typed

ENDS = ("low", "high")


@dataclass(frozen=True, slots=True)
class AggregateRange:
    """Both ends; `low` and `high` are values of the aggregate (ranks for MIN and MAX of a column), None without a limit."""

    function: str
    question: RangeQuestion
    low: Any
    high: Any
    ends: tuple[End, End]
    is_column: bool

    def end(self, side: str) -> End:
        return self.ends[ENDS.index(side)]

    def value(self, side: str, type_: DataType) -> Any:
        """The end as a value of the aggregate's type; None for no limit, or one beyond the type.

        Spark rounds an average to its type. Rounding is monotone, so rounding both ends the same way keeps every instance inside
        them, and the instances at the ends on them.
        """
        found, measure = self.low if side == "low" else self.high, self.question.measure
        if self.is_column and found is not None and measure.column is not None:
            found = measure.regions.domain(measure.column).value(found)
        return typed(found, type_)

    def extent(self, type_: DataType) -> Extent:
        """Both ends as values of the aggregate's type."""
        return Extent(self.value("low", type_), self.value("high", type_))

    @property
    def is_tight(self) -> bool:
        return all(end.proven for end in self.ends) and self.question.measure.is_tight


@dataclass(frozen=True, slots=True)
class Ranger:
    """Computes ranges of aggregates for one problem. With `loose`, any row may be silent, as for one of many groups."""

    problem: Problem
    deadline: TimeLimit
    reuse: bool = False
    loose: bool = False

    def __call__(self, function: str, question: RangeQuestion, certain: KnownAggregate) -> AggregateRange:
        question.measure.check(numeric=function in ("sum", "avg"))
        return _FUNCTIONS[function](self, function, question, certain)

    def affected(self, question: RangeQuestion, kind: str) -> list[AffectedPart]:
        span_of = question.measure.ranks if kind == RANKS else question.measure.amounts
        found = self.problem.affected(question, span_of, kind, self.deadline, reuse=self.reuse)
        if not self.loose:
            return found
        return [replace(one, effects=[replace(effect, silent=True) for effect in one.effects]) for one in found]

    def total(self, function: str, question: RangeQuestion, certain: KnownAggregate) -> AggregateRange:
        """SUM and COUNT."""
        end_of = sum_end if function == "sum" else count_end
        affected = self.affected(question, AMOUNTS if function == "sum" or question.measure.column is None else RANKS)
        low, high = end_of(affected, "low"), end_of(affected, "high")
        ends = _plus(low.value, certain.value.low), _plus(high.value, certain.value.high)
        return AggregateRange(function, question, *ends, (low, high), is_column=False)

    def average(self, function: str, question: RangeQuestion, certain: KnownAggregate) -> AggregateRange:
        """The bounds of sum and count are taken as independent: each end is sought at both ends of the count."""
        affected = self.affected(question, AMOUNTS)
        if certain.sum is None or certain.count is None or certain.count.low is None or certain.count.high is None:
            return _unknown(function, question)
        ends = []
        for side, total, best in (("low", certain.sum.low, min), ("high", certain.sum.high, max)):
            if total is None and certain.count.high:
                return _unknown(function, question)
            counts = sorted({int(certain.count.low), int(certain.count.high)})
            found = [average_end(affected, side, number(total), count) for count in counts]
            known = [end for end in found if end.exists]
            unlimited = [end for end in known if end.value is None]
            ends.append(unlimited[0] if unlimited else best(known, key=lambda end: end.value) if known else found[0])
        return AggregateRange(function, question, ends[0].value, ends[1].value, (ends[0], ends[1]), is_column=False)

    def extreme(self, function: str, question: RangeQuestion, certain: KnownAggregate) -> AggregateRange:
        affected = self.affected(question, RANKS)
        column = question.measure.column
        ranks = [self._rank(question, value) for value in (certain.value.low, certain.value.high)]
        some = [rank is not None or not certain.complete for rank in ranks]
        ends = [extreme_end(affected, function, side, certain=known) for side, known in zip(ENDS, some, strict=True)]
        best = max if function == "max" else min
        low, high = (_extreme(end, rank, best) for end, rank in zip(ends, ranks, strict=True))
        if not certain.complete and ranks[function == "max"] is None:
            low, high = (low, None) if function == "max" else (None, high)
        return AggregateRange(function, question, low, high, (ends[0], ends[1]), is_column=column is not None)

    def _rank(self, question: RangeQuestion, value: Any) -> Any:
        column = question.measure.column
        if value is None:
            return None
        return number(value) if column is None else self.problem.bound.rows.domains[column].floor(value)[0]


_FUNCTIONS: dict[str, Callable[..., AggregateRange]] = {
    "sum": Ranger.total,
    "count": Ranger.total,
    "avg": Ranger.average,
    "min": Ranger.extreme,
    "max": Ranger.extreme,
}


def _plus(missing: Fraction | None, certain: Any) -> Fraction | None:
    return None if missing is None or certain is None else missing + number(certain)


def _extreme(end: End, certain: Any, best: Callable[..., Any]) -> Any:
    if not end.exists:
        return certain
    if end.value is None or certain is None:
        return end.value
    return best(end.value, certain)


def _unknown(function: str, question: RangeQuestion) -> AggregateRange:
    nothing = End(None, False, (), (), (), "low")
    return AggregateRange(function, question, None, None, (nothing, nothing), is_column=False)
