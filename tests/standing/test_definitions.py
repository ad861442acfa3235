"""What a catalog keeps of standing queries: each session writes and removes only the definitions of its own. Without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

import nearly
from nearly.engine.storage.serialise import opened as unsealed
from nearly.engine.storage.serialise import sealed
from nearly.errors import EngineError, NearlyError, SchemaError
from nearly.standing.arrivals import Given
from nearly.standing.catalogue import StandingQueries
from tests.standing.test_standing import TEXT, expected, opened, orders, shown
from tests.standing.test_watching import until

COUNT = "select count(*) as n from orders"
GREATEST = "select max(id) as m from orders"


def queries(db: nearly.Session) -> StandingQueries:
    return db._rooms.standing


def definition(path: Path, name: str = "x") -> Path:
    return path / "catalog" / "standing" / f"{name}.json"


def test_law_a_query_that_was_stopped_elsewhere_does_not_write_over_its_successor(tmp_path: Path) -> None:
    with opened(tmp_path) as first, opened(tmp_path) as second:
        old = first.standing(COUNT, name="x")
        second.drop_standing("x")
        new = second.standing(GREATEST, name="x")
        before = definition(tmp_path).read_bytes()
        queries(first)._write(old)
        assert definition(tmp_path).read_bytes() == before
        assert until(lambda: old.is_over)
        old.stop()
        assert definition(tmp_path).read_bytes() == before
        second.insert("orders", orders(1000, 5))
        assert new.refresh().table.to_pylist() == [{"m": 1004}]
    with opened(tmp_path) as third:
        assert third.standing(name="x").text == GREATEST


def test_stopping_a_query_does_not_stop_its_successor(tmp_path: Path) -> None:
    with opened(tmp_path) as first, opened(tmp_path) as second:
        old = first.standing(COUNT, name="x")
        second.drop_standing("x")
        new = second.standing(COUNT, name="x")
        old.stop()
        queries(second)._leave_forgotten()
        assert second.standings == ("x",)
        assert not new.is_over


def test_sessions_that_go_on_with_one_query_share_its_definition(tmp_path: Path) -> None:
    with opened(tmp_path) as first, opened(tmp_path) as second:
        pair = first.standing(COUNT, name="x"), second.standing(name="x")
        for each in (first, second):
            queries(each)._leave_forgotten()
        assert not any(each.is_over for each in pair)
        second.drop_standing("x")
        queries(first)._leave_forgotten()
        assert all(each.is_over for each in pair)


def test_what_was_told_and_what_came_are_there_in_the_next_session(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        s = first.standing(TEXT, name="x")
        for number in range(3):
            first.insert("orders", orders(1000 + number, 1))
            s.refresh()
        s.complete("customers")
    with opened(tmp_path) as second:
        s = second.standing(name="x")
        assert s.status().complete == ("customers",)
        assert [each.rows("orders") for each in s.forecast.past.batches] == [1.0, 1.0, 1.0]
        s.complete("orders")
        assert s.is_over
        assert second.standings == ()


def test_what_is_complete_is_kept_at_once(tmp_path: Path) -> None:
    """A process that is killed then has told it."""
    with opened(tmp_path) as db:
        db.standing(TEXT, name="x").complete("Customers")
        assert unsealed(definition(tmp_path).read_text(), dict)["complete"] == ["customers"]


def test_what_came_with_a_refresh_is_kept_while_the_session_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        s = db.standing(TEXT, name="x")
        db.insert("orders", orders(1000, 1))
        s.refresh()
        assert until(lambda: len(unsealed(definition(tmp_path).read_text(), dict)["batches"]) == 1)


def test_after_the_session_nothing_can_be_told(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        s = db.standing(TEXT, name="x")
    with pytest.raises(NearlyError, match="closed"):
        s.complete("orders")


@pytest.mark.parametrize("damage", ["{nonsense", "[]", '{"format": 0}', "\x00", sealed({}), sealed({"text": 3})])
def test_a_damaged_definition_says_whose_it_is_and_what_to_do(damage: str, tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        db.standing(COUNT, name="x").close()
        definition(tmp_path).write_text(damage)
        for attempt in (lambda: db.standing(name="x"), lambda: db.standing(COUNT, name="x")):
            with pytest.raises(EngineError, match=r"standing query 'x' cannot be read: .+ end it with db.drop_standing\('x'\)"):
                attempt()
        db.drop_standing("x")
        assert db.standing(COUNT, name="x").answer.table.to_pylist() == [{"n": 1000}]


def test_what_cannot_be_removed_is_named(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        definition(tmp_path).mkdir(parents=True)
        with pytest.raises(EngineError, match=r"cannot be removed: .+ remove .+x\.json yourself"):
            db.drop_standing("x")
        with pytest.raises(EngineError, match="cannot be read"):
            db.standing(name="x")


OTHERS = [{"every": "2 hours"}, {"rows": 6}, {"memory": "512MB"}, {"disk": "1GB"}]
BAD = [{"every": "soon"}, {"rows": 0}, {"memory": "much"}, {"disk": "-1"}, {"arrivals": {"nowhere": 1}}, {"on_change": 3}]


@pytest.mark.parametrize("runs", [True, False])
def test_who_goes_on_with_a_query_is_told_what_it_cannot_say(runs: bool, tmp_path: Path) -> None:
    defined = {"every": "1 hour", "rows": 7, "memory": "64MB"}
    with opened(tmp_path) as db:
        s = db.standing(COUNT, name="x", **defined)
        for given in (*OTHERS, *BAD):
            if not runs:
                s.close()
            with pytest.raises(SchemaError, match=next(iter(given)) if given in OTHERS else None):
                db.standing(name="x", **given)
        s = db.standing(name="x", **{**defined, "every": "60 minutes"})
        assert (s.policy.every, s.policy.rows, s.budget.memory) == (3600, 7, 64 << 20)
        s.close()
        s = db.standing(COUNT, name="x", every="2 hours")
        assert (s.policy.every, s.policy.rows) == (7200, None)


@pytest.mark.parametrize("runs", [True, False])
def test_who_goes_on_with_a_query_is_told_of_changes(runs: bool, tmp_path: Path) -> None:
    told: list[int] = []
    with opened(tmp_path) as db:
        s = db.standing(COUNT, name="x", on_change=None if runs else lambda *_: told.append(0))
        if not runs:
            s.close()
        for number in (1, 2):
            again = db.standing(name="x", on_change=lambda *_, number=number: told.append(number), arrivals={"orders": number})
            assert (again is s) == (runs or number == 2)
            s = again
            db.insert("orders", orders(1000 + number, 1))
            s.refresh()
        assert told == [1, 2]
        assert s.status().prediction["orders"].rows == 2
    with opened(tmp_path) as db:
        assert db.standing(name="x").forecast.predictor == Given({"orders": 2})


def test_a_definition_of_before_has_no_identity(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        first.standing(TEXT, name="x", rows=7)
    content = unsealed(definition(tmp_path).read_text(), dict)
    del content["identity"]
    definition(tmp_path).write_text(sealed(content))
    with opened(tmp_path) as second:
        s = second.standing(name="x")
        queries(second)._leave_forgotten()
        assert not s.is_over
        assert s.policy.rows == 7
        assert shown(s.answer) == expected(second)
        queries(second)._write(s)
        assert unsealed(definition(tmp_path).read_text(), dict)["rows"] == 7
        second.drop_standing("x")
        assert second.standings == ()
