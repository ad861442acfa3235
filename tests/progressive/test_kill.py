"""A driver killed at random points goes on from its last batch and gives the answers of an uninterrupted run."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import environment

ROOT = Path(__file__).resolve().parents[2]
KILLS = 20


def _start(catalog: Path, events: Path, output: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(Path(__file__).with_name("follow.py")), str(catalog), str(events), str(output), "killed"]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment(), start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _lines(path: Path) -> list[list[object]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.slow
def test_twenty_kills(events: Path, tmp_path: Path) -> None:
    calm, stormy = tmp_path / "calm.jsonl", tmp_path / "stormy.jsonl"
    began = time.monotonic()
    assert _start(tmp_path / "calm", events, calm).wait(timeout=300) == 0
    whole = time.monotonic() - began
    expected = {units: rows for units, _, rows in _lines(calm)}
    chance = random.Random(3)
    kills = 0
    while kills < KILLS:
        process = _start(tmp_path / "stormy", events, stormy)
        try:
            process.wait(timeout=chance.uniform(0.2, 0.45) * whole)
        except subprocess.TimeoutExpired:
            kills += 1
            subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)
            process.wait()
    assert _start(tmp_path / "stormy", events, stormy).wait(timeout=300) == 0
    found = _lines(stormy)
    assert found[-1][1] is True
    for units, _exact, rows in found:
        if units in expected:
            assert rows == expected[units]
