"""Parameters of a text, and files in it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from nearly.errors import ParseError, SchemaError
from nearly.plan.syntax.file_names import with_named_files
from nearly.plan.syntax.parameters import with_arguments
from tests.fixtures.driver_only import driver_only

VALUES = [
    5, -5, 2**40, 1.5, Decimal("1.50"), Decimal("-12E3"), "it's \\ \"x\" \n ;-- /* :a ? */", "", True, None, dt.date(2020, 2, 29),
    "'; drop table t; --", "${env:HOME}",
]  # fmt: skip


def test_values_come_back_as_they_were_given(tmp_path: Path) -> None:
    with driver_only(tmp_path) as db:
        for value in VALUES:
            (row,) = db.sql("select ? as v, ? as w", args=[value, value]).exact().table.to_pylist()
            assert (row["v"], row["w"]) == (value, value)
            (row,) = db.sql("select :x as v", args={"X": value}).exact().table.to_pylist()
            assert row["v"] == value


@pytest.mark.parametrize(
    ("text", "arguments", "kind", "said"),
    [
        ("select ?", [], ParseError, "1 parameters, and args 0"),
        ("select ?", [1, 2], ParseError, "1 parameters, and args 2"),
        ("select :a", {"b": 1}, ParseError, "parameter :a has no value"),
        ("select :a", {"a": 1, "b": 2}, ParseError, "'b', which the text does not use"),
        ("select :a", [1], ParseError, "as a mapping"),
        ("select ?", {"a": 1}, ParseError, "parameter ?"),
        ("select ?", "a", SchemaError, "not str"),
        ("select ?", [object()], SchemaError, "cannot be object"),
        ("select ?", ["\0"], SchemaError, "zero character"),
        ("select ?", [2**70], SchemaError, "larger than any bigint"),
        ("select ?", [Decimal(10) ** 40], SchemaError, "38 digits"),
        ("select '", [], ParseError, "open at its end"),
    ],
)
def test_wrong_values_are_told(text: str, arguments: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said.replace("?", r"\?")):
        with_arguments(text, arguments)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("select * from 'a.csv'", "select * from T"),
        ("select a is distinct from 'x' from 'a' where extract(day from 'y') = 1",
         "select a is distinct from 'x' from T where extract(day from 'y') = 1"),
        ("select trim(both 'x' from 'xax') from t", "select trim(both 'x' from 'xax') from t"),
        ("select * from (select 1 from 'a') x join 'b' y using (a)", "select * from (select 1 from T) x join T y using (a)"),
        ("with c as (select * from 'q') select 'from' from c", "with c as (select * from T) select 'from' from c"),
        ("select 'open", "select 'open"),
    ],
)  # fmt: skip
def test_files_stand_where_tables_do(text: str, named: str) -> None:
    assert with_named_files(text, lambda _: "T") == named
