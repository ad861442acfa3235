"""Whether changes are taken, and what is made for the next ones, is judged by all work, and by where rows that went lie."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from nearly.plan.schema import TableSchema
from nearly.standing import refresh as refreshing
from nearly.standing.actions import Prices, own_actions
from nearly.standing.arrivals import Expected
from nearly.standing.course import StandingCourse
from nearly.standing.maintained import present
from nearly.standing.operators import SCAN, Operator, Sizes, operators
from nearly.standing.planner import StateBudget
from nearly.standing.refresh import advance, begin
from nearly.standing.states import StateStore
from nearly.standing.upkeep import CHANGE, WHOLE, Upkeep
from tests.engine.deltas.histories import Histories
from tests.standing.test_refresh import PREDICTION, judge, upkeep_of

TEXT = "select r.a, count(*) as n from r join t on r.a = t.a group by r.a"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[Histories]:
    made = Histories(tmp_path, random.Random(3).choice)
    yield made
    made.db.close()


@pytest.fixture
def upkeep(history: Histories) -> Iterator[Upkeep]:
    made = upkeep_of(history, StateStore(history.db._engine), TEXT, "one", StateBudget(1e9))
    yield made
    made.release()
    made.store.close()


def _keep_all(upkeep: Upkeep) -> None:
    """All parts of the plan are kept, for once."""
    tables = present(upkeep.engine, upkeep.query)
    begin(upkeep, tables, {})
    upkeep.fixed = [each.plan for each in upkeep.root(tables, {}).walk()]
    begin(upkeep, tables, PREDICTION)
    upkeep.fixed = None
    assert upkeep.held


def test_a_delta_that_was_dear_after_its_answer_is_not_taken_again(
    history: Histories, upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer may be quick, and what is kept take longer than computing all."""
    _keep_all(upkeep)
    upkeep.whole_seconds = 1.0
    before, bring = upkeep.answer, refreshing._bring_states

    def dawdle(courses: Sequence[StandingCourse], brought: set[str], wanted: Collection[str]) -> None:
        if upkeep.answer is not before:
            time.sleep(2.0)
        bring(courses, brought, wanted)

    history._insert("r")
    with monkeypatch.context() as slow:
        slow.setattr(refreshing, "_bring_states", dawdle)
        (first,) = advance([upkeep], present(upkeep.engine, upkeep.query), [None])
    assert first.strategy == CHANGE
    assert first.seconds < upkeep.whole_seconds
    assert upkeep.observed is not None
    assert upkeep.observed.took >= 2.0
    history._insert("r")
    (second,) = advance([upkeep], present(upkeep.engine, upkeep.query), [None])
    assert second.strategy == WHOLE
    assert not upkeep.held
    judge(history, upkeep)


def test_nothing_is_made_where_nothing_is_expected(history: Histories, upkeep: Upkeep) -> None:
    """What is kept stays as it is; of a query that begins so, nothing is kept."""
    begin(upkeep, present(upkeep.engine, upkeep.query), {})
    assert not upkeep.held
    _keep_all(upkeep)
    held = {plan: state.table for plan, state in upkeep.held.items()}
    upkeep.forced = CHANGE
    history._insert("r")
    (refresh,) = advance([upkeep], present(upkeep.engine, upkeep.query), [{}])
    assert refresh.strategy == CHANGE
    assert {plan: state.table for plan, state in upkeep.held.items()} == held
    judge(history, upkeep)


def test_rows_that_went_are_read_among_those_that_stay(history: Histories, upkeep: Upkeep) -> None:
    """Many of them cost a scan of the table, as many that came cost themselves alone."""
    begin(upkeep, present(upkeep.engine, upkeep.query), {})

    def large(name: str) -> TableSchema:
        return replace(upkeep.tables[name.lower()].schema, rows=10_000_000)

    def scan(said: Expected) -> Operator:
        root = operators(upkeep.plan, Sizes(large, {"r": said.rows}, shrink={"r": said.deleted} if said.deleted else {}))
        return next(op for op in root.walk() if op.kind == SCAN and op.change)

    came, few, many = scan(Expected(1e5)), scan(Expected(0.0, 10.0)), scan(Expected(0.0, 1e5))
    seconds = [own_actions(op, Prices())[0].change.seconds for op in (came, few, many)]
    assert came.sought == 0
    assert 0 < few.sought < many.sought == 10_000_000
    assert seconds[1] < seconds[2]
    assert seconds[0] < seconds[2] <= own_actions(many, Prices())[0].full.seconds + seconds[0]
