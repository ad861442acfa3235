"""`nearly view`, in this process and without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearly.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"k": [1, 2, 3], "s": ["a", "b", "a"]}), tmp_path / "t.parquet")

    def command(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        written = capfd.readouterr()
        return code, written.out, written.err

    assert command("table", "register", "t", "t.parquet", "--key", "k")[0] == 0
    return command


def test_the_life_of_a_view(run: Run) -> None:
    made = run("view", "create", "v", "select s, count(*) as n from t group by s", "--policy", "incremental")
    assert made == (0, "v: 2 rows kept, columns s, n\n", "")
    assert run("view", "refresh", "v")[1] == "v: fresh already, version 1\n"
    assert run("sql", "insert into t values (4, 'c')", "--path", ".nearly")[0] == 0
    (told,) = json.loads(run("view", "list", "--format", "json")[1])
    assert (told["view"], told["rows"], told["stale"]) == ("v", 2, "t 1")
    assert "1 rows of t changed since" in run("view", "show", "v")[1]
    assert run("view", "refresh", "v")[1].startswith("v: 1 inserted, 0 updated, 0 deleted; delta, ")
    assert "stale: no, it is fresh" in run("view", "show", "v")[1]
    assert json.loads(run("view", "show", "v", "--format", "json")[1])[0]["strategy"] == "delta"
    assert run("view", "explain", "v")[1].startswith("maintained: from the rows that changed")
    assert "WINDOW_WITHOUT_PARTITION" in run("view", "explain", "select row_number() over (order by k) as r from t")[1]
    assert run("sql", "refresh materialized view v", "--path", ".nearly")[1] == (
        "refresh view: 0 inserted, 0 updated, 0 deleted; v is at version 2\n"
    )
    assert run("table", "drop", "t")[0] == 2
    assert run("view", "create", "v", "select s from t", "--keep")[0] == 0
    assert run("view", "create", "v", "select s from t")[0] == 2
    assert run("view", "create", "v", "select s from t", "--replace")[1] == "v: 4 rows kept, columns s\n"
    assert run("view", "drop", "v")[1] == "v: forgotten\n"
    assert run("view", "drop", "v")[2].startswith("nearly: unknown view 'v'")
