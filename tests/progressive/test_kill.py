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


def _kill(process: subprocess.Popen[bytes]) -> None:
    subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)
    process.wait()


def _await_answers(process: subprocess.Popen[bytes], path: Path, wanted: int) -> None:
    """Until the driver has written down so many answers, or has ended."""
    while process.poll() is None and len(_lines(path)) < wanted:
        time.sleep(0.01)


@pytest.mark.slow
def test_twenty_kills(events: Path, tmp_path: Path) -> None:
    """Every kill comes some answers further on, and in the midst of the work for the next; at the end nothing is missing."""
    calm, stormy = tmp_path / "calm.jsonl", tmp_path / "stormy.jsonl"
    assert _start(tmp_path / "calm", events, calm).wait(timeout=300) == 0
    expected = {units: rows for units, _, rows in _lines(calm)}
    chance = random.Random(3)
    resumed = 0
    for _ in range(KILLS):
        process = _start(tmp_path / "stormy", events, stormy)
        before = len(_lines(stormy))
        _await_answers(process, stormy, before + chance.choice((0, 1, 1, 2)))
        time.sleep(chance.uniform(0.0, 0.3))
        ended = process.poll() is not None
        _kill(process)
        resumed += 0 < before < len(_lines(stormy)) and not ended
    assert _start(tmp_path / "stormy", events, stormy).wait(timeout=300) == 0
    found = _lines(stormy)
    assert resumed >= 3
    assert found[-1][1] is True
    assert {units for units, *_ in found} <= set(expected)
    for units, _exact, rows in found:
        assert rows == expected[units]
