"""Names that are wrong are told from the heads of files, before anything is loaded that could answer the query."""

from __future__ import annotations

import bz2
import gzip
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from nearly.cli.lake import refuse_unknown_columns
from nearly.cli.workplace import Workplace, opened
from nearly.engine.text.heads import columns_of
from nearly.errors import UnknownName
from tests.processes import environment

SCRIPT = """
import sys
from nearly.cli.main import main
code = main(["sql", sys.argv[1]])
print(code, *sorted({"duckdb", "nearly.session", "pyspark"} & sys.modules.keys()))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("heads")
    rows = pa.table({"city": ["Oslo", "Rome"] * 100_000, "fare": [1.5, 2.5] * 100_000})
    pq.write_table(rows, found / "rides.parquet")
    pa.csv.write_csv(rows, found / "rides.csv")
    return found


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_typo_loads_no_engine(home: Path, ending: str) -> None:
    asked = [sys.executable, "-c", SCRIPT, f"select ctiy from '{home}/rides.{ending}' where fare > 1"]
    done = subprocess.run(asked, env=environment(), capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (["2"], "nearly: unknown column 'ctiy'; did you mean 'city'?\n")


@pytest.mark.parametrize(
    ("header", "names"),
    [
        (b"a,b\n", ["a", "b"]), (b'"a","b c"\r\n1,2\r\n', ["a", "b c"]), (b"a", ["a"]), ("grüße,n\n".encode(), ["grüße", "n"]),
        (b'"a""b",c\n', None), (b'a"b,c\n', None), (b"a,A\n", None), (b"a,\n", None), (b"\na,b\n", None), (b"a, b\n", None),
        (b"\xef\xbb\xbfa,b\n", None), (b"gr\xfc\n", None), (b"a\\b,c\n", None), (b"", None),
    ],
)  # fmt: skip
def test_a_header_tells_names_only_where_all_readers_agree(tmp_path: Path, header: bytes, names: list[str] | None) -> None:
    for name, content in (("a.csv", header), ("b.csv.gz", gzip.compress(header)), ("c.csv.bz2", bz2.compress(header))):
        (tmp_path / name).write_bytes(content)
        found = columns_of([tmp_path / name])
        assert (None if found is None else [each.name for each in found]) == names


def test_files_of_other_kinds_or_other_headers_tell_nothing(tmp_path: Path, home: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}\n')
    (tmp_path / "b.csv").write_text("a,b\n1,2\n")
    (tmp_path / "c.csv").write_text("a,c\n1,2\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    for sources in ([tmp_path / "a.json"], [tmp_path / "b.csv", tmp_path / "c.csv"], [tmp_path / "broken.parquet"], [tmp_path]):
        assert columns_of(sources) is None
    (tmp_path / "lake" / "day=1").mkdir(parents=True)
    pq.write_table(pa.table({"n": [1]}), tmp_path / "lake" / "day=1" / "p.parquet")
    found = columns_of([tmp_path / "lake"])
    assert found is not None
    assert [each.name for each in found] == ["n", "day"]
    (tmp_path / "lake" / "_delta_log").mkdir()
    assert columns_of([tmp_path / "lake"]) is None


def test_only_names_that_are_wrong_for_sure_are_refused(home: Path) -> None:
    sources = {"r": home / "rides.csv"}
    for text in (
        "select fare + 1 as x, upper(city) from r where fare > 2 within 1%",
        "select city, sum(fare) as s from r group by city having s > 1",
        "select * from (select city as c from r) where c = 'Oslo'",
        "with t as (select fare as f from r) select f from t union all select 1.5",
        "select (select max(x.fare) from r as x where x.city = r.city) from r",
        "select nosuchfunction(city) from r",
        "select fare['x'] from r",
        "insert into r select nothing from r",
    ):
        refuse_unknown_columns(text, sources)
    for text, said in (
        ("select x.city from r", "unknown table 'x'"),
        ("select r.ctiy from r join r as q on q.city = r.city", "did you mean 'city'"),
        ("select 1 from r where exists (select 1 from r as q where q.city = p.city)", "unknown table 'p'"),
    ):
        with pytest.raises(UnknownName, match=said):
            refuse_unknown_columns(text, sources)


@pytest.mark.parametrize("keeps", [False, True])
def test_a_workplace_tells_a_typo_before_it_reads_a_file(
    home: Path, tmp_path: Path, keeps: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the shell, and with a catalog that stays, as in a single query."""
    with opened(tmp_path / "catalog", eager=False) as db:
        place = Workplace(db, {"r": home / "rides.csv", "q": home / "rides.parquet"}, keeps=keeps)
        assert place.run("select count(*) as n from q") == 0
        with monkeypatch.context() as patched:
            patched.setattr(type(db), "register", lambda *_: pytest.fail("a file was read"))
            for text in (
                "select ctiy from r",
                f"select ctiy from '{home}/rides.csv'",
                "select r.ctiy from r join q on q.city = r.city",
                f"explain select ctiy from '{home}/rides.csv'",
            ):
                with pytest.raises(UnknownName, match="did you mean 'city'"):
                    place.run(text)
            with pytest.raises(UnknownName, match="nothing"):
                place.run(f"select 1 from '{home}/rides.csv' join nothing using (city)")
        assert place.run("select count(*) as n from r join q on q.city = r.city and r.fare > 100") == 0
        assert "0" in capsys.readouterr().out
