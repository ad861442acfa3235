"""The tutorial's code runs as it stands, from top to bottom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.pages import run_page


def test_tutorial_runs(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("missing.md", {}, 7)
