"""Deltas of plans: golden stages, and what they come to when the tables change."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from nearly.plan.nodes import Plan, Scan
from nearly.rewrite.delta.changed import WEIGHT, Delta, TableChange
from nearly.rewrite.delta.delta import delta
from nearly.rewrite.delta.domains import domain
from nearly.rewrite.delta.empty import Known, without_empty
from nearly.rewrite.delta.sharpen import sharpen
from tests.engine.deltas.judging import bag, difference, signed
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, under
from tests.rewrite.running import run

NAME = "delta/delta"


def versions(name: str, grew: bool) -> tuple[pa.Table, pa.Table]:
    """A table before and after: some rows went, unless it grew, some came, and some came twice."""
    rows = shop.tables()[name]
    cut = max(1, rows.num_rows // 8)
    after = pa.concat_tables([rows.slice(0 if grew else cut), rows.slice(rows.num_rows - 1)])
    return rows.slice(0, rows.num_rows - cut), after


def rows_at(place: int, changed: set[str], grew: bool) -> dict[str, pa.Table]:
    return {name: versions(name, grew)[place] if name in changed else table for name, table in shop.tables().items()}


def change_of(name: str, grew: bool) -> pa.Table:
    old, new = versions(name, grew)
    if grew:
        old, new = old.slice(0, 0), new.slice(old.num_rows)
    signs = [pa.array([sign] * each.num_rows, pa.int64()) for each, sign in ((old, -1), (new, 1))]
    return pa.concat_tables(each.append_column(WEIGHT, sign) for each, sign in zip((old, new), signs, strict=True))


def staged(found: Delta, changed: set[str], grew: bool, *, ending: bool) -> pa.Table:
    """The rows of a delta, stage by stage; with `ending` without the branches that turn out empty."""
    tables = rows_at(1, changed, grew) | {f"{name}@before": versions(name, grew)[0] for name in changed}
    inputs = {f"{name}@change": change_of(name, grew) for name in changed}

    def made(plan: Plan) -> pa.Table:
        empty = {name for name, rows in inputs.items() if not rows.num_rows}
        present = lambda name, column: not inputs[name][column].null_count  # noqa: E731
        left = without_empty(plan, Known(empty, inputs.keys() - empty)) if ending else plan
        return None if left is None else run(sharpen(left, present), inputs, lambda scan: tables[scan.table])

    for stage in found.stages:
        rows = made(stage.plan)
        inputs[stage.name] = run(stage.plan, inputs, lambda scan: tables[scan.table]) if rows is None else rows
        assert rows is not None or not inputs[stage.name].num_rows
        _check_domains(stage.name, inputs, {each.name: each.plan for each in found.stages})
    rows = made(found.result)
    return run(found.result, inputs, lambda scan: tables[scan.table]) if rows is None else rows


def _check_domains(stage: str, inputs: dict[str, pa.Table], plans: dict[str, Plan]) -> None:
    """Law of `domains`: the values of a column are among those of the column of the change that it is traced to."""
    for name in inputs[stage].column_names:
        traced = domain(stage, name, plans)
        if traced is not None:
            assert set(inputs[stage][name].to_pylist()) <= set(inputs[traced[0]][traced[1]].to_pylist())


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_delta_is_new_minus_old(case: QueryCase) -> None:
    plan = shop.planned(case.text)
    changed = changed_in(plan, case)
    found = delta(plan, {name: TableChange.of(name) for name in changed})
    if found is None:
        check(NAME, case, "None")
        return
    shown = [under(stage.name, stage.plan) for stage in found.stages]
    check(NAME, case, "\n".join([*shown, under("change", found.result)]))
    judge(plan, found, changed, grew=False)


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_of_tables_that_grew(case: QueryCase) -> None:
    """Where rows only came, fewer stages are needed, and the change is the same."""
    plan = shop.planned(case.text)
    changed = changed_in(plan, case)
    found = delta(plan, {name: TableChange.of(name, grew=True) for name in changed})
    if found is not None:
        judge(plan, found, changed, grew=True)


def changed_in(plan: Plan, case: QueryCase) -> set[str]:
    read = {node.table for node in plan.walk() if isinstance(node, Scan)}
    return set(case.notes["changed"].split()) if "changed" in case.notes else read


def judge(plan: Plan, found: Delta, changed: set[str], *, grew: bool) -> None:
    old, new = (run(plan, rows=lambda scan: rows_at(place, changed, grew)[scan.table]) for place in (0, 1))  # noqa: B023
    expected = difference(old, new)
    for ending in (False, True):
        rows = staged(found, changed, grew, ending=ending)
        assert signed(rows) == expected
        assert Counter(bag(rows)) == Counter({(*row, count): 1 for row, count in expected.items()})
