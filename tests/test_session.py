"""Sessions: what connect() takes, what it leaves alone, and that answers survive failures and concurrency."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from tests.processes import HUNG, environment

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 4 files with 40,000 rows."""
    directory = tmp_path_factory.mktemp("numbers") / "numbers"
    directory.mkdir()
    for part in range(4):
        ids = range(part * 10_000, (part + 1) * 10_000)
        table = pa.table({
            "id": pa.array(ids, pa.int64()),
            "grp": pa.array([i % 7 for i in ids], pa.int32()),
            "amount": pa.array([Decimal(i % 1000) / 100 for i in ids], pa.decimal128(10, 2)),
            "name": pa.array([("straße" if i % 1000 == 0 else f"name {i % 50}") for i in ids]),
        })  # fmt: skip
        pq.write_table(table, directory / f"part-{part}.parquet", row_group_size=2_500)
    return directory


@pytest.fixture(scope="module")
def db(spark: Any, files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    with nearly.connect(spark, path=tmp_path_factory.mktemp("catalog")) as session:
        session.register("numbers", files, key=["id"])
        yield session


def test_given_session_stays_as_it_was(spark: Any, files: Path, tmp_path: Path) -> None:
    settings = dict(spark.conf.getAll)
    views = spark.sql("show tables").collect()
    with nearly.connect(spark, path=tmp_path) as session:
        session.register("numbers", files)
        session.sql("select count(*) c from numbers", kernel="spark").exact()
        session.sql("select upper(name) u from numbers").exact()
    assert dict(spark.conf.getAll) == settings
    assert spark.sql("show tables").collect() == views
    assert spark.range(3).count() == 3, "a session that was handed in must go on"


def test_catalog_is_reopened(spark: Any, files: Path, tmp_path: Path) -> None:
    with nearly.connect(spark, path=tmp_path) as session:
        session.register("numbers", files)
    with nearly.connect(spark, path=tmp_path) as session:
        assert session.tables == ("numbers",)
        assert session.sql("select max(id) m from numbers").exact().table.to_pylist() == [{"m": 39_999}]


@pytest.mark.long
def test_embedded_spark_in_a_process_of_its_own(files: Path, tmp_path: Path) -> None:
    """The driver answers before there is a Spark; then two sessions share one, and closing the last of them stops it.

    Nothing listens beyond loopback, and the settings that answers depend on were foreseen as they are.
    """
    script = f"""
import nearly
from pyspark.sql import SparkSession
query = "select id % 3 k, sum(amount) s, max(timestamp '2020-01-01 12:00:00') t from numbers group by id % 3 order by k"
with nearly.connect(path={str(tmp_path / "a")!r}, lazy=True, log={str(tmp_path / "java.log")!r}) as one:
    one.register("numbers", {str(files)!r})
    early = [*one.sql(query)]
    exact = one.sql(query).exact()
    cluster = one._engine.cluster
    foreseen = (cluster.is_up, cluster.time_zone, cluster.ansi)
    with nearly.connect(path={str(tmp_path / "b")!r}) as two:
        two.register("numbers", {str(files)!r})
        late = two.sql(query, kernel="spark").exact()
        assert two._engine.cluster.given is cluster.given
    assert exact.source == "native" and late.source == "spark"
    assert early[-1].table == exact.table == late.table == one.sql(query).exact().table, (exact.table, late.table)
    print(foreseen == (False, cluster.time_zone, cluster.ansi), cluster.is_up, cluster.given.conf.get("spark.driver.host"))
print(SparkSession.getActiveSession())
with nearly.connect(path={str(tmp_path / "a")!r}) as again:
    pass
again._engine.cluster._source._session.result()  # one that was closed while it started
"""
    done = run_python(script, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == ["True True 127.0.0.1", "None"]
    assert not done.stderr, "what Java writes belongs into the log"
    assert "WARN" in (tmp_path / "java.log").read_text()


def test_spark_that_cannot_start_is_an_error_of_the_first_query_that_needs_it(files: Path, tmp_path: Path) -> None:
    script = f"""
import nearly.engine.java, os
os.environ["JAVA_HOME"] = os.environ["PATH"] = "/nowhere"
nearly.engine.java._packaged_home = lambda: (_ for _ in ()).throw(nearly.EngineError("no Java here"))
with nearly.connect(path={str(tmp_path / "a")!r}, lazy=True) as db:
    db.register("numbers", {str(files)!r})
    print(db.sql("select count(*) c from numbers").exact().table["c"][0])
    for kernel in ("spark", "native"):
        try:
            db.sql("select count(*) c from numbers", kernel=kernel).exact()
        except nearly.EngineError as error:
            print(error)
"""
    done = run_python(script, tmp_path)
    assert done.stdout.splitlines() == ["40000", "no Java here", "no Java here"], done.stderr[-2000:]


def run_python(script: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], cwd=directory, env=environment(), capture_output=True, text=True, timeout=HUNG, check=False
    )


def test_closed_session_says_so(spark: Any, tmp_path: Path) -> None:
    session = nearly.connect(spark, path=tmp_path)
    session.close()
    session.close()
    with pytest.raises(nearly.EngineError, match="closed"):
        session.sql("select 1")


@pytest.mark.parametrize("text", ["select 1 / (id - id) x from numbers", "select cast(name as int) x from numbers"])
def test_error_of_spark_is_the_error(db: nearly.Session, text: str) -> None:
    """What ANSI Spark refuses to compute raises here too, in Spark's words."""
    with pytest.raises(nearly.EngineError, match=r"DIVIDE_BY_ZERO|CAST_INVALID_INPUT"):
        db.sql(text).exact()


def test_rare_input_is_left_to_spark(db: nearly.Session) -> None:
    """The native kernel refuses upper() of non-ASCII text at run time; Spark then answers the whole query."""
    answer = db.sql("select distinct upper(name) u from numbers where id % 1000 = 0").exact()
    assert (answer.table["u"].to_pylist(), answer.source) == (["STRASSE"], "spark")


def test_answer_has_bounds_of_the_same_shape(db: nearly.Session) -> None:
    answer = db.sql("select grp, sum(amount) s from numbers group by grp order by grp").exact()
    for bound in (answer.low, answer.high, answer.hard_low, answer.hard_high):
        assert bound.equals(answer.table)
    assert (answer.exact, answer.progress, answer.error) == (True, 1.0, 0.0)
    assert list(answer.to_pandas(bounds=True).columns) == ["grp", "grp_low", "grp_high", "s", "s_low", "s_high"]
    assert [answer.exact for answer in db.sql("select 1 one")] == [True]


def test_queries_at_the_same_time(db: nearly.Session) -> None:
    """Threads that ask different questions each get their own answer."""
    found: dict[int, Any] = {}

    def ask(group: int) -> None:
        found[group] = db.sql(f"select count(*) c from numbers where grp = {group}").exact().table["c"][0].as_py()

    threads = [threading.Thread(target=ask, args=(group,)) for group in range(7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {group: len(range(group, 40_000, 7)) for group in range(7)}


def test_little_memory_spills(spark: Any, files: Path, tmp_path: Path) -> None:
    """A sort and a grouping that do not fit into the native engine's memory still give the right answer."""
    with nearly.connect(spark, path=tmp_path, memory="60MB") as session:
        session.register("numbers", files)
        text = """
            select a.id, count(*) c, sum(b.amount) s, max(a.name || b.name) m
            from numbers a join numbers b on a.grp = b.grp and b.id < 60 group by a.id order by m, a.id
        """
        answer = session.sql(text, kernel="native").exact()
        expected = session.sql(text, kernel="spark").exact()
    assert answer.source == "native"
    assert answer.table.to_pylist() == expected.table.to_pylist()


def test_any_source_becomes_a_table(spark: Any, tmp_path: Path) -> None:
    """A DataFrame with instants and nested values, a temporary view, CSV and JSON."""
    moment = dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)
    frame = spark.createDataFrame([(1, moment, [1, 2]), (2, None, None)], "k int, t timestamp, a array<int>")
    frame.createOrReplaceTempView("frame_view")
    (tmp_path / "t.csv").write_text("k,x\n1,a\n2,b\n")
    (tmp_path / "t.json").write_text('{"k": 1, "y": 1.5}\n{"k": 2, "y": null}\n')
    with nearly.connect(spark, path=tmp_path / "catalog") as session:
        for name, source in {"f": frame, "v": "frame_view", "c": tmp_path / "t.csv", "j": tmp_path / "t.json"}.items():
            session.register(name, source)
        joined = session.sql("select f.k, t, x, y from f join v using (k, t) join c using (k) join j using (k)").exact()
        assert (joined.source, joined.table.to_pylist()) == ("native", [{"k": 1, "t": moment, "x": "a", "y": 1.5}])
        nested = session.sql("select k, size(a) n from f order by k").exact()
        assert (nested.source, nested.table["n"].to_pylist()) == ("spark", [2, None])
    spark.catalog.dropTempView("frame_view")


def test_partition_directories(spark: Any, tmp_path: Path) -> None:
    spark.sql("select id, id % 3 as part, if(id % 2 = 0, 'é=1', null) as word from range(30)").write.partitionBy(
        "part", "word"
    ).parquet(str(tmp_path / "t"))
    with nearly.connect(spark, path=tmp_path / "catalog") as session:
        session.register("t", tmp_path / "t")
        text = "select part, word, count(*) c, sum(id) s from t where part > 0 group by part, word order by part, word"
        answer = session.sql(text, kernel="native").exact()
        expected = spark.read.parquet(str(tmp_path / "t")).createOrReplaceTempView("partitioned_t")
        expected = spark.sql(text.replace(" t ", " partitioned_t ")).toArrow()
    assert answer.table.to_pylist() == expected.to_pylist()
    assert [field.type for field in answer.table.schema] == [field.type for field in expected.schema]


@pytest.mark.parametrize("damage", ["vanish", "truncate", "empty", "replace"])
def test_damaged_file_is_named(spark: Any, files: Path, tmp_path: Path, damage: str) -> None:
    copy = tmp_path / "numbers"
    copy.mkdir()
    for file in files.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    victim = copy / "part-2.parquet"
    with nearly.connect(spark, path=tmp_path / "catalog") as session:
        session.register("numbers", copy)
        match damage:
            case "vanish":
                victim.unlink()
            case "truncate":
                victim.write_bytes(victim.read_bytes()[:-100])
            case "empty":
                victim.write_bytes(b"")
            case "replace":
                (copy / "part-1.parquet").replace(victim)
        for kernel in ("native", "spark"):
            with pytest.raises(nearly.EngineError, match=r"part-[12]\.parquet"):
                session.sql("select count(*) c from numbers", kernel=kernel).exact()


def test_appended_rows_are_in_the_answer(spark: Any, tmp_path: Path) -> None:
    with nearly.connect(spark, path=tmp_path) as session:
        session.register("t", spark.range(100).selectExpr("id", "id % 5 as g"))
        session.prepare("t", by="g", buckets=4)
        session.prepare("t")
        query = "select g, count(*) c from t group by g order by g"
        before = session.sql(query).exact().table["c"].to_pylist()
        session.append("t", spark.range(10).selectExpr("id", "0L as g"))
        after = session.sql(query).exact().table["c"].to_pylist()
        assert (before, after) == ([20] * 5, [30, 20, 20, 20, 20])
        assert {layout.rows for layout in session.table("t").info.layouts} == {110}
