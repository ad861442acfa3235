"""Views whose query means something else in another time zone: no session takes the rows of another zone for its own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.errors import Unsupported
from nearly.views.moving import Move
from tests.fixtures.driver_only import driver_only

LOCAL = (
    "select cast(t as date) as d, count(*) as n from log group by cast(t as date)",
    "select hour(t) as h, max(t) as last from log group by hour(t)",
    "select id, t from log where date_trunc('day', t) = date '2020-01-01'",
)
ANYWHERE = (
    "select t, count(*) as n from log group by t",
    "select id, max(t) as last from log where t is not null group by id",
    "select id, rank() over (partition by id order by t) as r from log",
)


def moment(day: int, hour: int) -> dt.datetime:
    return dt.datetime(2020, 1, day, hour, 30, tzinfo=dt.UTC)


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[nearly.Session, nearly.Session]]:
    """A session in Greenwich and one in Tokyo, over the same catalog."""
    monkeypatch.setattr(Move, "_too_much", lambda *_: None)
    times = [moment(1, 1), moment(1, 14), moment(1, 23), None]
    pq.write_table(pa.table({"id": [1, 2, 3, 4], "t": pa.array(times, pa.timestamp("us", "UTC"))}), tmp_path / "log.parquet")
    with ExitStack() as opened:
        here = opened.enter_context(driver_only(tmp_path / "catalog"))
        here.register("log", str(tmp_path / "log.parquet"), key=["id"])
        yield here, opened.enter_context(driver_only(tmp_path / "catalog", zone="Asia/Tokyo"))


def rows(db: nearly.Session, text: str, **options: Any) -> list[dict[str, Any]]:
    return sorted(db.sql(text, **options).exact().table.to_pylist(), key=str)


@pytest.mark.parametrize("text", LOCAL)
def test_a_session_elsewhere_asks_the_tables(sessions: tuple[nearly.Session, nearly.Session], text: str) -> None:
    here, there = sessions
    here.create_view("v", text)
    assert rows(here, text, using="v") == rows(here, text, kernel="native")
    assert rows(there, text, kernel="native") != rows(here, text, kernel="native")
    with pytest.raises(Unsupported, match="computed in time zone UTC"):
        there.sql(text, using="v").exact()
    assert rows(there, text) == rows(there, text, kernel="native")


@pytest.mark.parametrize("text", LOCAL)
def test_a_refresh_elsewhere_computes_all_rows_there(sessions: tuple[nearly.Session, nearly.Session], text: str) -> None:
    here, there = sessions
    here.create_view("v", text)
    there.view("v").refresh()
    assert rows(there, "select * from v") == rows(there, text, kernel="native")
    here.insert("log", [{"id": 5, "t": moment(1, 16)}])
    here.delete("log", [{"id": 2}])
    assert here.view("v").query("select * from v").source == "view v"
    assert rows(here, "select * from v") == rows(here, text, kernel="native")
    assert "OTHER_TIME_ZONE" in here.view("v").history[0].reason
    here.insert("log", [{"id": 6, "t": moment(2, 16)}])
    here.view("v").refresh()
    assert here.view("v").history[0].strategy != "whole"
    assert rows(here, "select * from v") == rows(here, text, kernel="native")


@pytest.mark.parametrize("text", ANYWHERE)
def test_moments_are_the_same_everywhere(sessions: tuple[nearly.Session, nearly.Session], text: str) -> None:
    here, there = sessions
    here.create_view("v", text)
    there.insert("log", [{"id": 5, "t": moment(1, 16)}])
    there.view("v").refresh()
    assert there.view("v").history[0].strategy != "whole"
    assert there.sql(text, using="v").exact().source == "view v"
    assert rows(here, "select * from v") == rows(here, text, kernel="native")
