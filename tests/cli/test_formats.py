"""What other programs read: every type, bounds, nulls, and names that are there twice."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pytest

from nearly.answer import Answer
from nearly.cli.formats import WRITERS, with_bounds
from tests.fixtures.answers import by_city, estimated

ODD: dict[str, Any] = {
    "text": ['quo"te,\n', "", None],
    "größe": [1.5, float("nan"), float("-inf")],
    "money": pa.array([Decimal("12345678901234567890.12"), None, Decimal("0.10")], pa.decimal128(38, 2)),
    "day": [dt.date(2024, 2, 29), None, dt.date(1, 1, 1)],
    "raw": [b"\x00", b"", None],
    "list": [[1, None], [], None],
    "yes": [True, False, None],
}


def written(answer: Answer, name: str) -> bytes:
    stream = io.BytesIO()
    WRITERS[name](answer, stream)
    return stream.getvalue()


def test_json_of_odd_values() -> None:
    rows = json.loads(written(Answer.exactly(pa.table(ODD), "native"), "json"), parse_float=Decimal)
    assert rows[0]["text"] == 'quo"te,\n'
    assert rows[0]["money"] == Decimal("12345678901234567890.12")
    assert [row["größe"] for row in rows] == [Decimal("1.5"), "NaN", "-Infinity"]
    assert (rows[0]["raw"], rows[0]["list"], rows[0]["yes"], rows[0]["day"]) == ("AA==", [1, None], True, "2024-02-29")
    assert rows[2]["list"] is None


def test_csv_tells_null_from_empty_text() -> None:
    text = written(Answer.exactly(pa.table(ODD), "native"), "csv")
    options = pa.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False, column_types={"text": pa.string()})
    parse = pa.csv.ParseOptions(newlines_in_values=True)
    table = pa.csv.read_csv(io.BytesIO(text), convert_options=options, parse_options=parse)
    assert table["text"].to_pylist() == ['quo"te,\n', "", None]
    assert table.column_names == list(ODD)


@pytest.mark.parametrize("name", ["csv", "json", "arrow"])
def test_an_empty_answer(name: str) -> None:
    text = written(Answer.exactly(pa.table({"a": pa.array([], pa.int64())}), "native"), name)
    expected = {"csv": b'"a"\n', "json": b"[]\n"}
    assert text == expected[name] if name in expected else pa.ipc.open_stream(text).read_all().num_rows == 0


def test_arrow_keeps_types_and_bounds() -> None:
    table = pa.ipc.open_stream(written(by_city(), "arrow")).read_all()
    assert table.column_names == ["city", "s", "s_low", "s_high", "n"]
    assert table["s_low"].to_pylist() == [850.0, 2850.0]


def test_an_exact_answer_has_no_bounds_and_withheld_ones_are_null() -> None:
    assert with_bounds(Answer.exactly(pa.table(ODD), "native")).column_names == list(ODD)
    open_ = estimated({"s": [1]}, {"s": pa.nulls(1)}, {"s": pa.nulls(1)})
    assert json.loads(written(open_, "json")) == [{"s": 1, "s_low": None, "s_high": None}]


def test_names_that_are_there_twice_get_numbers() -> None:
    table = pa.Table.from_arrays([pa.array([each]) for each in range(4)], names=["a", "a", "a_2", "a"])
    names = with_bounds(Answer.exactly(table, "native")).column_names
    assert names[0] == "a"
    assert names[2] == "a_2"
    assert len(set(names)) == 4
