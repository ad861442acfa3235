"""Kills and failing disks at every write of every operation: a fresh session finds the state before or after, and goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).with_name("harness.py")
ROOT = HARNESS.parents[2]
TABLES = ("register", "register again", "refresh", "prepare", "append", "drop")
SYNOPSES = ("synopsis build", "synopsis insert", "synopsis repartition")
CHANGES = ("insert", "delete", "compact", "compact in place", "refresh delta", "transaction")
VIEWS = ("create view", "refresh view")
ALL = (*TABLES, *CHANGES, *VIEWS, "run", *SYNOPSES)


def disturb(operation: str, fault: str, *points: int) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])}
    command = [sys.executable, str(HARNESS), operation, fault, *map(str, points)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    ("operation", "point"), [("register", 2), ("run", 7), ("append", 5), ("insert", 4), ("transaction", 9), ("refresh view", 6)]
)
def test_a_kill(operation: str, point: int) -> None:
    assert "at 1 of 1" in disturb(operation, "kill", point)


@pytest.mark.parametrize("operation", ["refresh", "run"])
def test_a_full_disk(operation: str) -> None:
    disturb(operation, "full-disk", 0)


@pytest.mark.long
@pytest.mark.parametrize("operation", ALL)
def test_kills_at_every_write(operation: str) -> None:
    disturb(operation, "kill")


@pytest.mark.long
@pytest.mark.parametrize("operation", ALL)
def test_full_disks(operation: str) -> None:
    """Files that cannot grow at all, or not beyond some bytes."""
    disturb(operation, "full-disk")


@pytest.mark.long
@pytest.mark.parametrize("fault", ["no-space", "no-permission"])
@pytest.mark.parametrize("operation", ALL)
def test_writes_that_fail_from_some_point_on(operation: str, fault: str) -> None:
    disturb(operation, fault, 1, 4, 9)
