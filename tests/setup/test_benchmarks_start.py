"""Every benchmark starts and reports on a tiny size, so that none rots."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if "\nif __name__" in path.read_text())
"""Those that `./run bench` lists."""
QUICK = ("retail", "serve")
"""Those that start no Spark."""


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in NAMES])
def test_a_tiny_run_ends_with_a_report(name: str, tmp_path: Path) -> None:
    """A benchmark may end with 1 for what it found, such as an interval that is too narrow; it may not break."""
    report = tmp_path / "report.json"
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-P", "-m", f"benchmarks.{name}", "--tiny", "--json", str(report)],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert report.exists(), done.stdout + done.stderr
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(report.read_text())["summary"]
