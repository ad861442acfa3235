"""Synopses through the session: built by Spark, asked, routed to, kept, dropped, and refused with reasons."""

from __future__ import annotations

import datetime as dt
import re
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.cli.main import main
from nearly.synopsis.build.definition import Budget
from tests.fixtures.pages import run_page

ROWS = 20_000
ROOT = Path(__file__).resolve().parents[2]


def trips() -> pa.Table:
    rng = np.random.default_rng(0)
    day = rng.integers(0, 365, ROWS)
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    at = [start + dt.timedelta(minutes=int(each)) for each in rng.integers(0, 500_000, ROWS)]
    city = rng.choice(["Köln", "Rom", "São Paulo"], ROWS, p=[0.6, 0.3, 0.1])
    fare = [None if each < 0.02 else Decimal(int(each * 5_000)) / 100 for each in rng.random(ROWS)]
    return pa.table({
        "id": pa.array(np.arange(ROWS)),
        "at": pa.array(at, pa.timestamp("us", "UTC")),
        "day": pa.array([dt.date(2024, 1, 1) + dt.timedelta(days=int(each)) for each in day]),
        "city": pa.array([None if place % 50 == 0 else str(each) for place, each in enumerate(city)]),
        "paid": pa.array(rng.random(ROWS) < 0.5),
        "fare": pa.array(fare, pa.decimal128(10, 2)),
        "distance": pa.array(rng.lognormal(size=ROWS)),
    })  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("synopses")
    pq.write_table(trips(), home / "trips.parquet", row_group_size=3_000)
    pq.write_table(trips().slice(0, 0), home / "empty.parquet")
    pq.write_table(trips().slice(7, 1), home / "one.parquet")
    pq.write_table(pa.table({"c": [1.0, float("nan"), 3.0, 2.0], "a": [1.0, 2.0, 3.0, 4.0]}), home / "nan.parquet")
    pq.write_table(pa.table({"c": [1, 2**60], "a": [1.0, float("nan")]}), home / "bad.parquet")
    return home


@pytest.fixture(scope="module")
def db(spark: Any, home: Path) -> Iterator[nearly.Session]:
    with nearly.connect(spark, path=home / "catalog") as session:
        session.register("trips", home / "trips.parquet", key=["id"])
        for name in ("empty", "one", "nan", "bad"):
            session.register(name, home / f"{name}.parquet")
        session.create_synopsis("fares", "trips", "fare", [["day"], ["day", "city", "paid"]], leaves=32, sample=0.2)
        yield session


def value(answer: nearly.Answer) -> Any:
    return answer.table.column(answer.table.num_columns - 1)[0].as_py()


@pytest.mark.parametrize("aggregate", ["sum", "avg", "count", "rows", "min", "max", "stddev"])
def test_answers_agree_with_spark(db: nearly.Session, aggregate: str) -> None:
    """Within the interval or nearly so, surely within the certain bounds; exact without conditions."""
    function = {"rows": "count(*)"}.get(aggregate, f"{aggregate}(fare)")
    fares = db.synopsis("fares")
    for low, high in ((dt.date(2024, 2, 3), dt.date(2024, 9, 17)), (dt.date(2024, 5, 5), dt.date(2024, 5, 5))):
        query = f"select {function} x from trips where day between date '{low}' and date '{high}'"
        expected = float(db.sql(query).exact().table["x"][0].as_py())
        found = fares.query(aggregate, day=(low, high))
        bounds = [each.column(0)[0].as_py() for each in (found.hard_low, found.low, found.high, found.hard_high)]
        assert bounds[0] - 1e-6 <= expected <= bounds[3] + 1e-6
        width = bounds[2] - bounds[1]
        assert bounds[1] - width <= expected <= bounds[2] + width
    whole = fares.query(aggregate)
    assert whole.exact
    assert value(whole) == pytest.approx(float(db.sql(f"select {function} x from trips").exact().table["x"][0].as_py()))


def test_groups_and_the_tree_that_suits(db: nearly.Session) -> None:
    fares = db.synopsis("fares")
    found = fares.query("rows", by="city", paid=True)
    expected = db.sql("select city, count(*) n from trips where paid group by city").exact().table.to_pylist()
    truth = {row["city"]: row["n"] for row in expected}
    assert set(found.table["city"].to_pylist()) == set(truth), "null is a group too"
    for row, low, high in zip(found.table.to_pylist(), found.hard_low["rows"], found.hard_high["rows"], strict=True):
        assert low.as_py() <= truth[row["city"]] <= high.as_py()
    assert fares.query("sum", day=dt.date(2024, 3, 1)).stats["sampled_rows"] < fares.query("sum", city="Rom").stats["sampled_rows"]


def test_groups_of_several_columns(db: nearly.Session) -> None:
    """Every group has its exact count inside the certain bounds; groups of the method and of SQL are the same."""
    found = db.synopsis("fares").query("rows", by=["city", "paid"])
    text = "select city, paid, count(*) n from trips group by city, paid order by city, paid"
    truth = {(row["city"], row["paid"]): row["n"] for row in db.sql(text).exact().table.to_pylist()}
    keys = [(row["city"], row["paid"]) for row in found.table.to_pylist()]
    assert set(keys) == set(truth)
    for key, low, high in zip(keys, found.hard_low["rows"], found.hard_high["rows"], strict=True):
        assert low.as_py() <= truth[key] <= high.as_py()
    first = next(iter(db.sql(text)))
    assert first.source == "synopsis fares"
    assert [(row["city"], row["paid"]) for row in first.table.to_pylist()] == list(truth)


def test_sql_is_routed_and_explained(db: nearly.Session) -> None:
    text = """select city, sum(fare) s, count(*) n, avg(fare) a, max(fare) m
              from trips where day >= date '2024-03-01' group by city order by city"""
    query = db.sql(text)
    answers = list(query)
    assert [each.source for each in answers] == ["synopsis fares", "native"]
    first, last = answers
    assert first.table.schema == last.table.schema, "Spark's names and types"
    assert first.table["city"].to_pylist() == last.table["city"].to_pylist()
    for name in ("s", "n"):
        for low, true, high in zip(first.hard_low[name], last.table[name], first.hard_high[name], strict=True):
            assert low.as_py() <= true.as_py() <= high.as_py()
    assert "synopsis fares: yes" in query.explain()
    assert query.run(error=0.5).source == "synopsis fares"
    assert query.run(error=1e-9).source == "native"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("select sum(distance) x from trips", "aggregates 'fare' only"),
        ("select sum(fare) x from trips where id < 5", "unknown predicate column"),
        ("select sum(fare) x from trips where day > date '2024-02-02' or paid", "joined by AND"),
        ("select sum(fare) x from trips group by city having count(*) > 3", "HAVING"),
        ("select count(distinct fare) x from trips", "DISTINCT"),
        ("select sum(fare) + 1 x from trips", "not expressions"),
        ("select sum(fare) x from trips where city > 'M'", "equality only"),
    ],
)
def test_what_a_synopsis_cannot_answer_is_answered_exactly(db: nearly.Session, text: str, reason: str) -> None:
    query = db.sql(text)
    assert re.search(f"synopsis fares: no, .*{reason}", query.explain())
    assert query.run().exact
    with pytest.raises(nearly.Unsupported, match=reason):
        db.sql(text, using="fares").run()


def test_changes_are_those_of_the_table(spark: Any, home: Path, tmp_path: Path) -> None:
    with nearly.connect(spark, path=tmp_path) as db:
        db.register("trips", home / "trips.parquet", key=["id"])
        moving, other = (db.create_synopsis(name, "trips", "fare", ["at"], leaves=8) for name in ("moving", "other"))
        row = trips().slice(3, 1).to_pylist()[0] | {"id": 99_999, "fare": Decimal("12.50")}
        moving.insert([row])
        moving.insert([row | {"id": 99_998, "at": None, "fare": None}])
        assert value(moving.query("rows")) == ROWS + 2
        assert value(moving.query("count", at=None)) == 0
        text = "select count(*) x from trips"
        assert db.sql(text).exact().table["x"].to_pylist() == [ROWS + 2]
        first = next(iter(db.sql(text)))
        assert (first.source, first.table["x"].to_pylist()) == ("synopsis moving", [ROWS + 2])
        moving.update([row], [{**row, "fare": Decimal("20.00")}])
        assert db.changes("trips", 3)["_change_type"].to_pylist() == ["update_preimage", "update_postimage"]
        moving.delete(pa.Table.from_pylist([{"id": 99_999}]))
        assert value(moving.query("rows")) == value(other.query("rows")) == ROWS + 1
        db.delete("trips", where="id < 1000")
        assert value(moving.query("rows")) == ROWS - 999
        assert moving.version == db.table("trips").info.version == 6
        assert pq.read_table(home / "trips.parquet").num_rows == ROWS


def test_it_is_kept_with_the_catalog(spark: Any, home: Path, tmp_path: Path) -> None:
    with nearly.connect(spark, path=tmp_path) as session:
        session.register("trips", home / "trips.parquet")
        made = session.create_synopsis("Kept", "trips", "distance", ["city", "at"], leaves=16)
        before = made.query("sum", city="Rom")
    with nearly.connect(spark, path=tmp_path) as session:
        assert session.synopses == ("kept",)
        assert session.synopsis("KEPT").query("sum", city="Rom").table == before.table
        session.drop_synopsis("kept")
        assert session.synopses == ()
        with pytest.raises(nearly.UnknownName, match="no synopsis yet"):
            session.synopsis("kept")


def test_empty_tables_single_rows_and_nan_coordinates(db: nearly.Session) -> None:
    empty = db.create_synopsis("e", "empty", "fare", ["day"])
    assert value(empty.query("count")) == 0
    assert value(empty.query("sum", day=(dt.date(2024, 1, 1), None))) is None
    one = db.create_synopsis("o", "one", "distance", ["day", "city"])
    assert one.query("count").exact
    assert value(one.query("rows")) == 1
    nan = db.create_synopsis("n", "nan", "a", ["c"], leaves=4, sample=1.0)
    assert value(nan.query("sum", c=(2.0, None))) == 9.0, "NaN is above all numbers, as Spark has it"
    assert value(nan.query("sum", c=(None, 2.5))) == 5.0
    for name in "eon":
        db.drop_synopsis(name)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda db: db.create_synopsis("x", "tripz", "fare", ["day"]), nearly.UnknownName, "did you mean 'trips'"),
        (lambda db: db.create_synopsis("x", "trips", "fair", ["day"]), nearly.UnknownName, "did you mean 'fare'"),
        (lambda db: db.create_synopsis("x", "trips", "fare", ["dya"]), nearly.UnknownName, "unknown column 'dya'"),
        (lambda db: db.create_synopsis("x", "trips", "fare", ["day", "day"]), nearly.SchemaError, "twice"),
        (lambda db: db.create_synopsis("x", "trips", "fare", []), nearly.SchemaError, "at least one column"),
        (lambda db: db.create_synopsis("x", "trips", "fare", ["day", ["city"]]), nearly.SchemaError, "do not mix"),
        (lambda db: db.create_synopsis("x", "trips", "city", ["day"]), nearly.SchemaError, "sums numbers"),
        (lambda db: db.create_synopsis("x", "trips", "fare", ["day"], leaves=0), nearly.SchemaError, "leaves=0"),
        (lambda db: db.create_synopsis("x", "trips", "fare", ["day"], leaves="many"), nearly.SchemaError, "whole number"),
        (lambda db: db.create_synopsis("x", "trips", "fare", ["day"], leaves=10**9), nearly.SchemaError, "not between"),
        (lambda db: db.create_synopsis("x", "trips", "fare", ["day"], sample=2), nearly.SchemaError, "sample=2"),
        (lambda db: db.create_synopsis("x", "trips", "fare", ["day"], leafs=3), nearly.UnknownName, "did you mean 'leaves'"),
        (lambda db: db.create_synopsis("x", "trips", "fare", ["day"], method="best"), nearly.UnknownName, "partitioning"),
        (lambda db: db.create_synopsis("../x", "trips", "fare", ["day"]), nearly.SchemaError, "cannot name"),
        (lambda db: db.create_synopsis("fares", "trips", "fare", ["day"]), nearly.SchemaError, "already"),
        (lambda db: db.create_synopsis("x", "bad", "c", ["c"]), nearly.Unsupported, "2\\^53"),
        (lambda db: db.create_synopsis("x", "bad", "a", ["a"]), nearly.SchemaError, "NaN or infinity"),
        (lambda db: db.drop_synopsis("fairs"), nearly.UnknownName, "did you mean 'fares'"),
        (lambda db: db.synopsis("fares").query("median"), nearly.UnknownName, "unknown aggregate"),
        (lambda db: db.synopsis("fares").query("sum", dya=1), nearly.UnknownName, "did you mean 'day'"),
        (lambda db: db.synopsis("fares").query("sum", day=(1, 2, 3)), nearly.SchemaError, "pair"),
        (lambda db: db.synopsis("fares").query("sum", day=7), nearly.SchemaError, "no value of it"),
        (lambda db: db.synopsis("fares").query("sum", city=("A", "Z")), nearly.Unsupported, "equality"),
        (lambda db: db.synopsis("fares").query("sum", confidence=1), nearly.SchemaError, "between 0 and 1"),
        (lambda db: db.synopsis("fares").query("sum", by="day"), nearly.Unsupported, "text or booleans"),
        (lambda db: db.synopsis("fares").insert([{"id": 1}]), nearly.SchemaError, "no column 'at'"),
        (lambda db: db.synopsis("fares").insert(3), nearly.SchemaError, "Arrow, pandas"),
        (lambda db: db.sql("select 1 x", using="fares").run(), nearly.Unsupported, "not over one table"),
        (lambda db: db.sql("select count(*) x from trips", using="fairs").run(), nearly.UnknownName, "did you mean 'fares'"),
        (lambda _: Budget(query_ms=-1), nearly.SchemaError, "query_ms=-1"),
    ],
)  # fmt: skip
def test_bad_input_says_what_and_what_instead(db: nearly.Session, call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call(db)
    assert db.synopses == ("fares",)


def test_budgets_bound_leaves_and_samples(db: nearly.Session) -> None:
    made = db.create_synopsis("small", "trips", "fare", ["day"], sample=0.5, budget=Budget(build_seconds=0.01, bytes=8_000))
    stats = made.stats()["trees"][0]
    assert stats["leaves"] <= 16
    assert stats["sampled"] <= 250 + 2 * stats["leaves"]
    db.drop_synopsis("small")


def test_the_same_seed_gives_the_same_sample_on_any_number_of_tasks(
    db: nearly.Session, spark: Any, home: Path, tmp_path: Path
) -> None:
    with nearly.connect(spark, path=tmp_path, executors=1, cores=1) as other:
        other.register("trips", home / "trips.parquet", key=["id"])
        alone = other.create_synopsis("fares", "trips", "fare", [["day"], ["day", "city", "paid"]], leaves=32, sample=0.2)
        together = db.synopsis("fares")
        for one, two in zip(alone.trees, together.trees, strict=True):
            np.testing.assert_array_equal(one.state.scales.tree.cut, two.state.scales.tree.cut)
            assert set(one.state.sample.rows.identity.tolist()) == set(two.state.sample.rows.identity.tolist())
            np.testing.assert_allclose(one.state.leaves.statistics, two.state.leaves.statistics)


def test_questions_and_changes_from_many_threads(spark: Any, home: Path, tmp_path: Path) -> None:
    with nearly.connect(spark, path=tmp_path) as db:
        db.register("trips", home / "trips.parquet", key=["id"])
        made = db.create_synopsis("busy", "trips", "distance", ["day"], leaves=16)
        failures: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for step in range(5):
                    first = 100_000 + number * 1_000 + step * 10
                    new = trips().slice(0, 10)
                    made.insert(new.set_column(0, "id", pa.array(range(first, first + 10))))
                    assert value(made.query("rows")) >= ROWS + 10 * (step + 1)
                    made.query("avg", day=(dt.date(2024, 1, 2), dt.date(2024, 4, 4)))
            except BaseException as trouble:  # noqa: BLE001
                failures.append(trouble)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert not failures
        assert value(made.query("rows")) == ROWS + 200
        made.settle()
        done = made.repartition()
        made.catch_up()
        with pytest.raises(nearly.SchemaError):
            made.catch_up(0.0)
        assert value(made.query("rows")) == ROWS + 200
        assert done


def test_the_command_line(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: Any) -> None:
    path = ["--path", str(tmp_path)]
    build = [
        "synopsis",
        "build",
        "fares",
        "--table",
        "t",
        "--source",
        str(home / "trips.parquet"),
        "--measure",
        "fare",
        "--on",
        "day",
    ]
    assert main([*build, "--leaves", "8", *path]) == 0
    assert main(["synopsis", "query", "fares", "sum", "--where", "day=2024-02-01..2024-03-01", *path]) == 0
    assert main(["synopsis", "stats", "fares", *path]) == 0
    assert main(["synopsis", "query", "fares", "sum", "--where", "dya=3", *path]) == 2
    assert main(["synopsis", "drop", "fares", *path]) == 0
    shown = capsys.readouterr()
    assert "surely at most" in shown.out
    assert "leaf 0 day <= " in shown.out
    assert "did you mean 'day'" in shown.err


def test_the_tutorial_runs(db: nearly.Session, spark: Any, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of docs/synopsis.md, block by block, as written."""
    monkeypatch.chdir(tmp_path)
    run_page("synopsis.md", {"spark": spark}, 1)
