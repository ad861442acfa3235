"""While no Spark is there: names are decided at once, tables stay as they were planned, errors are of one family."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.spark.cluster import Cluster
from nearly.errors import EngineError, NearlyError
from tests.fixtures import tables
from tests.fixtures.attacks import attacks, mutations
from tests.fixtures.driver_only import driver_only
from tests.fixtures.queries import corpus


class StartedSpark(EngineError):
    """Somebody asked for Spark."""


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Cluster) -> Any:
        raise StartedSpark("Spark was asked for")

    monkeypatch.setattr(Cluster, "spark", property(refuse))
    monkeypatch.setattr(Cluster, "given", property(refuse))


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    home = tmp_path_factory.mktemp("lazy")
    with driver_only(home / "catalog") as session:
        for name, path in tables.write(home / "data").items():
            session.register(name, str(path))
        yield session


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("select nmae from people", "UnknownName", "did you mean 'name'?"),
        ("select p.nmae, soundex(p.name) from people p", "UnknownName", "did you mean 'name'?"),
        ("select * from poeple", "UnknownName", "did you mean 'people'?"),
        ("select lenght(name) as n from people", "UnknownName", "unknown function 'lenght'; did you mean 'length'"),
        ("select dept, name from people group by dept", "SchemaError", "neither grouped nor aggregated"),
        ("select id from people where id", "SchemaError", "a condition must be boolean"),
        ("select id from people where sum(id) > 1", "SchemaError", "use HAVING"),
        ("select upper(name, dept) as u from people", "SchemaError", "takes 1 arguments, not 2"),
        ("select nvl(name) as u from people", "SchemaError", "takes 2 arguments, not 1"),
        ("select count() as n from people", "SchemaError", "write count(*)"),
        ("select a, b from pair union select a from pair", "SchemaError", "UNION of 2 and 1 columns"),
        ("select count(*) as n from people p0 " + " ".join(f"join people p{n} on p{n}.id = p0.id" for n in range(1, 502)),
         "Unsupported", "more than 100 joins"),
    ],
)  # fmt: skip
def test_mistakes_are_told_at_once(text: str, kind: str, said: str, db: nearly.Session) -> None:
    with pytest.raises(NearlyError) as caught:
        db.sql(text).exact()
    assert (type(caught.value).__name__, said in str(caught.value)) == (kind, True), caught.value


@pytest.mark.parametrize(
    "arguments",
    [
        {"seed": "x"}, {"seed": 1.5}, {"seed": -1}, {"seed": None}, {"seed": True}, {"confidence": "x"}, {"confidence": None},
        {"confidence": 1}, {"stream": [3]},
    ],
)  # fmt: skip
def test_arguments_of_other_types_are_refused(arguments: dict[str, Any], db: nearly.Session) -> None:
    with pytest.raises(nearly.SchemaError):
        db.sql("select 1 as a", **arguments)


@pytest.mark.parametrize("arguments", [{"error": "x"}, {"seconds": "x"}, {"error": float("nan")}, {"seconds": 0}])
def test_goals_of_other_types_are_refused(arguments: dict[str, Any], db: nearly.Session) -> None:
    with pytest.raises(nearly.SchemaError):
        db.sql("select 1 as a").run(**arguments)


def test_parts_of_dates_have_one_table(db: nearly.Session) -> None:
    for part in ("qtr", "quarter", "w", "week", "dow", "doy", "mon", "years"):
        both = f"select sum(extract({part} from born)) as a, sum(date_part('{part}', born)) as b from people"
        (row,) = db.sql(both).exact().table.to_pylist()
        assert row["a"] == row["b"] is not None
    with pytest.raises(StartedSpark):
        db.sql("select extract(weekofyear from born) as a from people").exact()


def test_mutated_texts_raise_only_our_errors(db: nearly.Session) -> None:
    answered = 0
    for text in mutations([case.text for case in corpus()], 250, seed=7):
        try:
            db.sql(text).exact()
            answered += 1
        except NearlyError:
            continue
    assert answered > 20


def test_attacks_end_before_spark_or_are_harmless(db: nearly.Session, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("TOPSECRET\n")
    for text in attacks(str(secret)):
        try:
            answer = db.sql(text).exact()
        except NearlyError:
            continue
        assert "TOPSECRET" not in str(answer.table.to_pylist()), text
    assert not list(tmp_path.glob("*.copy")) + list(tmp_path.glob("*.d"))


def test_long_lists_and_chains(db: nearly.Session) -> None:
    listed = ", ".join(map(str, range(3000)))
    (row,) = db.sql(f"select count(*) as n from people where id in ({listed})").exact().table.to_pylist()
    (also,) = db.sql("select count(*) as n from people where id between 0 and 2999").exact().table.to_pylist()
    assert row == also
    nested = "round(" * 12 + "salary / 3" + ", 2)" * 12
    assert db.sql(f"select max({nested}) as x from people").exact().source == "native"


def test_text_that_looks_like_a_mark_stays(db: nearly.Session) -> None:
    marks = ['"piece:0"', 'FROM "piece:0"', "'@files@'", "QUERY()", 'FROM "sent:rows"']
    shown = ", ".join("'" + mark.replace("'", "\\'") + f"' as m{place}" for place, mark in enumerate(marks))
    for answer in (db.sql(f"select {shown}, count(*) as n from sale").exact(), *db.sql(f"select {shown}, count(*) as n from sale")):
        assert list(answer.table.to_pylist()[0].values())[:-1] == marks


class Growing:
    """A table that gets one more file at a time."""

    def __init__(self, home: Path, name: str) -> None:
        self.path = home / name
        self.path.mkdir()
        self.count = 0

    def add(self, keys: list[int | None]) -> None:
        pq.write_table(pa.table({"k": pa.array(keys, pa.int64())}), self.path / f"{self.count}.parquet")
        self.count += 1


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[tuple[nearly.Session, Growing]]:
    with driver_only(tmp_path / "catalog") as session:
        table, other = Growing(tmp_path, "t"), Growing(tmp_path, "u")
        table.add([1, 2, 3])
        other.add([1])
        for each in (table, other):
            session.register(each.path.name, str(each.path))
        yield session, other


def grown(session: nearly.Session, other: Growing, keys: list[int | None]) -> None:
    other.add(keys)
    session.register("u", str(other.path))


def test_asked_again_means_the_tables_of_now(growing: tuple[nearly.Session, Growing]) -> None:
    db, other = growing
    query = db.sql("select count(*) as n from t where k not in (select k from u)")
    frame = db.table("u").agg(n=nearly.count())
    answers = [query.exact(), list(query)[-1], query.run(), frame.get_final()]
    assert [each.table["n"].to_pylist() for each in answers] == [[2], [2], [2], [1]]
    grown(db, other, [None])
    answers = [query.exact(), list(query)[-1], query.run(), frame.get_final()]
    assert [each.table["n"].to_pylist() for each in answers] == [[0], [0], [0], [2]]


def test_one_run_sees_one_version(growing: tuple[nearly.Session, Growing]) -> None:
    """What is planned before a change is run as planned, both sides of a self-join alike."""
    db, other = growing
    engine = db._engine
    prepared = engine.prepare("select count(*) as n from u a join u b on a.k = b.k")
    grown(db, other, [1])
    assert engine.run(prepared).table["n"].to_pylist() == [1]
    assert not engine.planner.is_current(prepared)
    assert engine.run(engine.prepare(prepared.text)).table["n"].to_pylist() == [4]


@pytest.mark.parametrize(
    ("columns", "said"),
    [([], "no columns"), ([""], "without a name"), (["  "], "without a name"), (["a", "A"], "two columns named")],
)
def test_files_that_cannot_be_asked(columns: list[str], said: str, db: nearly.Session, tmp_path: Path) -> None:
    path = tmp_path / "odd.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1, 2])] * len(columns), columns), path)
    with pytest.raises(nearly.SchemaError, match=said):
        db.register("odd", str(path))
