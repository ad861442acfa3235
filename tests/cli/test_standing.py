"""Standing queries from the command line, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

import nearly
from nearly.cli.main import main
from tests.standing.test_standing import opened

TEXT = "select count(*) as n from orders"


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    opened(tmp_path).close()
    return str(tmp_path / "catalog")


def test_start_list_resume_stop(catalog: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["standing", "start", TEXT, "--name", "n", "--every", "1h", "--answers", "1", "--explain", "--path", catalog]) == 0
    shown = capsys.readouterr().out
    assert "1,000" in shown
    assert "standing query n" in shown
    assert main(["standing", "list", "--path", catalog]) == 0
    assert capsys.readouterr().out == "n\n"
    assert main(["standing", "resume", "n", "--answers", "1", "--path", catalog]) == 0
    assert "1,000" in capsys.readouterr().out
    assert main(["standing", "stop", "n", "--path", catalog]) == 0
    with nearly.connect(path=catalog, lazy=True) as db:
        assert db.standings == ()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["start", "select"], "select"),
        (["start", TEXT, "--every", "soon"], "every"),
        (["start", TEXT, "--arrivals", "orders=many"], "arrivals"),
        (["start", TEXT, "--webhook", "here"], "on_change"),
        (["resume", "nobody"], "nobody"),
        (["stop", "nobody"], "nobody"),
    ],
)
def test_bad_requests(arguments: list[str], told: str, catalog: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["standing", *arguments, "--path", catalog]) == 2
    assert told in capsys.readouterr().err.lower()
