"""The examples of standing queries run to their end, and their last answers are exact."""

from __future__ import annotations

import pytest

from examples import data_cleaning, late_data


def test_late_data(capsys: pytest.CaptureFixture[str]) -> None:
    late_data.main()
    said = capsys.readouterr().out
    assert "200,000 of 200,000 readings" in said
    assert said.rstrip().endswith("complete")


def test_data_cleaning(capsys: pytest.CaptureFixture[str]) -> None:
    data_cleaning.main()
    said = capsys.readouterr().out
    assert "(8 rows, exact, from standing)" in said
    assert said.rstrip().endswith("complete")
