"""Queries over tables that a stale view answers by a sample of it: only where an estimate is allowed, and never by `exact`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.answer import Answer
from nearly.errors import Unsupported
from nearly.views.sampling import asking
from tests.fixtures.driver_only import driver_only

ROWS, ITEMS = 60_000, 3_000
VIEW = "select item, shop, count(*) as n, sum(price) as total from sales group by item, shop"
TEXT = "select shop, sum(price) as s, count(*) as n from sales group by shop order by shop"


def sales(first: int, rows: int, seed: int) -> pa.Table:
    make = np.random.default_rng(seed)
    item = make.integers(0, ITEMS, rows)
    return pa.table({
        "id": pa.array(np.arange(first, first + rows)), "item": pa.array(item), "shop": pa.array(item % 6),
        "price": pa.array(make.gamma(2, 1000, rows).astype(np.int64)),
    })  # fmt: skip


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    """A view of which a tenth of the rows below changed."""
    pq.write_table(sales(0, ROWS, 0), tmp_path / "sales.parquet")
    with driver_only(tmp_path / "catalog") as session:
        session.register("sales", str(tmp_path / "sales.parquet"), key=["id"])
        session.create_view("daily", VIEW, sample=0.2)
        session.insert("sales", sales(ROWS, ROWS // 10, 1))
        session.view("daily").clean(0.2)
        yield session


def test_a_stale_view_answers_first_and_the_tables_in_the_end(db: nearly.Session) -> None:
    query = db.sql(TEXT)
    assert "view daily: yes, corrected by a sample: 6,000 rows changed since" in query.explain()
    answers = list(query)
    assert answers[0].source == "view daily (corrected)"
    assert not answers[0].exact
    assert answers[-1].exact
    assert answers[-1].source != answers[0].source
    assert answers[-1].table.equals(db.sql(TEXT, kernel="native").exact().table)
    for first, last in zip(answers[0].table.to_pylist(), answers[-1].table.to_pylist(), strict=True):
        assert first["s"] == pytest.approx(last["s"], rel=0.1)


def test_exact_answers_never_come_from_a_sample(db: nearly.Session) -> None:
    expected = db.sql(TEXT, kernel="native").exact().table
    assert db.sql(TEXT).exact().source == "native"
    forced = db.sql(TEXT, using="daily").exact()
    assert (forced.exact, forced.source) == (True, "view daily + delta")
    assert forced.table.equals(expected)


def test_a_wide_goal_is_met_by_the_view(db: nearly.Session) -> None:
    text = "select sum(price) as s, count(*) as n from sales"
    found = db.sql(text).run(error=0.2)
    assert found.source == "view daily (corrected)"
    assert 0 < found.error <= 0.2
    assert db.sql(f"{text} within 20%").run().source == "view daily (corrected)"
    assert db.sql(text).run(error=1e-9).exact


def test_the_view_that_is_asked_for_is_cleaned_to_the_end(db: nearly.Session) -> None:
    answers = list(db.sql(TEXT, using="daily"))
    assert [each.exact for each in answers] == [False] * (len(answers) - 1) + [True]
    assert len(answers) >= 2
    assert all(each.source.startswith("view daily") for each in answers)
    assert not db.view("daily").stale
    assert db.sql(TEXT).exact().source == "view daily"
    assert answers[-1].table.equals(db.sql(TEXT, kernel="native").exact().table)


def test_every_look_at_a_goal_has_its_share_of_failure(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stops at the first narrow answer of several is not deceived more often than by one."""
    looks: list[int | None] = []

    class Told(asking.Estimation):
        def answer(self, stats: dict[str, Any]) -> Answer:
            looks.append(self.look)
            return super().answer(stats)

    monkeypatch.setattr(asking, "Estimation", Told)
    assert db.sql(TEXT, using="daily").run(error=1e-9).exact
    assert looks == [1, 2]


def test_what_a_sample_does_not_tell_is_left_to_the_tables(db: nearly.Session) -> None:
    text = "select max(s) as m from (select shop, sum(price) as s from sales group by shop)"
    assert "view daily: no, it is stale, and no sample of it answers (GroupBy below the last aggregate" in db.sql(text).explain()
    assert {each.source for each in db.sql(text)}.isdisjoint({"view daily (corrected)"})
    with pytest.raises(Unsupported, match="view 'daily' cannot answer"):
        db.sql("select max(price) as m from sales", using="daily").run()


def test_changes_after_planning_are_seen(db: nearly.Session) -> None:
    query = db.sql(TEXT)
    assert next(iter(query)).source == "view daily (corrected)"
    db.insert("sales", sales(2 * ROWS, ROWS, 3))
    found = list(query)
    assert found[-1].table.equals(db.sql(TEXT, kernel="native").exact().table)
    assert sum(row["n"] for row in found[0].table.to_pylist()) == pytest.approx(2.1 * ROWS, rel=0.1)


def test_a_view_on_views_is_left_alone(db: nearly.Session) -> None:
    db.create_view("above", "select item % 2000 as part, sum(n) as n from daily group by item % 2000")
    db.view("daily").refresh()
    db.insert("sales", sales(3 * ROWS, ROWS, 4))
    db.view("daily").refresh()
    before = db.view("above").stale
    query = db.sql("select sum(n) as n from daily")
    assert query.exact().table.to_pylist() == db.sql("select count(*) as n from sales", kernel="native").exact().table.to_pylist()
    assert "view above: no, it is stale, and no sample of it answers (it is made of views" in query.explain()
    assert db.view("above").stale == before


def test_intervals_of_low_confidence(db: nearly.Session) -> None:
    found = db.view("daily").query("select avg(n) as a, sum(total) as s from daily", confidence=0.1)
    assert found.confidence == 0.1
    assert not found.exact
