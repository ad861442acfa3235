"""What refreshes took corrects what the next ones are expected to take."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from nearly.rewrite.delta.strategy.strategies import DELTA, WHOLE
from nearly.views.costs import FARTHEST, corrected
from nearly.views.states import Refresh

EXPECTED = {DELTA: 1.0, WHOLE: 2.0}


def took(strategy: str, seconds: float) -> Refresh:
    return Refresh(dt.datetime(2026, 1, 1, tzinfo=dt.UTC), strategy, "", 0, 0, 0, 0, seconds, EXPECTED)


def test_estimates_follow_what_refreshes_took() -> None:
    assert corrected(EXPECTED, []) == EXPECTED
    assert corrected(EXPECTED, [took(DELTA, 3.0)])[DELTA] == pytest.approx(3.0)
    assert corrected(EXPECTED, [took(DELTA, 3.0), took(DELTA, 1.0)])[DELTA] == pytest.approx(2.0)
    assert corrected(EXPECTED, [took(DELTA, 1000.0)])[DELTA] == pytest.approx(FARTHEST)


def test_who_reads_first_for_others_was_not_slow() -> None:
    first = replace(took(DELTA, 3.0), most=4.0)
    assert corrected(EXPECTED, [first])[DELTA] == pytest.approx(1.0)
    assert corrected(EXPECTED, [replace(first, seconds=8.0)])[DELTA] == pytest.approx(2.0)
    assert corrected(EXPECTED, [replace(first, seconds=0.5)])[DELTA] == pytest.approx(0.5)


def test_what_was_never_tried_is_off_in_part_as_the_making_was() -> None:
    """A machine that is slower than the constants is slower in every way; a query that is, not quite."""
    assert corrected(EXPECTED, [took(WHOLE, 8.0)]) == pytest.approx({DELTA: 2.0, WHOLE: 8.0})
    assert corrected(EXPECTED, [took(WHOLE, 8.0), took(DELTA, 1.0)])[DELTA] == pytest.approx(1.0)


def test_what_was_slow_once_is_tried_again() -> None:
    past = [took(DELTA, 5.0)]
    while corrected(EXPECTED, past)[DELTA] > corrected(EXPECTED, past)[WHOLE]:
        past.append(took(WHOLE, 2.0))
        assert len(past) < 10
    assert len(past) > 1
