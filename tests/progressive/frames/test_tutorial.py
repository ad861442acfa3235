"""The code of docs/frames.md runs as it stands."""

from __future__ import annotations

import nearly
from tests.fixtures.pages import run_page


def test_tutorial_runs(frames: nearly.Session) -> None:
    run_page("frames.md", {"db": frames, "__name__": "__main__"}, 7)
