"""Decisions on rows that wait for a value: as long as values stay in their ranges, deciding early changes nothing."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from nearly.plan.nodes import GroupBy, Input
from nearly.rewrite.passes import for_units
from nearly.rewrite.sites.split_aggregate import merged_parts
from nearly.rewrite.stream.cut import Cut, Gathered
from nearly.rewrite.stream.decide import Decision, decided_again
from nearly.rewrite.stream.firm_groups import firm_groups
from nearly.rewrite.stream.lookups import Lookup
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, shown_cut
from tests.rewrite.running import by_units, rows_differ, run

NAME = "stream/decide"
REACH = 20.0
"""Ranges reach so far to both sides of the final value; many rows lie beyond, some within."""


def waiting_of(case: QueryCase) -> tuple[Cut, Gathered, Decision]:
    """The cut of a query, and the stage whose rows wait."""
    cut = for_units(shop.planned(case.text), shop.schema)
    assert cut is not None
    stage = next(stage for stage in cut.stages if stage.waiting is not None)
    assert stage.waiting is not None
    return cut, stage, stage.waiting.decision


def known(decision: Decision, state: dict[str, pa.Table], reach: float = REACH) -> dict[str, pa.Table]:
    """Ranges around the final values of every lookup, but none for the first key, if there are several."""
    return {lookup.name: _known(lookup, state, reach) for lookup in decision.lookups}


def _known(lookup: Lookup, state: dict[str, pa.Table], reach: float) -> pa.Table:
    values = run(lookup.values, state)
    columns = {column.name: values[f"key_{place}"] for place, column in enumerate(lookup.ranges.given[: len(lookup.keys)])}
    for place in range(len(lookup.compared)):
        value, (low, high) = values[f"value_{place}"], lookup.ends(place)
        columns |= {low.name: pc.subtract(value, reach), high.name: pc.add(value, reach)}
    return pa.table(columns).slice(1 if values.num_rows > 1 else 0)


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_deciding_early_changes_nothing(case: QueryCase) -> None:
    cut, stage, decision = waiting_of(case)
    check(NAME, case, shown_cut(cut))
    expected = run(shop.planned(case.text))
    undecided = by_units(cut)
    assert rows_differ(expected, run(cut.tail, undecided), case.text) is None
    decided = by_units(cut, known(decision, undecided))
    assert rows_differ(expected, run(cut.tail, decided), case.text) is None
    assert decided[stage.name].num_rows < undecided[stage.name].num_rows, "rows surely in or out are not kept"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_deciding_late_gives_what_deciding_early_gives(case: QueryCase) -> None:
    cut, stage, decision = waiting_of(case)
    assert stage.waiting is not None
    assert isinstance(stage.plan, GroupBy)
    undecided = by_units(cut)
    ranges = known(decision, undecided)
    keys = tuple(key.name for key in stage.plan.keys if key.name not in (*stage.waiting.columns, stage.waiting.mark))
    rows = Input(stage.name, stage.plan.columns)
    merges = merged_parts(stage.plan, rows).aggregates
    folded = decided_again(rows, keys, stage.waiting.columns, stage.waiting.mark, decision, merges)
    late = run(folded, undecided | ranges)
    assert rows_differ(by_units(cut, ranges)[stage.name], late) is None
    assert rows_differ(run(shop.planned(case.text)), run(cut.tail, undecided | {stage.name: late}), case.text) is None


@pytest.mark.parametrize("reach", [1.0, REACH, 1e6])
def test_law_firm_groups_stay_and_only_open_ones_may_come(reach: float) -> None:
    text = "select kind, k, count(*) c from event where x > (select 1.5 * avg(x) from event) group by kind, k"
    cut, _, decision = waiting_of(QueryCase("decide", "firm", text))
    groups = firm_groups(cut.tail, cut.stages)
    assert groups is not None
    assert groups.places == (0, 1)
    state = by_units(cut)
    decided = by_units(cut, known(decision, state, reach))
    final = _keys(run(shop.planned(text)))
    firm, undecided = (_keys(run(plan, decided)) for plan in (groups.firm, groups.open))
    assert firm <= final <= firm | undecided
    assert bool(firm) == (reach < 100)
    assert len(undecided) < len(_keys(run(groups.open, state))) or reach > 100


def _keys(table: pa.Table) -> set[tuple[object, ...]]:
    return set(zip(*(column.to_pylist() for column in table.columns[:2]), strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) c from event e join (select kind g, avg(x) mean from event group by kind) m on e.x > m.mean",
        "select count(*) c from event e join (select kind g, avg(x) m from event group by kind, k) q on e.kind = q.g where x > m",
        "select count(*) c from event where kind in (select kind from event group by kind)",
    ],
)
def test_a_row_that_finds_several_is_not_decided(text: str) -> None:
    cut = for_units(shop.planned(text), shop.schema)
    assert cut is not None
    assert all(stage.waiting is None for stage in cut.stages)
