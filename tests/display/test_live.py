"""`Query.live` and `Query.answers` on Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nearly
from tests.fixtures.lake import DAYS, ROWS_A_DAY, write_lake

COUNT = "select count(*) as n, sum(fare) as s from rides"


@pytest.fixture(scope="module")
def db(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    lake: Path = write_lake(tmp_path_factory.mktemp("lake"))
    with nearly.connect(spark, path=tmp_path_factory.mktemp("catalog"), eager=True) as session:
        session.register("rides", lake / "rides")
        yield session


def test_live_shows_every_answer_and_returns_the_last(db: nearly.Session, capsys: pytest.CaptureFixture[str]) -> None:
    answer = db.sql(COUNT).live()
    lines = capsys.readouterr().out.splitlines()
    assert answer.exact
    assert answer.table["n"].to_pylist() == [DAYS * ROWS_A_DAY]
    assert re.match(r"\d\d? % read", lines[0])
    assert lines[-1].split()[0] == f"{DAYS * ROWS_A_DAY:,}"


def test_live_ends_where_the_answer_is_good_enough(db: nearly.Session, capsys: pytest.CaptureFixture[str]) -> None:
    answer = db.sql(COUNT).live(error=0.9)
    assert not answer.exact
    assert "±" in capsys.readouterr().out
    assert "±" in str(answer)


def test_live_of_a_query_that_is_exact_at_once(db: nearly.Session, capsys: pytest.CaptureFixture[str]) -> None:
    assert db.sql("select 'ä' as a, cast(null as int) as b").live().exact
    assert capsys.readouterr().out.splitlines()[-1] == "ä  NULL"


def test_answers_with_a_goal_are_those_before_it(db: nearly.Session) -> None:
    few = list(db.sql(COUNT).answers(error=0.9))
    assert len(few) == 1
    assert few[0].table.equals(next(iter(db.sql(COUNT))).table)


@pytest.mark.parametrize("goal", [{"error": 0.0}, {"error": -1.0}, {"seconds": 0.0}, {"seconds": float("nan")}])
def test_goals_that_are_none(db: nearly.Session, goal: dict[str, float]) -> None:
    with pytest.raises(nearly.SchemaError, match="must be greater than 0"):
        db.sql(COUNT).live(**goal)
    with pytest.raises(nearly.SchemaError, match="must be greater than 0"):
        db.sql(COUNT).answers(**goal)
