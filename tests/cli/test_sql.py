"""`nearly sql` in this process: what it prints for a pipe, its formats, and what it says when something is wrong."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest

from nearly.cli.main import main
from nearly.cli.settings import share
from nearly.errors import SchemaError
from tests.fixtures.lake import CITIES, DAYS, ROWS_A_DAY, write_lake
from tests.processes import environment

COUNTS = "select city, count(*) as n, sum(fare) as s from rides group by city order by city nulls last"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lake(tmp_path_factory.mktemp("lake"))


@pytest.fixture
def ask(spark: Any, lake: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Any:
    """Runs the command on the shared Spark; gives the exit code and what was written to standard output."""

    def run(query: str, *options: str) -> tuple[int, bytes]:
        code = main(["sql", query, "--data", str(lake), *options])
        return code, capfdbinary.readouterr().out

    return run


def test_a_pipe_gets_lines_and_the_table(ask: Any) -> None:
    code, out = ask(COUNTS, "--eager")
    lines = out.decode().splitlines()
    assert code == 0
    assert re.match(r"\d\d? % read, ", lines[0])
    assert " error " in lines[0]
    assert lines[-6].startswith("city")
    assert [line.split()[0] for line in lines[-4:]] == ["Oslo", "Zürich", "東京", "NULL"]
    assert any(line.startswith("100 % read, ") and line.endswith(" exact") for line in lines)


def test_csv_of_an_exact_answer(ask: Any) -> None:
    code, out = ask(COUNTS, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out.decode())))
    assert code == 0
    assert list(rows[0]) == ["city", "n", "s"]
    assert sum(int(row["n"]) for row in rows) == DAYS * ROWS_A_DAY
    assert {row["city"] or None for row in rows} == set(CITIES)


def test_json_of_an_estimate_has_bounds(ask: Any) -> None:
    code, out = ask(COUNTS, "--format", "json", "--within", "60%", "--eager")
    rows = json.loads(out)
    assert code == 0
    assert list(rows[0]) == ["city", "n", "n_low", "n_high", "s", "s_low", "s_high"]
    assert all(row["s_low"] <= row["s"] <= row["s_high"] for row in rows)


def test_arrow_round_trip(ask: Any) -> None:
    _, exact = ask(COUNTS, "--format", "arrow")
    table = pa.ipc.open_stream(exact).read_all()
    assert table.schema.field("n").type == pa.int64()
    assert json.loads(table.schema.metadata[b"nearly"])["exact"] is True
    _, early = ask(COUNTS, "--format", "arrow", "--within", "60%", "--seed", "3", "--eager")
    facts = json.loads(pa.ipc.open_stream(early).read_all().schema.metadata[b"nearly"])
    assert not facts["exact"]
    assert 0 < facts["progress"] < 1


def test_a_csv_file_is_a_table_and_names_are_compared_without_case(ask: Any) -> None:
    code, out = ask("select Name, zone as z, zone as z from Zones order by zone", "--format", "json")
    assert code == 0
    assert json.loads(out) == [{"Name": "north", "z": 1, "z_2": 1}, {"Name": "süd", "z": 2, "z_2": 2}]


def test_a_catalog_is_kept(ask: Any, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert ask("select count(*) from numbers", "--path", str(tmp_path / "kept"))[0] == 0
    assert main(["sql", "select max(n) as m from numbers", "--path", str(tmp_path / "kept"), "--format", "csv"]) == 0
    assert capfdbinary.readouterr().out == b'"m"\n599\n'


def test_an_unknown_column_is_one_line(spark: Any, lake: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "select fair from rides", "--data", str(lake)]) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("nearly: unknown column 'fair'")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("selct 1", (), "not a query"),
        ("", (), "the query is empty"),
        ("select 1 from rydes", (), "unknown table 'rydes'; did you mean 'rides'?"),
        ("select 1 from rides", ("--within", "oops"), "--within 'oops' is no share"),
        ("select 1 from rides", ("--confidence", "100%"), "--confidence '100%' is no share"),
        ("drop table rides", (), "nearly: "),
    ],
)
def test_a_mistake_shows_before_spark_is_started(
    lake: Path, capsys: pytest.CaptureFixture[str], query: str, options: tuple[str, ...], message: str
) -> None:
    assert main(["sql", query, "--data", str(lake), *options]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_directories_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes(b"")
    notes = tmp_path / "notes.txt"
    notes.write_text("x")
    for place, message in ((tmp_path / "nowhere", "does not exist"), (file, "0 bytes"), (notes, "no data file")):
        assert main(["sql", "select * from a", "--data", str(place)]) == 2
        assert message in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["sql", "select 1", "--data", str(tmp_path / "empty")]) == 2
    assert "has no tables" in capsys.readouterr().err
    (tmp_path / "a.csv").write_text("x\n1\n")
    assert main(["sql", "select 1", "--data", str(tmp_path)]) == 2
    assert "'a.csv' and 'a.parquet' would both be table 'a'" in capsys.readouterr().err
    assert main(["sql", "select * from a"]) == 2
    assert "--data DIR" in capsys.readouterr().err


def test_shares() -> None:
    assert [share(text, "--within") for text in ("1%", "0.5 %", ".25")] == [0.01, 0.005, 0.25]
    for text in ("0", "-1%", "1", "100%", "nan", "1e-3", ""):
        with pytest.raises(SchemaError):
            share(text, "--within")


def test_help_in_a_process_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nearly.cli.main", "sql", "--help"], env=environment(), capture_output=True, text=True, check=True
    )
    assert "--within" in done.stdout
    assert "130" in done.stdout
