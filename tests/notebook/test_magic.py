"""`%%nearly` with a stand-in for IPython's shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import nearly
from nearly.errors import NearlyError, ParseError, SchemaError
from nearly.notebook.magic import run
from nearly.printing.echo import drew, echo_is_due
from tests.fixtures.driver_only import driver_only


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Any]:
    with driver_only(tmp_path) as db:
        db.register("rides", pa.table({"city": ["Oslo", "Rome"], "fare": [1.0, 2.0]}))
        yield SimpleNamespace(user_ns={"db": db, "other": db, "number": 5})


def test_a_cell_is_answered(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run(shell, "", "select sum(fare) as s from rides")
    assert answer is shell.user_ns["_answer"]
    assert answer.table.to_pylist() == [{"s": 3.0}]
    assert "exact" in capsys.readouterr().out
    assert run(shell, "other --quiet --into found --within 5% --confidence 99%", "select count(*) as n from rides") is None
    assert shell.user_ns["found"].table.to_pylist() == [{"n": 2}]
    assert capsys.readouterr().out == ""


def test_lists_and_statements(shell: Any) -> None:
    assert "rides" in run(shell, "show tables", None)._repr_html_()
    assert "fare" in repr(run(shell, "", "describe rides"))
    assert run(shell, "", "insert into rides values ('Bonn', 5.0)").inserted == 1


@pytest.mark.parametrize(
    ("line", "cell", "kind"),
    [
        ("number", "select 1 as a", SchemaError), ("--nothing", "select 1 as a", ParseError),
        ("--seconds x", "select 1 as a", ParseError), ("--within much", "select 1 as a", SchemaError),
        ("", "select nope from rides", NearlyError), ("", "", ParseError),
    ],
)  # fmt: skip
def test_mistakes_are_errors_of_the_family(shell: Any, line: str, cell: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        run(shell, line, cell)


def test_load_ext_registers_the_magic() -> None:
    registered: dict[str, Any] = {}

    def register(function: Any, magic_kind: str, magic_name: str) -> None:
        registered[magic_name] = (function, magic_kind)

    nearly.load_ipython_extension(SimpleNamespace(register_magic_function=register))
    assert registered["nearly"][1] == "line_cell"


def test_what_a_cell_has_drawn_is_not_shown_again() -> None:
    thing = object()
    drew(thing)
    assert not echo_is_due(thing)
    assert echo_is_due(thing)
