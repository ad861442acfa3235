"""`nearly table` and the statements of `nearly sql`, in this process and without Spark."""

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
    """Runs a command in a directory with a lake of two tables; gives the exit code and what was written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    pq.write_table(pa.table({"k": [1, 2, 3], "größe": [1.5, None, 3.0], "s": ["a", "b", None]}), tmp_path / "lake" / "t.parquet")
    pq.write_table(pa.table({"k": [3, 4], "s": ["c", "d"]}), tmp_path / "lake" / "u.parquet")

    def command(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        written = capfd.readouterr()
        return code, written.out, written.err

    assert command("table", "register", "t", "lake/t.parquet", "--key", "k")[:2] == (0, "t: 3 rows, version 1\n")
    return command


def rows(run: Run) -> list[dict[str, object]]:
    code, out, _ = run("sql", "select * from t order by k", "--path", ".nearly", "--format", "json")
    assert code == 0
    found: list[dict[str, object]] = json.loads(out)
    return found


def test_rows_of_files(run: Run, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text('k,größe,s\n4,4.25,\n5,,"x, y"\n')
    (tmp_path / "more.jsonl").write_text('{"k": 5, "größe": 0.5, "s": null}\n{"k": 6, "größe": null, "s": "ü"}\n')
    pq.write_table(pa.table({"k": [1]}), tmp_path / "old.parquet")
    assert run("table", "insert", "t", "new.csv", "--batch", "files:1")[1] == "t: 2 inserted, 0 updated, 0 deleted; version 2\n"
    assert run("table", "insert", "t", "new.csv", "--batch", "files:1")[1] == "t: nothing changed, version 2\n"
    assert run("table", "merge", "t", "more.jsonl")[1] == "t: 1 inserted, 1 updated, 0 deleted; version 3\n"
    assert run("table", "delete", "t", "--rows", "old.parquet")[1] == "t: 0 inserted, 0 updated, 1 deleted; version 4\n"
    assert run("table", "delete", "t", "--rows", "old.parquet", "--ignore-missing")[1] == "t: nothing changed, version 4\n"
    assert run("table", "update", "t", "--set", "s = concat(s, '!')", "größe=k*2", "--where", "k > 4")[0] == 0
    assert rows(run) == [
        {"k": 2, "größe": None, "s": "b"}, {"k": 3, "größe": 3.0, "s": None}, {"k": 4, "größe": 4.25, "s": None},
        {"k": 5, "größe": 10.0, "s": None}, {"k": 6, "größe": 12.0, "s": "ü!"},
    ]  # fmt: skip


def test_looking(run: Run, tmp_path: Path) -> None:
    assert run("table", "delete", "t", "--where", "k = 2")[0] == 0
    listed = json.loads(run("table", "list", "--format", "json")[1])
    assert [(each["table"], each["rows"], each["version"], each["key"], each["deleted"]) for each in listed] == [
        ("t", 2, 2, "k", 1)
    ]
    shown = run("table", "show", "t")[1]
    assert "t: 2 rows, version 2, key k\n" in shown
    assert "used in place\nchanges since are kept in the catalog" in shown
    assert "  größe double\n" in shown
    history = json.loads(run("table", "history", "t", "--format", "json")[1])
    assert [(each["version"], each["operation"], each["deleted"]) for each in history] == [(2, "delete", 1), (1, "register", None)]
    assert "register" in run("table", "history", "t")[1]
    changes = json.loads(run("table", "changes", "t", "--since", "1", "--format", "json")[1])
    assert [(each["k"], each["_change_type"], each["_commit_version"]) for each in changes] == [(2, "delete", 2)]
    assert run("table", "compact", "t")[1] == "t: 2 rows in 1 files, still version 2\n"
    assert run("table", "refresh", "t")[1] == "t: 2 rows, version 2\n"
    assert run("table", "export", "t", str(tmp_path / "out"), "--version", "1")[1].startswith("wrote ")
    assert run("table", "drop", "t")[1] == "dropped t\n"
    assert run("table", "list")[0] == 0


def test_statements(run: Run, tmp_path: Path) -> None:
    place = ("--path", ".nearly", "--data", "lake")
    before = (tmp_path / "lake" / "t.parquet").read_bytes()
    merge = (
        "merge into t using u on t.k = u.k when matched then update set s = u.s when not matched then insert (k, s) values (k, s)"
    )
    assert run("sql", merge, *place)[1] == "merge: 1 inserted, 1 updated, 0 deleted; t is at version 2\n"
    done = json.loads(run("sql", "delete from t where k = 1", *place, "--format", "json")[1])
    assert done == {"operation": "delete", "table": "t", "version": 3, "inserted": 0, "updated": 0, "deleted": 1}
    code, out, _ = run("sql", "select k, s from t order by k", *place, "--format", "json")  # the lake does not undo it
    assert (code, json.loads(out)) == (0, [{"k": 2, "s": "b"}, {"k": 3, "s": "c"}, {"k": 4, "s": "d"}])
    assert (tmp_path / "lake" / "t.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("table", "show", "tt"), "did you mean 't'?"),
        (("table", "insert", "t", "nowhere.csv"), "cannot be read"),
        (("table", "insert", "t", "lake/t.txt"), "rows are read from files ending in"),
        (("table", "insert", "t", "lake/u.parquet"), "have no column 'größe'"),
        (("table", "insert", "t", "lake/t.parquet"), "already has a row with k = 1"),
        (("table", "insert", "t", "lake/t.parquet", "--batch", "7"), "write STREAM:NUMBER"),
        (("table", "update", "t", "--set", "k"), "write COLUMN=EXPRESSION"),
        (("table", "update", "t", "--set", "k=1", "k=2"), "twice"),
        (("table", "update", "t", "--set", "kk=1"), "did you mean 'k'?"),
        (("table", "delete", "t", "--where", "kk = 1"), "did you mean 'k'?"),
        (("table", "changes", "t", "--since", "9"), "is at version 1"),
        (("sql", "delete from t", "--data", "lake"), "give --path CATALOG"),
        (("sql", "delete from t", "--path", ".nearly", "--format", "csv"), "is for answers"),
        (("sql", "delete from tt", "--path", ".nearly"), "did you mean 't'?"),
        (("sql", "drop table t", "--path", ".nearly"), "not DROP"),
    ],
)
def test_a_mistake_is_one_line(run: Run, words: tuple[str, ...], message: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert len(rows(run)) == 3
