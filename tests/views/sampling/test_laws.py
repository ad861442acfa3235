"""Laws of clean samples over random histories: a sample that was cleaned is that of the fresh view, whatever that is made of."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.deltas import lookups
from nearly.plan.nodes import Field, Scan
from nearly.views.sampling.cleaning import StaleView, tickets_of
from tests.fixtures.driver_only import driver_only
from tests.fixtures.large_tables import read_by_keys
from tests.fixtures.long import first_quick

VIEWS = {
    "groups": "select g, count(*) as n, sum(x) as s, max(x) as m from t group by g",
    "joined": "select t.k, u.g, t.x, u.y from t join u on t.g = u.g",
    "kept": "select t.k, t.g, u.y from t left join u on t.g = u.g",
    "grouped": "select u.y, t.g, avg(t.x) as a, count(distinct t.x) as d from t join u on t.g = u.g group by u.y, t.g",
    "among": "select k, x from t where exists (select 1 from u where u.g = t.g)",
    "without": "select k, x from t where g not in (select g from u where g is not null)",
    "different": "select distinct g, x from t",
    "united": "select g from t union select g from u",
    "both": "select k, x from t where x > 1 union all select k, g from t union all select g, y from u where g is not null",
    "ranked": "select k, g, row_number() over (partition by g order by x, k) as place from t",
    "large": "select g, sum(x) as s from t group by g having count(*) > 2",
}
SHARE = 0.4


def value(choose: random.Random) -> int | None:
    return choose.choice([None, *range(6)])


def rows(choose: random.Random, first: int, count: int) -> pa.Table:
    columns = {
        "k": range(first, first + count),
        "g": [value(choose) for _ in range(count)],
        "x": [value(choose) for _ in range(count)],
    }
    return pa.table({name: pa.array(each, pa.int64()) for name, each in columns.items()})


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    choose = random.Random(1)
    others = pa.table({"g": pa.array([None, 1, 2, 4, 7], pa.int64()), "y": pa.array([1, None, 1, 3, 2], pa.int64())})
    pq.write_table(rows(choose, 0, 60), tmp_path / "t.parquet")
    pq.write_table(others, tmp_path / "u.parquet")
    with driver_only(tmp_path / "catalog") as session:
        session.register("t", str(tmp_path / "t.parquet"), key=["k"])
        session.register("u", str(tmp_path / "u.parquet"), key=["g"])
        yield session


def change(db: nearly.Session, choose: random.Random, first: int) -> None:
    """Some rows come, go and change."""
    match choose.choice(("insert", "delete", "update", "other", "all")):
        case "insert":
            db.insert("t", rows(choose, first, choose.randint(1, 8)))
        case "delete":
            db.delete("t", where=f"k % {choose.randint(3, 9)} = 1")
        case "update":
            db.update("t", {"x": "x + 1", "g": str(choose.randint(0, 7))}, where=f"k % {choose.randint(3, 9)} = 0")
        case "other":
            db.update("u", {"y": f"{choose.randint(0, 3)}"}, where=f"g > {choose.randint(0, 4)}")
        case "all":
            db.delete("t", where="true")
            db.insert("t", rows(choose, first, 20))


def stored(db: nearly.Session, name: str, view: StaleView, share: float) -> set[tuple[Any, ...]]:
    """The stored rows of a view that a sample of this share has."""
    table = db._engine.catalog.table(name)
    fields = tuple(Field(f"c_{each.name}", each.name, each.type) for each in table.columns)
    found = db._engine.at([table]).native.run_here(Scan(table.name, fields, version=table.version))
    found = found.rename_columns([each.name for each in table.columns]).select(list(view.columns))
    drawn = tickets_of(db._engine, found, view) < share * 2**30
    return as_rows(found.filter(pa.array(drawn)))


def as_rows(table: pa.Table) -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in table.to_pylist()}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("seed", first_quick(range(2), 1))
def test_law_clean_sample_is_that_of_the_fresh_view(name: str, seed: int, db: nearly.Session) -> None:
    _check_samples(name, seed, db)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("seed", first_quick(range(10, 12), 1))
def test_law_samples_of_large_tables(name: str, seed: int, db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows around a change are read by keys, as far as they are in the sample."""
    read_by_keys(monkeypatch)
    monkeypatch.setattr(lookups, "WORTH_PRUNING", random.Random(seed).choice((0.5, 2.0)))
    _check_samples(name, seed, db)


def _check_samples(name: str, seed: int, db: nearly.Session) -> None:
    choose = random.Random(f"{name} {seed}")
    view = db.create_view(name, VIEWS[name])
    samples = db._views.samples
    for number in range(4):
        change(db, choose, 100 * (number + 1))
        sample = samples.clean(name, SHARE)
        if sample is None:
            continue
        held = samples._held[name].view
        before = stored(db, name, held, SHARE)
        places = [held.columns.index(each) for each in held.key]
        keys = as_rows(sample.changed)
        kept = {row for row in before if tuple(row[place] for place in places) not in keys}
        view.refresh()
        assert kept | as_rows(sample.new.table) == stored(db, name, held, SHARE)
        assert as_rows(sample.old.table) == before - kept


@pytest.mark.parametrize("name", VIEWS)
def test_exact_answers_are_those_of_the_query(name: str, db: nearly.Session) -> None:
    choose = random.Random(name)
    view = db.create_view(name, VIEWS[name])
    for number in range(2):
        change(db, choose, 100 * (number + 1))
        answer = view.query(f"select * from {name}", method="exact")
        expected = db.sql(VIEWS[name]).exact().table
        assert answer.exact
        assert sorted(map(repr, answer.table.to_pylist())) == sorted(map(repr, expected.to_pylist()))
        assert not view.stale


def test_second_session_finds_the_view_fresh(db: nearly.Session, tmp_path: Path) -> None:
    view = db.create_view("groups", VIEWS["groups"])
    db.insert("t", rows(random.Random(0), 500, 5))
    view.query("select sum(n) as n from groups", method="exact")
    with driver_only(tmp_path / "catalog") as other:
        assert not other.view("groups").stale
        assert other.view("groups").query("select sum(n) as n from groups").table.to_pylist() == [{"n": 65}]


def test_sample_is_let_go_when_tables_move_on(db: nearly.Session) -> None:
    view = db.create_view("groups", VIEWS["groups"])
    db.insert("t", rows(random.Random(0), 500, 5))
    view.clean(0.5)
    db.insert("t", rows(random.Random(0), 600, 5))
    assert view.query("select sum(n) as n from groups", method="exact").table.to_pylist() == [{"n": 70}]


def test_view_on_a_view(db: nearly.Session) -> None:
    db.create_view("groups", VIEWS["groups"])
    above = db.create_view("above", "select n, count(*) as c from groups group by n")
    db.insert("t", rows(random.Random(0), 500, 5))
    found = above.query("select sum(n * c) as n from above", method="exact").table.to_pylist()
    assert found == [{"n": 65}]


def test_change_without_effect(db: nearly.Session) -> None:
    view = db.create_view("among", "select k, x from t where k < 10")
    db.insert("t", rows(random.Random(0), 500, 5))
    answer = view.query("select count(*) as n from among", method="corr", sample=0.5)
    assert answer.table.to_pylist() == [{"n": 10}]
    assert view.query("select count(*) as n from among", method="exact").table.to_pylist() == [{"n": 10}]
