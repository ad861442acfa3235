"""Answers on a terminal and in lines, without Spark."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import signal
import struct
import sys
import termios
import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from rich.console import Console

from nearly.answer import Answer
from nearly.display.interrupt import Interruption
from nearly.display.keys import ArrowKeys
from nearly.display.lines import Lines
from nearly.display.show import show
from nearly.display.status import Clock, Work, progress_line
from nearly.display.terminal import Terminal
from nearly.display.trail import LONGEST, Point, Trail, sparkline
from nearly.errors import SchemaError
from nearly.printing.characters import width
from nearly.printing.frame import TextTable
from nearly.printing.plain import plain_table
from tests.fixtures.answers import by_city, by_city_exactly, estimated
from tests.processes import environment


def converging() -> Iterator[Answer]:
    yield by_city(0.25, move=100)
    yield by_city(0.5, move=50)
    yield by_city_exactly()


def drawn(answers: Iterator[Answer], columns: int = 100, lines: int = 30) -> str:
    stream = io.StringIO()
    Terminal(Console(file=stream, force_terminal=True, width=columns, height=lines, color_system=None)).show(answers)
    return stream.getvalue()


def test_the_terminal_shows_values_intervals_curves_and_the_end() -> None:
    text = drawn(converging())
    assert "1,100 ± 150" in text
    assert "25 % read" in text
    assert "about 3 rows missing" in text
    last = text.rsplit("city", 1)[1]
    assert "1,010.50" in last
    assert "2,990.25" in last
    assert "exact ✓" in last
    assert "±" not in last
    assert any(bar in last for bar in "▁▂▃▄▅▆▇█")


def test_a_narrow_terminal_is_never_overrun() -> None:
    wide = pa.table({f"column_{place}": ["x" * 30] * 100 for place in range(20)})
    text = drawn(iter([Answer.exactly(wide, "native")]), columns=60, lines=12)
    final = [line for line in text.splitlines() if "x" * 30 in line]
    assert "19 more columns" in text
    assert "more rows" in text
    assert all(width(line) <= 60 for line in final)


def test_what_just_fits_is_shown_whole() -> None:
    table = pa.table({name: [name * 10] for name in "abcd"})
    frame = TextTable.of(table, table, table, 5)
    room = max(map(width, plain_table(frame).splitlines()))
    assert all(name * 10 in drawn(iter([Answer.exactly(table, "native")]), columns=room) for name in "abcd")
    assert "1 more column" in drawn(iter([Answer.exactly(table, "native")]), columns=room - 1)


def test_an_empty_answer_and_one_row() -> None:
    for rows in (0, 1):
        table = pa.table({"a": pa.array(range(rows), pa.int64())})
        assert "exact" in drawn(iter([Answer.exactly(table, "native")]))


def test_lines_for_a_pipe() -> None:
    stream = io.StringIO()
    shown = show(converging(), lambda: None, Lines(stream))
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("25 % read, 0.")
    assert lines[0].endswith("error 2.1 %")
    assert lines[2].startswith("100 % read")
    assert lines[-2].split() == ["Oslo", "1,010.50", "10"]
    assert shown.answer is not None
    assert shown.answer.exact
    assert not shown.interrupted


def test_lines_in_an_encoding_that_lacks_the_characters() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    show(iter([by_city()]), lambda: None, Lines(stream))
    text = stream.buffer.getvalue().decode("ascii")  # type: ignore[attr-defined]
    assert "\\u6771\\u4eac" in text


def test_an_interrupt_stops_the_query_and_keeps_the_newest_answer() -> None:
    stopped = threading.Event()

    def answers() -> Iterator[Answer]:
        yield by_city()
        signal.raise_signal(signal.SIGINT)
        assert stopped.wait(10)

    stream = io.StringIO()
    shown = show(answers(), stopped.set, Lines(stream))
    assert shown.interrupted
    assert shown.answer is not None
    assert "1,000 ± 150" in stream.getvalue()


def test_a_query_that_does_not_stop_is_interrupted_where_it_stands() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interruption(lambda: None, grace=0.05) as interruption:
        signal.raise_signal(signal.SIGINT)
        time.sleep(30)
        pytest.fail("the sleep was not interrupted")
    assert interruption.happened
    assert signal.getsignal(signal.SIGINT) is before


def test_other_errors_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), Interruption(lambda: None):
        raise ZeroDivisionError


def test_outside_of_the_main_thread_answers_are_shown_too() -> None:
    stream = io.StringIO()
    worker = threading.Thread(target=lambda: show(converging(), lambda: None, Lines(stream)))
    worker.start()
    worker.join(10)
    assert "exact" in stream.getvalue()


def test_no_answer_at_all() -> None:
    assert show(iter(()), lambda: None, Lines(io.StringIO())).answer is None


def test_time_left_counts_from_the_first_answer() -> None:
    times = iter([0.0, 30.0, 32.0])
    clock = Clock(lambda: next(times))
    clock.tick(by_city(0.2))
    assert clock.left is None
    clock.tick(by_city(0.6))
    assert clock.left == pytest.approx(2.0)
    assert progress_line(by_city(0.6), clock.elapsed) == "60 % read, 32 s, error 2.1 %"


def test_a_row_keeps_its_past_when_it_moves() -> None:
    trail = Trail(rows=10)
    trail.add(by_city(0.25))
    swapped = by_city(0.5, move=50)
    places = pa.array([1, 0])
    tables = [each.take(places) for each in (swapped.table, swapped.low, swapped.high)]
    trail.add(estimated(*tables, progress=0.5))
    assert [point.value for point in trail.points(0, 1)] == [3000.0, 2950.0]
    assert [point.value for point in trail.points(1, 1)] == [1000.0, 1050.0]
    assert trail.evolving == {1}


def test_equal_rows_and_rows_of_uncertain_columns_only() -> None:
    trail = Trail(rows=10)
    for progress in (0.1, 0.2):
        trail.add(estimated({"s": [1.0, 2.0]}, {"s": [0.0, 0.0]}, {"s": [3.0, 3.0]}, progress))
    assert [len(trail.points(row, 0)) for row in (0, 1)] == [2, 2]


def test_a_long_past_is_thinned_and_keeps_its_beginning() -> None:
    trail = Trail(rows=1)
    for step in range(1000):
        trail.add(estimated({"s": [float(step)]}, {"s": [-1.0]}, {"s": [2000.0]}, step / 1000))
    points = trail.points(0, 0)
    assert len(points) <= LONGEST
    assert (points[0].value, len(sparkline(points))) == (0.0, 8)


def test_a_curve_of_what_is_no_number() -> None:
    points = tuple(Point(0.1 * step, value, None, None) for step, value in enumerate((1.0, float("nan"), 1.0)))
    assert len(sparkline(points)) == 3
    assert sparkline((Point(0.1, 1.0, None, None), Point(0.2, 1.0, None, None))) == "▅▅"


def test_a_clock_runs_before_the_first_answer() -> None:
    stream = io.StringIO()

    def slowly() -> Iterator[Answer]:
        deadline = time.monotonic() + 30
        while not re.search(r"rows\) \.\.\. 0\.[1-9] s, about 1\.\d s left", stream.getvalue()) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield by_city_exactly()

    console = Console(file=stream, force_terminal=True, width=80, height=24, color_system=None)
    Terminal(console).show(slowly(), lambda: Work("reading rides (200,000 rows)", 2.0))
    assert re.search(r"reading rides \(200,000 rows\) \.\.\. 0\.[1-9] s, about 1\.\d s left", stream.getvalue())


def test_an_error_before_the_first_answer_leaves_no_line() -> None:
    def failing() -> Iterator[Answer]:
        raise SchemaError("no")
        yield by_city()

    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80, height=24, color_system=None)
    with pytest.raises(SchemaError):
        Terminal(console).show(failing())
    assert stream.getvalue().endswith("\x1b[2K") or "\x1b[1A\x1b[2K" in stream.getvalue()


def test_columns_that_do_not_fit_follow_below() -> None:
    table = pa.table({"key": ["k1", "k2"], **{f"column_{place}": [f"value_{place}"] * 2 for place in range(12)}})
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=60, height=24, color_system=None)
    show(iter([Answer.exactly(table, "native")]), lambda: None, Terminal(console))
    assert all(f"value_{place}" in stream.getvalue() for place in range(12))
    frames = TextTable.of(table, table, table, 5).wrapped(60)
    assert [column.name for frame in frames for column in frame.columns if column.name != "key"] == table.column_names[1:]
    assert all(frame.columns[0].name == "key" for frame in frames)
    assert all(width(line) <= 60 for frame in frames for line in plain_table(frame).splitlines())


def test_exact_numbers_have_no_curve_and_years_no_commas() -> None:
    trail = Trail(5)
    for answer in (by_city(0.25, 100), by_city(0.5, 50), by_city_exactly()):
        trail.add(answer)
    exact = by_city_exactly()
    frame = TextTable.of(exact.table, exact.low, exact.high, 5).with_histories(trail.sparklines(3))
    assert not any(cell.history for column in frame.columns for cell in column.cells)
    years = pa.table({"year": [2024], "birth_year": [1999], "n": [2024], "yearly": [2024.5]})
    shown = plain_table(TextTable.of(years, years, years, 5)).splitlines()[-1].split()
    assert shown == ["2024", "1999", "2,024", "2,024.5"]


def test_columns_do_not_get_narrower_while_answers_come() -> None:
    wide, narrow = by_city(0.1, 100_000), by_city(0.9, 0)
    frames = [TextTable.of(each.table, each.low, each.high, 5) for each in (wide, narrow)]
    assert frames[1].columns[1].width < frames[0].columns[1].width
    assert [column.width for column in frames[1].no_narrower(frames[0]).columns] == [column.width for column in frames[0].columns]


def test_a_first_column_that_fills_the_terminal_hides_no_other() -> None:
    table = pa.table({"key": ["k" * 58], "second": ["s" * 20], "third": ["t" * 20], "fourth": ["f" * 20]})
    frames = TextTable.of(table, table, table, 5).wrapped(60)
    assert [[column.name for column in frame.columns] for frame in frames] == [["key"], ["second", "third"], ["fourth"]]


def wide_estimate(names: list[str], step: int) -> Answer:
    """An answer with many uncertain columns, which move from step to step."""
    sides = ({"key": ["k"], **{name: [1000.0 + step + far] for name in names}} for far in (0.0, -150.0, 150.0))
    return estimated(*sides, progress=step / 10)


def test_no_column_is_lost_where_curves_took_its_room() -> None:
    """The columns that follow below are those that were not on the screen, whose curves made it narrower."""
    names = [f"n{place}" for place in range(8)]
    answers = [wide_estimate(names, step) for step in (1, 2, 3)]
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=60, height=24, color_system=None)
    show(iter(answers), lambda: None, Terminal(console))
    last = stream.getvalue().rsplit("\x1b[2K", 1)[1]
    assert re.findall(r"n\d", last) == names


def test_arrows_turn_to_other_columns_and_what_else_is_typed_is_no_key() -> None:
    master, slave = pty.openpty()
    turned: list[int] = []
    before = termios.tcgetattr(slave)
    keys = ArrowKeys(turned.append, slave)
    keys._may = lambda: True  # type: ignore[method-assign]  # whose foreground a test runs in is not its own
    with keys:
        keys.listen()
        assert not termios.tcgetattr(slave)[3] & termios.ECHO
        for written in (b"\x1b[C", b"x\x1bOC", b"\x1b", b"[D", b"select\x1b[A"):
            os.write(master, written)
            time.sleep(0.02)
        deadline = time.monotonic() + 30
        while len(turned) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert turned == [1, 1, -1]
    assert termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)


WIDE = """
import time
import pyarrow as pa
from nearly.answer import Answer
from nearly.display.show import show
def slowly():
    for step in range(600):
        value, low, high = (pa.table({f"n{place}": [1000.0 + step + far] for place in range(8)}) for far in (0, -150, 150))
        yield Answer(value, low, high, low, high, step / 600, False, 0.95, 0.1, "progressive")
        time.sleep(0.1)
show(slowly(), lambda: None)
"""


def test_arrows_on_a_terminal() -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, [sys.executable, "-c", WIDE], environment() | {"TERM": "xterm-256color", "COLUMNS": "60"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    steps = [(b"columns 1/", b"\x1b[C"), (b"columns 2/", b"\x1b[D"), (b"columns 1/", b"\x03\x03")]
    seen, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            seen += os.read(terminal, 65536)
        except OSError:
            break
        if steps and steps[0][0] in seen:
            os.write(terminal, steps.pop(0)[1])
            seen = b""
    os.waitpid(child, 0)
    os.close(terminal)
    assert steps == [], seen.decode()[-2000:]
    assert b"stopped at an estimate" in seen


def test_without_a_terminal_there_are_no_keys() -> None:
    with ArrowKeys(lambda _: None, os.open(os.devnull, os.O_RDONLY)) as keys:
        keys.listen()
        assert not keys.listening
