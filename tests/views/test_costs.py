"""What refreshes took corrects what the next ones are expected to take."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from nearly.plan.expressions import TRUE, AggregateCall, Column
from nearly.plan.nodes import Filter, GroupBy, Input, Output, Plan, passed
from nearly.plan.schema import TableSchema
from nearly.plan.types import LONG
from nearly.rewrite.delta.changed import CHANGE, Delta, DeltaStage
from nearly.rewrite.delta.strategy.strategies import DELTA, WHOLE
from nearly.views.costs import FARTHEST, RefreshCosts, corrected
from nearly.views.states import Refresh

EXPECTED = {DELTA: 1.0, WHOLE: 2.0}


def took(strategy: str, seconds: float) -> Refresh:
    return Refresh(dt.datetime(2026, 1, 1, tzinfo=dt.UTC), strategy, "", 0, 0, 0, 0, seconds, EXPECTED)


def test_estimates_follow_what_refreshes_took() -> None:
    assert corrected(EXPECTED, []) == EXPECTED
    assert corrected(EXPECTED, [took(DELTA, 3.0)])[DELTA] == pytest.approx(3.0)
    assert corrected(EXPECTED, [took(DELTA, 3.0), took(DELTA, 1.0)])[DELTA] == pytest.approx(2.0)
    assert corrected(EXPECTED, [took(DELTA, 1000.0)])[DELTA] == pytest.approx(FARTHEST)


def test_who_reads_first_for_others_was_not_slow() -> None:
    first = replace(took(DELTA, 3.0), most=4.0)
    assert corrected(EXPECTED, [first])[DELTA] == pytest.approx(1.0)
    assert corrected(EXPECTED, [replace(first, seconds=8.0)])[DELTA] == pytest.approx(2.0)
    assert corrected(EXPECTED, [replace(first, seconds=0.5)])[DELTA] == pytest.approx(0.5)


def test_what_was_never_tried_is_off_in_part_as_the_making_was() -> None:
    """A machine that is slower than the constants is slower in every way; a query that is, not quite."""
    assert corrected(EXPECTED, [took(WHOLE, 8.0)]) == pytest.approx({DELTA: 2.0, WHOLE: 8.0})
    assert corrected(EXPECTED, [took(WHOLE, 8.0), took(DELTA, 1.0)])[DELTA] == pytest.approx(1.0)


def test_what_was_slow_once_is_tried_again() -> None:
    past = [took(DELTA, 5.0)]
    while corrected(EXPECTED, past)[DELTA] > corrected(EXPECTED, past)[WHOLE]:
        past.append(took(WHOLE, 2.0))
        assert len(past) < 10
    assert len(past) > 1


def test_what_is_only_added_to_groups_is_not_written_row_by_row() -> None:
    """Of a change that groups take up as sums, no more is held than there are groups; rows kept one by one count all."""
    read = Input(f"t{CHANGE}", (Column(LONG, "k"), Column(LONG, "v"), Column(LONG, "weight")))
    total = Output("total", AggregateCall(LONG, "sum", (Column(LONG, "v"),)))
    by_groups, by_rows = (
        GroupBy(read, passed(read.given[:1]), (total,)),
        Filter(GroupBy(read, passed(read.given[:2]), (total,)), TRUE),
    )
    last = Input("added", (Column(LONG, "weight"),))
    costs = RefreshCosts(lambda name: TableSchema(name, ()), 1, 1e-8)

    def seconds(stage: Plan, stored: int) -> float:
        return costs.delta(Delta((DeltaStage("added", stage),), last, last.given[0]), 8_000_000, stored, 1)

    assert seconds(by_groups, 10) < 0.1
    assert seconds(by_rows, 10) > 1.0
    assert seconds(by_groups, 80_000_000) == pytest.approx(seconds(by_rows, 10))
