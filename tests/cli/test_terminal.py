"""`nearly sql` on a pseudo-terminal, with a Spark of its own: the live table, and Ctrl-C."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

from nearly.printing.characters import width
from tests.fixtures.lake import write_lake
from tests.fixtures.terminals import Session, on_terminal
from tests.processes import HUNG, environment

COLUMNS, LINES = 90, 24
QUICK = "select city, sum(fare) as s, count(*) as n from rides group by city order by city nulls last"
SLOW = "select city, sum(fare * a.n) as s from rides, numbers a, numbers b where a.n + b.n > fare group by city"
"""For every ride a look at each of 360,000 pairs: many seconds of work, of which the first share comes soon."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lake(tmp_path_factory.mktemp("lake"))


def asked(lake: Path, query: str, interrupt_at: str | None = None) -> Session:
    """Run the command on a terminal of its own; press Ctrl-C as soon as a text appears on it."""
    command = [sys.executable, "-m", "nearly.cli.main", "sql", query, "--data", lake, "--eager"]
    steps = [] if interrupt_at is None else [(interrupt_at, "\x03")]
    return on_terminal(command, environment(), steps, lines=LINES, columns=COLUMNS)


def last_screen(output: str) -> list[str]:
    """The lines of the table as it was drawn last, without colours and movements."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
    return [line.rstrip() for line in plain[plain.rindex("city") :].replace("\r", "").split("\n")]


def processes_of(session: int) -> list[str]:
    """The processes of a terminal session that are alive."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(entry.parent.name)
    return found


def assert_nothing_is_left(session: int) -> None:
    deadline = time.monotonic() + HUNG
    while processes_of(session) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert processes_of(session) == []


def test_the_table_is_live_and_ends_exact(lake: Path) -> None:
    session = asked(lake, QUICK)
    screen = last_screen(session.output)
    assert session.code == 0
    assert "±" in session.output
    assert re.search(r"\b\d\d? % read", session.output)
    assert session.output.count("Oslo") >= 3
    assert [line.split()[0] for line in screen[2:6]] == ["Oslo", "Zürich", "東京", "NULL"]
    assert "100 % read" in screen[6]
    assert screen[6].endswith("exact ✓")
    assert not any("±" in line for line in screen)
    assert all(width(line) <= COLUMNS for line in screen)
    assert "WARN" not in session.output
    assert_nothing_is_left(session.id)


def test_an_interrupt_leaves_the_last_answer_and_no_process(lake: Path) -> None:
    session = asked(lake, SLOW, interrupt_at="% read")
    assert session.code == 130
    assert "±" in session.output
    assert "stopped at an estimate: " in session.output
    assert "Traceback" not in session.output
    assert_nothing_is_left(session.id)
