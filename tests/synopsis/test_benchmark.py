"""The benchmark of synopses measures what it says, on a small data set."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.synopses import accuracy, default_options, updates
from benchmarks.synopses.data import DataSet
from benchmarks.synopsis import summarize

NAMES = {
    "default_coverage_lowest", "default_given_lowest", "default_narrow_and_wrong",
    "median_error", "vs_uniform", "vs_stratified", "coverage_lowest", "hard_failures", "query_ms_median", "query_ms_p99",
    "updates_per_s", "partition_s", "build_rows_per_s", "longest_pause_ms",
}  # fmt: skip


@pytest.fixture(scope="module")
def data() -> DataSet:
    rng = np.random.default_rng(0)
    return DataSet("tiny", np.sort(rng.random(60_000)), rng.exponential(size=60_000), (0.001, 0.001, 0.001))


def test_true_answers_are_those_of_the_rows(data: DataSet) -> None:
    ranges = data.queries(20, 1)
    truth = data.truth(ranges)
    for place, (low, high) in enumerate(ranges):
        inside = (data.column >= low) & (data.column <= high)
        assert truth["rows"][place] == inside.sum()
        assert truth["sum"][place] == pytest.approx(data.values[inside].sum())


def test_the_baselines_estimate_the_truth(data: DataSet) -> None:
    ranges = data.queries(200, 2)
    truth = data.truth(ranges)["sum"]
    for baseline in (accuracy.uniform, accuracy.stratified):
        found = baseline(data, ranges)["sum"]
        assert 0.001 < np.median(np.abs(found / truth - 1)) < 0.2


def test_the_summary_has_the_names_that_were_agreed(data: DataSet) -> None:
    asked = list(default_options.measure(10_000, 1, 4, ("lognormal 1",)))
    assert {row["stage"] for row in asked} == set(default_options.STAGES)
    rows = list(accuracy.measure(data, 60))
    assert {row["variant"] for row in rows} == {"ESS", "BSS1x", "BSS2x", "BSS10x"}
    change = updates.sorted_arrivals(data, 30)
    assert change["exact"]
    times = {"query ms median": 0.1, "query ms p99": 0.2, "durable updates/s": 1e6, "planning s": 0.1, "build rows/s": 1e6}
    summary = summarize(asked, rows, [], [change], times, 1.0)
    assert set(summary) == NAMES
    assert summary["hard_failures"] == 0
    assert summary["vs_uniform"] > 3
