"""One form of plans: the same for texts that ask the same, another for others, and with the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.plan.canonical import canonical, fingerprint
from nearly.plan.nodes import Plan
from tests.fixtures import tables
from tests.fixtures.driver_only import driver_only
from tests.fixtures.queries import corpus

ALIKE = [
    (
        "select sum(id) as s from people where id > 1 and dept = 'ops'",
        "select sum(x.id) as total from people x where 'ops' = x.dept and 1 < x.id",
    ),
    (
        "select dept, count(*) as n from people group by dept",
        "with q as (select * from people) select dept as d, count(*) as m from q group by 1",
    ),
    (
        "select p.id from people p join dept d on p.dept = d.dept where p.id = 1 or p.id = 2",
        "select a.id as n from people a join dept b on b.dept = a.dept where a.id = 2 or a.id = 1",
    ),
]
DIFFERENT = [
    ("select sum(id) as s from people where id > 1", "select sum(id) as s from people where id > 2"),
    ("select id from people", "select boss as id from people"),
    ("select id - boss as v from people", "select boss - id as v from people"),
    ("select id from people where id > boss", "select id from people where id < boss"),
    ("select count(id) as n from people", "select count(*) as n from people"),
]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    home = tmp_path_factory.mktemp("canonical")
    with driver_only(home / "catalog") as session:
        for name, path in tables.write(home / "data").items():
            session.register(name, path)
        yield session


def plan_of(db: nearly.Session, text: str) -> Plan:
    query = db._engine.plan(text).query
    assert query is not None
    return query.plan


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_the_same_question_has_one_form(db: nearly.Session, one: str, other: str) -> None:
    assert canonical(plan_of(db, one)) == canonical(plan_of(db, other))
    assert fingerprint(plan_of(db, one)) == fingerprint(plan_of(db, other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_other_questions_have_other_forms(db: nearly.Session, one: str, other: str) -> None:
    assert fingerprint(plan_of(db, one)) != fingerprint(plan_of(db, other))


def test_other_versions_have_other_fingerprints(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "a.parquet")
        before = fingerprint(plan_of(db, "select a from t"))
        pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "a.parquet")
        db.refresh("t")
        assert fingerprint(plan_of(db, "select a from t")) != before


def test_law_the_form_is_final_and_keeps_the_rows(db: nearly.Session) -> None:
    seen = 0
    for case in corpus()[::7]:
        try:
            query = db._engine.plan(case.text).query
        except nearly.NearlyError:
            continue
        if query is None:
            continue
        form = canonical(query.plan)
        assert canonical(form) == form, case.text
        try:
            expected = db._engine.rows(query.plan)
        except (nearly.NearlyError, AssertionError):
            continue
        found = db._engine.rows(form).rename_columns(expected.column_names)
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist())), case.text
        seen += 1
    assert seen > 30
