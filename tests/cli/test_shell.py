"""The shell: statements, commands, completion, and a session on a pseudo-terminal."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearly.cli.completing import Completing
from nearly.cli.lake import sources_of
from nearly.cli.main import main
from nearly.cli.settings import ShellSettings
from nearly.cli.shell import Shell, ShellLines
from nearly.cli.splitting import is_complete, statements_of
from nearly.cli.workplace import Workplace
from nearly.errors import NearlyError
from tests.fixtures.driver_only import driver_only
from tests.fixtures.terminals import on_terminal
from tests.processes import environment


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    home = tmp_path / "lake"
    home.mkdir()
    pq.write_table(pa.table({"city": ["Oslo", "Rome", "Oslo"], "fare": [1.0, 2.5, 4.0]}), home / "rides.parquet")
    (home / "zones.csv").write_text("zone,borough\n1,North\n2,South\n")
    return home


@pytest.fixture
def shell(lake: Path, tmp_path: Path) -> Iterator[Shell]:
    with driver_only(tmp_path / "catalog") as db:
        yield Shell(Workplace(db, sources_of([str(lake)]), ShellSettings(), keeps=True))


def test_statements_are_cut_at_semicolons_that_are_some() -> None:
    assert statements_of("select ';' ; -- a;b\nselect 2; ") == ["select ';'", "-- a;b\nselect 2"]
    assert statements_of("select 'open") == ["select 'open"]
    assert is_complete("select 1;")
    assert is_complete("select 1; -- end")
    assert not is_complete("select 1 -- ;")
    assert not is_complete("select ';")


def test_a_script_of_statements_and_commands(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    script = """\
.mode markdown
select city, sum(fare) as s
from rides group by city order by city;
.mode vertical
select borough from zones where zone = 2; select 1 as a
;
.mode table
.tables
.schema zones
describe rides;
.timer on
select count(*) as n from zones
"""
    assert shell.run(ShellLines(iter(script.splitlines()))) == 0
    said = capsys.readouterr()
    assert "| Oslo | 5.0 |" in said.out
    assert "borough: South" in said.out
    assert re.search(r"zones +table +2 +2", said.out)
    assert re.search(r"zone +int", said.out)
    assert re.search(r"fare +double", said.out)
    assert "Time: " in said.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select ctiy from rides;", "did you mean 'city'"), ("selec 1;", "not a query"), (".mdoe x", "did you mean '.mode'"),
        (".mode pretty", "unknown mode"), (".mode", "it is table"), (".timer maybe", ".timer on"), (".read /none", "cannot read"),
        (".rows many", ".rows N"), (".within much", "no share"), (".tables x", "not expected"), (".schema none", "unknown table"),
        (".register a", ".register NAME FILE"), (".read 'x", "quote is open"), ("select * from 'nothing.csv';", "does not exist"),
        ("show databases;", "SHOW TABLES"), ("select * from '';", "no name"), ("select * from rides where city = ;", "not a query"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(shell: Shell, text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.feed(text) == 2
    line = capsys.readouterr().err
    assert said in line
    assert line.count("\n") == 1
    assert "Token" not in line
    assert shell.feed("select 1 as a") == 0


def test_settings_are_set(shell: Shell, tmp_path: Path) -> None:
    script = tmp_path / "set.sql"
    script.write_text(".within 2%\n.confidence 99%\n.rows 7\n")
    assert shell.feed(f".read {script}") == 0
    settings = shell.place.settings
    assert (settings.error, settings.seconds, settings.confidence, settings.rows) == (0.02, None, 0.99, 7)
    shell.feed(".within 2 s")
    assert (settings.error, settings.seconds) == (None, 2.0)
    shell.feed(".within off")
    assert (settings.error, settings.seconds) == (None, None)


def test_completion_knows_tables_columns_functions_and_commands(shell: Shell, lake: Path) -> None:
    completing = Completing(shell.place)

    def words(text: str) -> list[str]:
        return [word.text for word in completing.words(text, len(text))]

    assert words("select * from r") == ["rides"]
    assert words("select * from ") == ["rides", "zones"]
    assert words("select r.f from rides r where r.fa") == ["fare"]
    assert "fare" in words("select fa")
    assert "borough" in words("select bo")
    assert "from" in words("select city fr")
    assert "date_trunc" in words("select date_tr")
    assert words(".mo") == [".mode"]
    assert words(".mode mark") == ["markdown"]
    assert words(f"select * from '{lake}/ri") == [f"{lake}/rides.parquet"]


def test_data_may_be_files_globs_and_names(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lake / "more-1.csv").write_text("a\n1\n")
    (lake / "more-2.csv").write_text("a\n2\n")
    assert list(sources_of([str(lake / "*.csv")])) == ["more_1", "more_2", "zones"]
    assert (
        main(
            ["sql", "select sum(a) as s from more", "--data", f"more={lake}/more-*.csv", str(lake / "zones.csv"), "--format", "csv"]
        )
        == 0
    )
    assert capsys.readouterr().out == '"s"\n3\n'
    for wrong in (["nothing*.csv"], [str(lake / "zones.csv"), f"zones={lake}/more-1.csv"], ["s3://bucket/x.csv"]):
        with pytest.raises(NearlyError):
            sources_of(wrong)


def test_files_scripts_and_standard_input(lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    script = lake / "two.sql"
    script.write_text(f"select count(*) as n from '{lake}/rides.parquet';\nselect max(zone) as z from '{lake}/zones.csv';")
    assert main(["sql", "-f", str(script), "--format", "csv"]) == 0
    assert capsys.readouterr().out == '"n"\n3\n"z"\n2\n'
    monkeypatch.setattr(sys, "stdin", io.StringIO("select count(*) as n from rides;\n.quit\nselect 1 as a;\n"))
    assert main(["--data", str(lake)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].strip() == "3"
    for wrong in (
        ["sql"],
        ["sql", "select 1", "-f", str(script)],
        ["sql", "-f", str(lake / "none.sql")],
        ["sql", "select * from rides"],
    ):
        assert main(wrong) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_scripts_for_bash_and_zsh(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("bash", "zsh"):
        assert main(["completion", kind]) == 0
        script = capsys.readouterr().out
        assert "--within" in script
        assert "synopsis" in script
    tried = script.partition("\n")[2] + 'COMP_WORDS=(nearly s); COMP_CWORD=1; _nearly; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", tried], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["sql", "shell", "standing", "synopsis", "serve"]


def test_a_file_is_described(shell: Shell, lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.feed(f"describe '{lake}/zones.csv'; desc '{lake}/rides.parquet';") == 0
    said = capsys.readouterr().out
    assert re.search(r"borough +string", said)
    assert re.search(r"fare +double", said)
    assert shell.feed("describe 'nothing.csv'") == 2
    assert "does not exist" in capsys.readouterr().err


def test_a_session_on_a_terminal(lake: Path, tmp_path: Path) -> None:
    settings = environment() | {"NEARLY_HISTORY": str(tmp_path / "history"), "JAVA_HOME": str(tmp_path)}
    steps = [
        ("nearly>", "select ci\t"), ("ty", ", sum(fare) as s from rides\r"), ("...>", "group by city order by city;\r"),
        ("exact", "select ctiy from rides;\r"), ("did you mean", ""), ("nearly>", "given up\x03"),
        ("nearly>", ".mode markdown\r"), ("nearly>", "select 41 + 1 as answer;\r"), ("| 42 |", ""), ("nearly>", "\x04"),
    ]  # fmt: skip
    done = on_terminal([sys.executable, "-m", "nearly", "--data", lake], settings, steps, directory=tmp_path)
    assert (done.left, done.code) == ([], 0), done.output[-2000:]
    assert "select ctiy from rides;" in (tmp_path / "history").read_text()
