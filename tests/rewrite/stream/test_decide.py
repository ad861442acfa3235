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


def known(decision: Decision, state: dict[str, pa.Table]) -> pa.Table:
    """Ranges around the final values, but none for the first key, if there are several."""
    values = run(decision.values, state)
    columns = {name: values[name] for name in values.column_names if name.startswith("key_")}
    for place in range(len(decision.comparisons)):
        value = values[f"value_{place}"]
        columns |= {f"low_{place}": pc.subtract(value, REACH), f"high_{place}": pc.add(value, REACH)}
    return pa.table(columns).slice(1 if values.num_rows > 1 else 0)


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_deciding_early_changes_nothing(case: QueryCase) -> None:
    cut, stage, decision = waiting_of(case)
    check(NAME, case, shown_cut(cut))
    expected = run(shop.planned(case.text))
    undecided = by_units(cut)
    assert rows_differ(expected, run(cut.tail, undecided), case.text) is None
    decided = by_units(cut, {decision.name: known(decision, undecided)})
    assert rows_differ(expected, run(cut.tail, decided), case.text) is None
    assert decided[stage.name].num_rows < undecided[stage.name].num_rows, "rows surely in or out are not kept"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_deciding_late_gives_what_deciding_early_gives(case: QueryCase) -> None:
    cut, stage, decision = waiting_of(case)
    assert stage.waiting is not None
    assert isinstance(stage.plan, GroupBy)
    undecided = by_units(cut)
    ranges = {decision.name: known(decision, undecided)}
    keys = tuple(key.name for key in stage.plan.keys if key.name not in (*stage.waiting.columns, stage.waiting.mark))
    rows = Input(stage.name, stage.plan.columns)
    merges = merged_parts(stage.plan, rows).aggregates
    folded = decided_again(rows, keys, stage.waiting.columns, stage.waiting.mark, decision, merges)
    late = run(folded, undecided | ranges)
    assert rows_differ(by_units(cut, ranges)[stage.name], late) is None
    assert rows_differ(run(shop.planned(case.text)), run(cut.tail, undecided | {stage.name: late}), case.text) is None
