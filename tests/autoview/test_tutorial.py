"""The code of docs/autoview.md runs as it stands, from top to bottom, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.pages import run_page


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("autoview.md", {}, 5)
