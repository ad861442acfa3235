"""What plans are expected to cost: measured constants, known rows, corrections, and what is kept of them."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

import pytest

from nearly.engine import costs as costs_module
from nearly.engine.costs import FARTHEST, FILE, Constants, Costs, measured
from nearly.plan.expressions import AggregateCall, Call, Column, SortKey
from nearly.plan.nodes import Field, GroupBy, Input, Join, Limit, Output, Plan, Scan, Sort
from nearly.plan.schema import TableSchema
from nearly.plan.types import BOOLEAN, LONG

A = Column(LONG, "a_1")
SCAN = Scan("large", (Field("a_1", "a", LONG),))
FEW = Scan("small", (Field("b_1", "b", LONG),))


def find(name: str) -> TableSchema:
    return TableSchema(name, (), (), {"large": 50_000_000, "small": 1_000}[name], 10, None, ())


def seconds(plan: Plan, costs: Costs | None = None, cores: int = 1) -> float:
    return (costs or Costs()).seconds(plan, find, cores)


def test_constants_are_measured_within_a_second() -> None:
    measured.cache_clear()
    began = time.process_time()
    found = asdict(measured())
    assert time.process_time() - began < 1.0
    for name, usual in asdict(Constants()).items():
        assert usual / 50 < found[name] < usual * 50, name


def test_more_work_costs_more() -> None:
    grouped = GroupBy(SCAN, (Output("g", A),), (Output("n", AggregateCall(LONG, "count", (A,))),))
    joined = Join(SCAN, FEW, "inner", Call(BOOLEAN, "=", (A, Column(LONG, "b_1"))))
    ordered = Sort(SCAN, (SortKey(A),))
    assert seconds(FEW) < seconds(SCAN) < min(map(seconds, (grouped, joined, ordered)))
    assert seconds(SCAN) < seconds(Limit(ordered, 10)) < seconds(ordered)
    assert seconds(SCAN, cores=2) < seconds(SCAN)


def test_rows_that_are_known_are_not_read_again() -> None:
    grouped = GroupBy(SCAN, (Output("g", A),), (Output("n", AggregateCall(LONG, "count", (A,))),))
    above = Sort(grouped, (SortKey(Column(LONG, "n")),))
    costs = Costs()
    assert costs.seconds(above, find, rows={grouped: 10}) < 2 * costs.constants.fixed
    kept = Input("stage", (A,))
    assert costs.seconds(kept, find, rows={kept: 5e7}) < costs.seconds(SCAN, find)


def test_what_work_took_corrects_what_is_expected() -> None:
    costs = Costs()
    for _ in range(60):
        expected = seconds(SCAN, costs)
        costs.observe("exact", expected, 1.1)
    assert seconds(SCAN, costs) == pytest.approx(1.1, rel=0.05)
    assert costs.corrected("refresh", 1.0) == 1.0
    for _ in range(60):
        costs.observe("exact", 1.0, 1000.0)
    assert seconds(SCAN, costs) == pytest.approx(FARTHEST * seconds(SCAN))
    costs.observe("other", 0.001, 5.0)  # a fixed cost, which says nothing of the work
    assert costs.corrected("other", 1.0) == 1.0


def test_a_catalog_keeps_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = Costs(tmp_path)
    costs.save()
    assert not (tmp_path / FILE).exists()
    found = costs.measure()
    costs.observe("refresh", 1.0, 2.0)
    costs.save()
    again = Costs(tmp_path)
    assert again.constants == found
    assert again.corrected("refresh", 1.0) == costs.corrected("refresh", 1.0) > 1.0
    with monkeypatch.context() as patch:
        patch.setattr(costs_module, "_machine", lambda: "another")
        assert Costs(tmp_path).constants == Constants()
    (tmp_path / FILE).write_text("{}")
    assert Costs(tmp_path).constants == Constants()
