"""Which views serve a question is found once, and again when tables, views, experiments or the time zone are others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.autoview import attention, course, rewriter
from nearly.autoview.autoview import AutoView
from nearly.autoview.experiments import Experiment, Outcome, Side
from nearly.autoview.making import Usual
from nearly.autoview.options import Occasion
from nearly.autoview.policies.policy import ViewPolicy
from nearly.engine.planner import Prepared
from nearly.plan.nodes import Scan
from tests.autoview.keen import both, held_still, keen
from tests.fixtures.driver_only import driver_only

TEXT = "select g, sum(v) as s from t where v > 9 group by g order by g"


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[nearly.Session]:
    monkeypatch.setattr(rewriter, "CHEAPER", 1e9)
    pq.write_table(pa.table({"g": [number % 9 for number in range(3000)], "v": list(range(3000))}), tmp_path / "t.parquet")
    with keen(), driver_only(tmp_path / "catalog") as session:
        session.register("t", str(tmp_path / "t.parquet"))
        yield session


def opened(db: nearly.Session) -> AutoView:
    """Automatic views, of which some serve the text."""
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    for _ in range(8):
        db.sql(TEXT).exact()
        auto.settle()
    assert auto.status().views
    return auto


def lookups(auto: AutoView, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The plans that are compared with views from now on."""
    found: list[object] = []
    reuse = auto.keeping.rewriter.reuse

    def counted(self: object, prepared: object, *rest: object) -> object:
        found.append(prepared)
        return reuse(prepared, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(type(auto.keeping.rewriter), "reuse", counted)
    return found


def test_a_question_that_is_asked_again_is_not_compared_again(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    auto = opened(db)
    auto.keeping.policy = ViewPolicy()
    db.sql(TEXT).exact()
    compared = lookups(auto, monkeypatch)
    for _ in range(5):
        assert "autoview" in db.sql(TEXT).exact().source
    assert not compared


@pytest.mark.parametrize("change", ["view", "experiment", "zone", "table"])
def test_what_decides_a_lookup_ends_it(db: nearly.Session, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    auto = opened(db)
    auto.keeping.policy = ViewPolicy()
    source = db.sql(TEXT).exact().source
    compared = lookups(auto, monkeypatch)
    match change:
        case "view":
            auto.keeping.evict(next(each.id for each in auto.keeping.store.kept.values() if each.name == source))
        case "experiment":
            (used,) = [each.id for each in auto.keeping.store.kept.values() if each.name == source]
            side = Side(Scan("t", ()), ())
            question = course.question_of(db._engine.prepare(TEXT))
            auto.keeping.learn(Outcome(Experiment(question, used, side, side), 1e12, 1.0))
        case "zone":
            monkeypatch.setattr(type(db._engine.cluster), "time_zone", property(lambda _: "Asia/Tokyo"))
        case "table":
            db.insert("t", [{"g": 100, "v": 100}])
    found, expected, now = both(db, TEXT)
    assert found.equals(expected)  # type: ignore[attr-defined]
    assert compared
    assert now != source


def test_views_of_changed_tables_are_made_again_without_a_rest(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course, "PATIENCE", 0.0)
    auto = opened(db)
    for turn in range(3):
        db.insert("t", [{"g": 100 + turn, "v": 100}])
        sources = set()
        for _ in range(12):
            found, expected, source = both(db, TEXT)
            assert found.equals(expected)  # type: ignore[attr-defined]
            sources.add(source)
        assert sources - {"native"}, auto.status()
    assert auto.status().tally.lost


def test_views_of_changed_tables_wait_for_a_rest_at_first(db: nearly.Session) -> None:
    auto = opened(db)
    before = {each.name for each in auto.status().views}
    db.insert("t", [{"g": 100, "v": 100}])
    for _ in range(3):
        found, expected, _ = both(db, TEXT)
        assert found.equals(expected)  # type: ignore[attr-defined]
    assert before <= {each.name for each in auto.status().views}


def test_a_text_that_is_no_unicode_has_a_name() -> None:
    """Whether it can be answered is for those to say who are asked."""
    names = {course.question_of(Prepared(text, (), None, "spark", "")) for text in ("select '\ud800'", "select '\ud801'")}
    assert len(names) == 2


def test_what_a_query_took_counts_more_than_what_was_expected(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    auto = held_still(db.autoview("1MB", policy="lru", slowdown=10))
    monkeypatch.setattr(attention, "ENOUGH", 10.0)
    db.sql(TEXT).exact()
    assert not auto.status().views
    question = course.question_of(db._engine.prepare(TEXT))
    auto.course._usual.add((question, ()), Usual(1.0, 20.0))
    db.sql(TEXT).exact()
    assert auto.status().views


def test_what_a_question_takes_tells_what_its_views_gain(db: nearly.Session) -> None:
    auto = held_still(db.autoview("1MB", policy="off"))
    seen: list[Occasion] = []
    auto.keeping.policy.ranked = lambda moment: seen.append(moment) or ()  # type: ignore[func-returns-value,method-assign]
    db.sql(TEXT).exact()
    question = course.question_of(db._engine.prepare(TEXT))
    auto.course._usual.add((question, ()), Usual(1.0, 5.0))
    db.sql(TEXT).exact()
    before, after = ({each.id: (each.gain, each.cost) for each in moment.options} for moment in seen)
    assert before
    assert after == {id_: (5 * gain, 5 * cost) for id_, (gain, cost) in before.items()}
