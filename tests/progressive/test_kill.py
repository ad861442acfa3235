"""A driver killed at random points: queries go on from their last batch, and a synopsis has every row of its stream once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import HUNG, environment
from tests.progressive.killed_driver import RIDES

ROOT = Path(__file__).resolve().parents[2]
ROWS_PER_FILE = 40


def _start(home: Path, events: Path, output: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(Path(__file__).with_name("killed_driver.py")), str(home), str(events), str(output), *more]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment(), start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _lines(path: Path) -> list[list[object]]:
    """What was written down; a last line may be cut off by a kill."""
    complete = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in complete]


def _kill(process: subprocess.Popen[bytes]) -> None:
    subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)
    process.wait()


def _await_answers(process: subprocess.Popen[bytes], path: Path, wanted: int) -> None:
    """Until the driver has written down so many answers, or has ended."""
    while process.poll() is None and len(_lines(path)) < wanted:
        time.sleep(0.01)


def _drop(inbox: Path, number: int) -> None:
    """One more file for the stream: inserts, and the deletion of a row that was in the table from the start."""
    inserts = [{"op": "insert", "id": RIDES + number * 1000 + n, "day": n % 30, "fare": 2.0} for n in range(ROWS_PER_FILE)]
    delete = {"op": "delete", "id": number, "day": number % 30 + 0.5, "fare": 1.0}
    draft = inbox.parent / f"draft-{number}"
    draft.write_text("\n".join(map(json.dumps, [*inserts, delete])))
    draft.rename(inbox / f"{number:03}.json")


def _home(path: Path) -> Path:
    (path / "inbox").mkdir(parents=True)
    return path


@pytest.mark.long
@pytest.mark.parametrize(("kills", "resumptions"), [(10, 3)])
def test_kills(kills: int, resumptions: int, events: Path, tmp_path: Path) -> None:
    """Every kill comes some answers further on, in the midst of the work for the next; at the end nothing is missing or twice."""
    calm, stormy = tmp_path / "calm.jsonl", tmp_path / "stormy.jsonl"
    home = _home(tmp_path / "stormy")
    assert _start(_home(tmp_path / "calm"), events, calm).wait(timeout=HUNG) == 0
    expected = {units: rows for units, _, rows in _lines(calm)}
    chance = random.Random(3)
    resumed = 0
    for number in range(kills):
        _drop(home / "inbox", number)
        before = len(_lines(stormy))
        process = _start(home, events, stormy)
        _await_answers(process, stormy, before + chance.choice((0, 1, 1, 2)))
        time.sleep(chance.uniform(0.0, 0.5))
        ended = process.poll() is not None
        _kill(process)
        resumed += 0 < before < len(_lines(stormy)) and not ended
    assert _start(home, events, stormy, "drain").wait(timeout=HUNG) == 0
    *answers, synopsis = _lines(stormy)
    assert resumed >= resumptions
    assert answers[-1][1] is True
    assert {units for units, *_ in answers} <= set(expected)
    for units, _exact, rows in answers:
        assert rows == expected[units]
    assert synopsis == ["synopsis", RIDES + kills * (ROWS_PER_FILE - 1), RIDES + kills * (2.0 * ROWS_PER_FILE - 1)]
