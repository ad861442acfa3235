"""Tables as text, whatever is in them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from nearly.answer import Answer
from nearly.printing.cells import cell
from nearly.printing.characters import visible, width
from nearly.printing.frame import TextTable
from nearly.printing.plain import plain_table
from tests.fixtures.answers import by_city, estimated


def test_the_text_of_an_estimate_has_intervals_and_its_state() -> None:
    assert str(by_city()).splitlines() == [
        "city            s   n",
        "----  -----------  --",
        "Oslo  1,000 ± 150  10",
        "東京  3,000 ± 150  20",
        "(2 rows, 25 % read, error 2.1 % at 95 % confidence, about 3 rows missing, from progressive)",
    ]


def test_the_text_of_an_exact_answer() -> None:
    table = pa.table({"d": [dt.date(2024, 2, 29), None], "x": [1.5, 1234.25], "m": pa.array([Decimal("7.10"), None])})
    assert str(Answer.exactly(table, "native")).splitlines() == [
        "d                  x     m",
        "----------  --------  ----",
        "2024-02-29      1.50  7.10",
        "NULL        1,234.25  NULL",
        "(2 rows, exact, from native)",
    ]


@pytest.mark.parametrize(
    ("values", "expected"), [([], ["a", "-"]), ([None], ["   a", "----", "NULL"]), ([float("nan")], ["  a", "---", "NaN"])]
)
def test_empty_null_and_nan(values: list[float | None], expected: list[str]) -> None:
    table = pa.table({"a": pa.array(values, pa.float64())})
    assert str(Answer.exactly(table, "native")).splitlines()[:-1] == expected


def test_no_columns() -> None:
    assert "0 rows" in str(Answer.exactly(pa.table({}), "native"))


def test_withheld_intervals_say_so() -> None:
    answer = estimated({"s": [10, None]}, {"s": pa.nulls(2)}, {"s": pa.nulls(2)})
    assert "10 ± ?" in str(answer)
    assert "NULL ±" not in str(answer)


def test_an_uncertain_text_or_date_shows_both_ends() -> None:
    days = [dt.date(2024, 1, day) for day in (2, 1, 3)]
    assert cell(*days).interval == "[2024-01-01, 2024-01-03]"
    assert cell("m", "a", "z").interval == "[a, z]"


def test_nan_that_is_certain_has_no_interval() -> None:
    nan = float("nan")
    assert cell(nan, nan, nan).interval == ""


def test_two_columns_of_one_name() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    assert plain_table(TextTable.of(table, table, table, 5)).splitlines()[0].split() == ["a", "a"]


def test_control_characters_cannot_reach_the_terminal() -> None:
    table = pa.table({"a\nb": ["x\x1b[2J\r\u202e"]})
    text = plain_table(TextTable.of(table, table, table, 5))
    assert text.count("\n") == 2
    assert all(each.isprintable() or each == "\n" for each in text)
    assert visible("größe 東京") == "größe 東京"


def test_rows_and_columns_beyond_the_room_are_counted() -> None:
    table = pa.table({f"column_{place}": range(1000) for place in range(50)})
    frame = TextTable.of(table, table, table, 3).fitted(80)
    lines = plain_table(frame).splitlines()
    assert max(map(width, lines)) <= 80
    assert lines[-1] == f"... 997 more rows, {50 - len(frame.columns)} more columns"
    assert len(lines) == 6


def test_one_column_wider_than_the_room_stays() -> None:
    table = pa.table({"text": ["x" * 10_000], "n": [1]})
    frame = TextTable.of(table, table, table, 3).fitted(10)
    assert [column.name for column in frame.columns] == ["text"]
    assert width(frame.columns[0].cells[0].value) == 40


def test_nested_and_binary_values() -> None:
    table = pa.table({"l": [[1, None]], "s": [{"k": True}], "b": [b"\x01\xff"], "t": [dt.datetime(2024, 1, 2, tzinfo=dt.UTC)]})
    line = plain_table(TextTable.of(table, table, table, 3)).splitlines()[2]
    assert line.split("  ") == ["[1, NULL]", "{k: true}", "X'01FF'", "2024-01-02 00:00:00+00:00"]
