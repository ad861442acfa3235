"""The tutorial's code runs as it stands, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "missing.md"


def test_tutorial_runs(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 7
    names: dict[str, Any] = {}
    try:
        for block in blocks:
            exec(compile(block, str(TUTORIAL), "exec"), names)
    finally:
        names["db"].close()
