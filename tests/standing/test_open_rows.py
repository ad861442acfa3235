"""Rows that SQL leaves open, and last digits of sums of doubles: nothing that hangs on them is kept, whoever asks for it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from nearly.plan.expressions import WindowCall
from nearly.plan.nodes import Filter, GroupBy, Limit, Plan, SetOperation, Window
from nearly.standing.maintained import present
from nearly.standing.operators import Operator
from nearly.standing.planner import StateBudget
from nearly.standing.refresh import advance, begin
from nearly.standing.states import StateStore
from nearly.standing.upkeep import CHANGE, Upkeep
from tests.engine.deltas.histories import Histories
from tests.standing.test_refresh import PREDICTION, judge, upkeep_of

TIES = "select s, count(*) as n from (select s, row_number() over (partition by a order by a) as i from r) where i = 1 group by s"
SUMS = "select a, sum(cast(b as double)) as x from r group by a"
OPEN: dict[str, type[Plan]] = {
    "select x, count(*) as n from (select first_value(b) over (partition by a order by a) as x from r) group by x": Window,
    "select b, count(*) as n from (select a, b from r order by a limit 2) group by b": Limit,
    f"select x, count(*) as n from ({SUMS}) group by x": GroupBy,
    f"select max(x) as most, min(x) as least from ({SUMS})": GroupBy,
    f"select a % 2 as k, count(*) as n from ({SUMS} having sum(cast(b as double)) > 1.5) group by a % 2": Filter,
    f"select a % 2 as k, count_if(x > 1.5) as n from ({SUMS}) group by a % 2": GroupBy,
    f"select a % 2 as k, sum(i) as n from (select a, rank() over (order by x) as i from ({SUMS})) group by a % 2": Window,
    f"select a % 2 as k, count(*) as n from (select a from ({SUMS}) order by x, a limit 2) group by a % 2": Limit,
    f"select x from ({SUMS}) intersect select cast(b as double) from t": SetOperation,
}
"""Queries, and the kind of the operator from which on nothing is kept."""
SETTLED = (
    TIES,
    f"select a % 2 as k, count(*) as n, count(x) as m, sum(x) as t from ({SUMS}) group by a % 2",
    "select a, count(*) as n from (select a, b from r order by a, b, s limit 4) group by a",
)


@pytest.fixture
def history(tmp_path: Path) -> Iterator[Histories]:
    made = Histories(tmp_path, random.Random(3).choice)
    yield made
    made.db.close()


def all_parts(upkeep: Upkeep) -> list[Plan]:
    def parts(op: Operator) -> Iterator[Plan]:
        yield op.plan
        for each in op.inputs:
            yield from parts(each)

    return list(dict.fromkeys(parts(upkeep.root(present(upkeep.engine, upkeep.query), {}))))


def advanced(history: Histories, upkeep: Upkeep) -> None:
    """All that may be kept is, whatever the planner would choose; two refreshes from changes."""
    upkeep.fixed, upkeep.forced = all_parts(upkeep), CHANGE
    begin(upkeep, present(upkeep.engine, upkeep.query), PREDICTION)
    for _ in range(2):
        history._insert("r")
        history._delete("r")
        (refresh,) = advance([upkeep], present(upkeep.engine, upkeep.query), [PREDICTION])
        assert refresh.strategy == CHANGE
        assert refresh.reason == "asked for"


@pytest.mark.parametrize("text", OPEN)
def test_nothing_is_kept_above_rows_that_are_open(text: str, history: Histories) -> None:
    store = StateStore(history.db._engine)
    upkeep = upkeep_of(history, store, text, "one", StateBudget(1e9))
    advanced(history, upkeep)
    assert any(isinstance(node, OPEN[text]) for node in upkeep.plan.walk())
    assert upkeep.held
    assert upkeep.plan not in upkeep.held
    kept = [node for plan in upkeep.held for node in plan.walk()]
    assert not any(isinstance(node, OPEN[text]) and (OPEN[text] is not GroupBy or _is_over_sums(node)) for node in kept)
    upkeep.fixed = upkeep.forced = None
    planned = upkeep.choose(upkeep.tables, PREDICTION)
    assert all(upkeep.may_keep(each.plan, upkeep.tables) for each in planned.keeps)
    store.close()


def _is_over_sums(plan: Plan) -> bool:
    return any(isinstance(node, GroupBy) for child in plan.children for node in child.walk())


@pytest.mark.parametrize("text", SETTLED)
def test_what_is_settled_is_kept(text: str, history: Histories) -> None:
    store = StateStore(history.db._engine)
    upkeep = upkeep_of(history, store, text, "one", StateBudget(1e9))
    advanced(history, upkeep)
    assert any(isinstance(plan, GroupBy) and plan.child in set(upkeep.plan.walk()) for plan in upkeep.held)
    assert all(upkeep.may_keep(plan, upkeep.tables) for plan in all_parts(upkeep))
    if text != TIES:
        judge(history, upkeep)
    store.close()


def test_rows_that_tie_are_in_one_order_for_all_states(history: Histories) -> None:
    upkeep = upkeep_of(history, StateStore(history.db._engine), TIES, "one", StateBudget(1e9))
    (window,) = (node for node in upkeep.plan.walk() if isinstance(node, Window))
    (call,) = (each.expression for each in window.outputs)
    assert isinstance(call, WindowCall)
    used = {key.expression for key in call.order} | set(call.partition)
    assert set(window.child.columns) <= used
    upkeep.store.close()
