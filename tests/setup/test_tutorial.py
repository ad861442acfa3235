"""The code of docs/tutorial.md runs as it stands, from top to bottom, over real flights and without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.pages import run_page


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = run_page("tutorial.md", {}, 7)
    assert found["first"].progress < 1
