"""Pairs of rows of two samples: what becomes of some aggregates of them, and what their estimates and replicates are."""

from __future__ import annotations

import pytest

from nearly.rewrite.stream import cut_query
from nearly.rewrite.weigh.weigh import keyed_aggregates
from tests.fixtures.queries import QueryCase
from tests.rewrite.golden_plans import cases, check
from tests.rewrite.weigh.laws import check_estimate, check_replicates, cut_of, shown_tail

NAME = "weigh/pairs"


@pytest.fixture(autouse=True)
def _tables_count_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_query, "SAMPLED_ROWS", 0)


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_a_replicate_is_the_estimate_without_a_unit_of_both(case: QueryCase) -> None:
    cut = cut_of(case.text)
    assert cut.beside == {"other"}
    assert not keyed_aggregates(cut.tail, cut.stages), "how often a key was met among pairs tells nothing of its growth"
    check(NAME, case, shown_tail(cut, {}))
    check_estimate(case.text, cut, {})
    check_replicates(cut, {})


@pytest.mark.parametrize(
    "text",
    [
        "select count(distinct z) c from event join other on k = ok",
        "select count(*) c from event left join other on k = ok",
        "select count(*) c from event where k in (select ok from other)",
        "select avg(c) a from (select z, count(*) c from event join other on k = ok group by z) t",
        "select median(v) m from event join other on k = ok",
        "select count(*) c from event a join event b on a.kind = b.kind",
        "select w, count(*) c from event join visit on k = vk group by w",
    ],
)
def test_other_queries_read_one_table_whole(text: str) -> None:
    assert not cut_of(text).beside
