"""The code of docs/frames.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import nearly

PAGE = Path(__file__).parents[3] / "docs" / "frames.md"


def test_tutorial_runs(frames: nearly.Session) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 7
    names = {"db": frames, "__name__": "__main__"}
    for block in blocks:
        exec(block, names)
