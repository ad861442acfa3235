"""What refreshes took corrects what the next ones are expected to take."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

import pytest

from nearly.plan.expressions import TRUE, AggregateCall, Call, Column, Literal
from nearly.plan.nodes import Field, Filter, GroupBy, Input, Join, Output, Plan, Scan, passed
from nearly.plan.schema import TableSchema
from nearly.plan.types import BOOLEAN, LONG
from nearly.rewrite.delta.changed import CHANGE, Delta, DeltaStage
from nearly.rewrite.delta.strategy.strategies import DELTA, WHOLE
from nearly.views.costs import FARTHEST, REACH, RefreshCosts, corrected
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


def test_what_was_quick_is_not_thought_slower_while_other_ways_are_taken() -> None:
    assert corrected(EXPECTED, [took(WHOLE, 0.5), *[took(DELTA, 1.0)] * 3])[WHOLE] == pytest.approx(0.5)


def test_what_a_small_refresh_took_tells_less_of_a_large_one() -> None:
    past = [took(DELTA, 0.25)]
    assert corrected({DELTA: REACH}, past)[DELTA] == pytest.approx(0.5 * REACH)
    assert corrected({DELTA: 1 / REACH}, past)[DELTA] == pytest.approx(0.5 / REACH)


READ = Input(f"t{CHANGE}", (Column(LONG, "k"), Column(LONG, "v"), Column(LONG, "weight")))
TOTAL = Output("total", AggregateCall(LONG, "sum", (Column(LONG, "v"),)))
LAST = Input("added", (Column(LONG, "weight"),))
TABLES = {"u": TableSchema("u", (), ("k",), 100_000_000)}


def seconds(stages: Sequence[DeltaStage], changed: int, stored: int = 10) -> float:
    costs = RefreshCosts(lambda name: TABLES[name], 1, 1e-8)
    return costs.delta(Delta(tuple(stages), LAST, LAST.given[0]), {READ.source: changed}, stored, 1)


def netted(rows: Plan, name: str = "added") -> DeltaStage:
    return DeltaStage(name, Filter(GroupBy(rows, passed(READ.given[:2]), (TOTAL,)), TRUE), nets=True)


def test_what_is_only_added_to_groups_is_not_held_row_by_row() -> None:
    """Of a change that groups take up as sums, no more is written than there are groups; rows that are netted count all."""
    by_groups = DeltaStage("added", GroupBy(READ, passed(READ.given[:1]), (TOTAL,)))
    assert seconds([by_groups], 8_000_000) < 0.1
    assert seconds([by_groups], 8_000_000, stored=80_000_000) > 1.0
    assert seconds([netted(READ)], 8_000_000) > 1.0


def test_every_netting_counts_and_filters_come_first() -> None:
    once = seconds([netted(READ)], 8_000_000)
    assert seconds([netted(READ), netted(READ, "again")], 8_000_000) == pytest.approx(2 * once, rel=0.05)
    few = Filter(READ, Call(BOOLEAN, "=", (Column(LONG, "k"), Literal(LONG, 1))))
    assert seconds([netted(few)], 8_000_000) < 0.2 * once


def test_rows_by_few_keys_cost_less_than_by_many() -> None:
    """As many keys are asked for as the stage has that asks."""
    scan = Scan("u", (Field("u_k", "k", LONG, False),))
    test = Call(BOOLEAN, "=", (Column(LONG, "u_k"), Column(LONG, "k")))

    def asking(rows: Plan) -> DeltaStage:
        return DeltaStage("added", GroupBy(Join(scan, rows, "semi", test), (), (TOTAL,)))

    few = Filter(READ, Call(BOOLEAN, "=", (Column(LONG, "v"), Literal(LONG, 1))))
    assert seconds([asking(few)], 80_000_000) < 0.7 * seconds([asking(READ)], 80_000_000)
