"""A small run of the coverage benchmark: the product answers as measured, intervals cover, and certain bounds hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.sampling.estimators import main, summarize
from benchmarks.sampling.verified import Verified

SUMMARY = {
    "lowest", "highest", "on_the_end", "anytime_lowest", "hard_failures", "withheld_fraction", "width_ratio",
    "compared", "different",
}  # fmt: skip


@pytest.mark.long
def test_intervals_cover(tmp_path: Path) -> None:
    """With 40 seeds a row of true coverage 0.95 falls below 0.8 once in 5,000 times."""
    report = tmp_path / "coverage.json"
    assert main(["--seeds", "40", "--verified", "1", "--data", "ordered", "--json", str(report)]) == 0
    summary = json.loads(report.read_text())["summary"]
    assert set(summary) == SUMMARY
    assert summary["lowest"] >= 0.8
    assert summary["anytime_lowest"] >= 0.85
    assert summary["compared"] > 1000
    assert summary["different"] == 0
    assert summary["hard_failures"] == 0
    assert summary["withheld_fraction"] <= 0.15
    assert summary["width_ratio"] <= 1.5


def test_wrong_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--seeds", "1"], ["--data", "nonsense"]):
        with pytest.raises(SystemExit):
            main(arguments)
    assert "no such data" in capsys.readouterr().err


def test_rows_that_need_their_ends_do_not_count_as_covered_too_often() -> None:
    """They still count when they are covered too rarely."""
    usual = {"cover": 0.96, "inside": 0.96, "withheld": 0.0, "width": 1.1}
    rows = [usual, usual | {"cover": 0.999, "inside": 0.7}, usual | {"cover": 0.97, "inside": 0.955}, usual | {"cover": 0.93}]
    summary = summarize(rows, [], Verified())
    assert (summary["lowest"], summary["highest"], summary["on_the_end"]) == (0.93, 0.97, 1)
