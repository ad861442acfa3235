"""The benchmark of standing queries runs, finds no wrong answer, and its choices are the best ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.standing import main


@pytest.mark.long
def test_tiny(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert main(["--tiny", "--json", str(report)]) == 0
    summary = json.loads(report.read_text())["summary"]
    assert summary["mismatches"] == summary["budget_exceeded"] == 0
    assert summary["optimal_of_random"] == 1.0
