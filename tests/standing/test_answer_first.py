"""An answer is given before the states that it does not read are brought up to date; afterwards these are what they should be."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from nearly.engine.costs import Costs
from nearly.engine.native.failures import NativeFailure
from nearly.plan.nodes import GroupBy, Join
from nearly.standing.maintained import maintained, present
from nearly.standing.planner import StateBudget
from nearly.standing.refresh import advance, begin
from nearly.standing.states import StateStore
from nearly.standing.upkeep import CHANGE, WHOLE, StandingRefresh, Upkeep
from tests.engine.deltas.histories import Histories
from tests.engine.deltas.judging import bag

TEXT = "select r.a, count(*) as n from r join t on r.a = t.a group by r.a"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[Histories]:
    made = Histories(tmp_path, random.Random(5).choice)
    yield made
    made.db.close()


def _begun(history: Histories) -> Upkeep:
    """Groups, which the answer reads, and both sides of the join, which it does not, are kept."""
    engine = history.db._engine
    upkeep = Upkeep(engine, StateStore(engine), maintained(engine, TEXT), "one", StateBudget(1e9), Costs())
    (join,) = (node for node in upkeep.plan.walk() if isinstance(node, Join))
    (groups,) = (node for node in upkeep.plan.walk() if isinstance(node, GroupBy))
    upkeep.fixed, upkeep.forced = [groups, join.left, join.right], CHANGE
    begin(upkeep, present(engine, upkeep.query), {})
    assert len(upkeep.held) == 3
    return upkeep


def _expected(history: Histories, upkeep: Upkeep) -> object:
    pinned = history.db._engine.at(upkeep.tables.values())
    return bag(history.db._engine.run(history.db._engine.planner.over(pinned.catalog).prepare(TEXT)).table)


def test_sides_that_the_answer_does_not_read_come_after_it(history: Histories) -> None:
    upkeep, seen = _begun(history), list[int]()

    def answered(refresh: StandingRefresh) -> None:
        assert upkeep.answer is not None
        assert bag(upkeep.answer) == _expected(history, upkeep)
        seen.append(sum(state.rows for plan, state in upkeep.held.items() if not isinstance(plan, GroupBy)))

    upkeep.answered = answered
    for _ in range(3):
        before = sum(state.rows for plan, state in upkeep.held.items() if not isinstance(plan, GroupBy))
        history._insert("r")
        history._insert("t")
        (refresh,) = advance([upkeep], present(upkeep.engine, upkeep.query), [None])
        assert refresh.strategy == CHANGE
        assert seen[-1] == before
        for plan, state in upkeep.held.items():
            assert state.rows == upkeep.engine.at(upkeep.tables.values()).native.run_here(plan).num_rows
    assert len(seen) == 3
    upkeep.store.close()


def test_what_fails_after_the_answer_leaves_it_and_keeps_nothing(history: Histories, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep, told = _begun(history), list[StandingRefresh]()
    upkeep.answered = told.append

    def fail(*_: object) -> bool:
        raise NativeFailure("no memory is left")

    history._insert("r")
    with monkeypatch.context() as broken:
        broken.setattr(StateStore, "apply", fail)
        (refresh,) = advance([upkeep], present(upkeep.engine, upkeep.query), [None])
    assert told == [refresh]
    assert refresh.strategy == CHANGE
    assert upkeep.answer is not None
    assert bag(upkeep.answer) == _expected(history, upkeep)
    assert not upkeep.held
    upkeep.forced = None
    history._insert("t")
    (refresh,) = advance([upkeep], present(upkeep.engine, upkeep.query), [None])
    assert refresh.strategy == WHOLE
    assert bag(upkeep.answer) == _expected(history, upkeep)
    upkeep.store.close()
