"""The benchmark harness notices what it exists to notice: differences in values, types and order, and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.agreement import difference, loose_difference, order_columns
from benchmarks.exact import Outcome, row, run, summarize
from benchmarks.memory import PROC
from benchmarks.report import write_json
from benchmarks.tpch.queries import NUMBERS, query

ORDERED = "select name, amount from t order by amount desc"


def table(names: list[str], amounts: list[str], type_: pa.DataType | None = None) -> pa.Table:
    values = pa.array([Decimal(amount) for amount in amounts], type_ or pa.decimal128(10, 2))
    return pa.table({"name": names, "amount": values})


def test_equal_results_have_no_difference() -> None:
    assert difference(table(["a", "b"], ["2", "1"]), table(["a", "b"], ["2", "1"]), ORDERED) is None


def test_rows_that_tie_may_change_places() -> None:
    assert difference(table(["a", "b"], ["1", "1"]), table(["b", "a"], ["1", "1"]), ORDERED) is None


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (table(["a", "b"], ["2", "1.01"]), "order of amount"),
        (table(["b", "a"], ["1", "2"]), "order of amount"),
        (table(["a", "c"], ["2", "1"]), "values of name"),
        (table(["a"], ["2"]), "1 rows, not 2"),
        (table(["a", "b"], ["2", "1"], pa.decimal128(11, 2)), "decimal128"),
        (table(["a", "b"], ["2", "1"]).rename_columns(["name", "sum"]), "columns are"),
    ],
)
def test_every_kind_of_difference_is_named(found: pa.Table, message: str) -> None:
    assert message in str(difference(table(["a", "b"], ["2", "1"]), found, ORDERED))


@pytest.mark.parametrize(("other", "equal"), [([1.0 + 1e-12, None], True), ([1.0 + 1e-6, None], False), ([1.0, 2.0], False)])
def test_doubles_agree_to_nine_digits_and_nulls_are_values(other: list[float | None], equal: bool) -> None:
    expected, found = pa.table({"x": [1.0, None]}), pa.table({"x": pa.array(other, pa.float64())})
    assert (difference(expected, found, "select x from t") is None) is equal


def test_another_engine_may_give_a_decimal_as_a_double() -> None:
    double = pa.table({"name": ["a"], "amount": [2.0]})
    assert loose_difference(table(["a"], ["2"]), double, ORDERED) is None
    assert loose_difference(table(["a"], ["2.01"]), double, ORDERED) is not None


def test_order_columns_stop_at_a_key_that_is_not_in_the_output() -> None:
    assert order_columns("select a, b from t order by a, c, b", ["a", "b"]) == ["a"]
    assert order_columns("select a from t", ["a"]) == []


@pytest.mark.parametrize("number", NUMBERS)
def test_every_query_is_complete(number: int) -> None:
    text = query(number, "10")
    assert text.startswith(("select", "with"))
    assert "{" not in text


def test_the_fraction_of_q11_follows_the_scale_factor() -> None:
    assert "* 0.00001\n" in query(11, "10")
    assert "* 0.001\n" in query(11, "0.1")


def test_engines_take_turns_and_the_warm_up_is_not_counted() -> None:
    calls: list[str] = []

    def engine(name: str) -> pa.Table:
        calls.append(name)
        return table(["a"], ["1"])

    outcomes = run(ORDERED, {name: lambda _, name=name: engine(name) for name in ("spark", "nearly")}, 2, warm_up=True)
    assert calls == ["spark", "nearly", "nearly", "spark", "spark", "nearly", "nearly"]
    assert [len(each.seconds) for each in outcomes.values()] == [2, 2]


def test_a_failure_and_a_mismatch_are_counted() -> None:
    good, wrong = table(["a"], ["1"]), table(["a"], ["3"])
    rows = [
        row(1, ORDERED, {"spark": Outcome([2.0], good), "nearly": Outcome([1.0], good)}),
        row(2, ORDERED, {"spark": Outcome([2.0], good), "nearly": Outcome([4.0], wrong)}),
        row(3, ORDERED, {"spark": Outcome([2.0], good), "nearly": Outcome([0.1], None, "Unsupported: no")}),
    ]
    summary = summarize(rows)
    assert (summary["mismatches"], summary["failures"]) == (1, 1)
    assert (summary["nearly_over_spark"], summary["worst_over_spark"]) == (1.25, 2.0)


@pytest.mark.skipif(not PROC.joinpath("self", "smaps_rollup").exists(), reason="this system has no /proc")
def test_peak_memory_sees_what_was_used_inside_the_block() -> None:
    """In a process of its own: what other tests left in this one may go at any moment."""
    script = """
from benchmarks.memory import PeakMemory
with PeakMemory() as idle:
    pass
with PeakMemory() as busy:
    held = bytearray(b"x" * 200_000_000)
assert busy.megabytes > idle.megabytes + 150 and len(held) == 200_000_000
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[2])


def test_the_report_is_json_with_a_summary_and_rows(tmp_path: Path) -> None:
    write_json(tmp_path / "new" / "report.json", {"sf": "1"}, {"mismatches": 0}, [{"query": "q01"}])
    report = json.loads((tmp_path / "new" / "report.json").read_text())
    assert report["summary"] == {"mismatches": 0}
    assert report["rows"] == [{"query": "q01"}]
