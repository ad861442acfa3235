"""How operators are kept up to date, and the reasons where that is not by their change alone."""

from __future__ import annotations

import pytest

from nearly.rewrite.delta.strategy.reasons import REASONS
from nearly.rewrite.delta.strategy.strategies import is_incremental, strategies
from tests.rewrite import shop

CASES = {
    "select k, v from event where v > 3": None,
    "select label, count(*) c from event join kind on kind = id group by label": None,
    "select kind, sum(x) s from event group by kind": "DOUBLES",
    "select s, count(*) c from (select kind, sum(x) s from event group by kind) group by s": "DOUBLES_AS_KEYS",
    "select max(s) m from (select kind, sum(x) s from event group by kind)": "DOUBLES_AS_KEYS",
    "select s from (select kind, avg(x) s from event group by kind) union select 1.0D": "DOUBLES_AS_KEYS",
    "select kind, s from (select kind, sum(x) s from event group by kind) where s > 3": "DOUBLES",
    "select s, count(*) c from (select kind, sum(v) s from event group by kind) group by s": None,
    "select kind, count(distinct v) n from event group by kind": "DISTINCT_VALUES",
    "select kind, percentile(x, 0.5) p from event group by kind": "NOT_MERGEABLE",
    "select k, rank() over (order by v) r from event": "WINDOW_WITHOUT_PARTITION",
    "select k from event where exists (select 1 from visit limit 1)": "NO_EQUALITY",
    "select k from event limit 3": "LIMIT_WITHOUT_TOTAL_ORDER",
    "select kind, count(*) c from event group by kind order by kind limit 3": "LIMIT_BELOW",
    "select count(*) c from event": "ONE_GROUP",
    "select k from event where v > (select avg(v) from event)": "VALUE_IN_EVERY_ROW",
    "select vk from visit left join other on vk < ok": "NO_EQUALITY",
}


@pytest.mark.parametrize("text", CASES)
def test_reasons(text: str) -> None:
    found = strategies(shop.planned(text), shop.schema)
    codes = [each.reason.code for each in found if each.reason is not None]
    assert CASES[text] is None or CASES[text] in codes
    assert CASES[text] is not None or codes == []


@pytest.mark.parametrize(
    ("text", "incremental"),
    [
        ("select kind, sum(x) s from event group by kind", True),
        ("select k, rank() over (order by v) r from event", False),
        ("select count(*) c from event", False),
        ("select k from event where exists (select 1 from visit where vk > 3)", True),
        ("select k from event where kind not in (select vk from visit)", True),
    ],
)
def test_whole_is_not_incremental(text: str, incremental: bool) -> None:
    assert is_incremental(strategies(shop.planned(text), shop.schema)) == incremental


def test_one_group_that_is_stored_is_merged() -> None:
    plan = shop.topmost_aggregate("select count(*) c from event")
    assert is_incremental(strategies(plan, shop.schema, {plan}))


@pytest.mark.parametrize("code", REASONS)
def test_every_reason_says_why_and_what_instead(code: str) -> None:
    assert REASONS[code].code == code
    assert REASONS[code].why
    assert REASONS[code].instead


def test_shown_with_reason() -> None:
    (first, *_) = strategies(shop.planned("select k from event limit 3"), shop.schema)
    assert str(first).startswith("Limit 3: whole    -- LIMIT_WITHOUT_TOTAL_ORDER: which rows")
