"""The suffixes WITHIN ... are read from the end of a query and nowhere else."""

from __future__ import annotations

import pytest

from nearly.errors import ParseError
from nearly.plan.goal import Goal, split_goal


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("select 1 within 1%", Goal(error=0.01)),
        ("select 1 WITHIN 0.5 % CONFIDENCE 99 %;", Goal(error=0.005, confidence=0.99)),
        ("select 1 within 2 seconds", Goal(seconds=2.0)),
        ("select 1\nwithin 250 ms", Goal(seconds=0.25)),
        ("select 'within 1%'", Goal()),
        ("select percentile_cont(0.5) within group (order by x) from t", Goal()),
        ("select within from t", Goal()),
    ],
)
def test_goals(text: str, goal: Goal) -> None:
    plain, found = split_goal(text)
    assert found == goal
    assert plain == (text if not goal.given else text[: text.lower().rindex("within")].rstrip())


@pytest.mark.parametrize("text", ["select 1 within 5 bananas", "select 1 within 1% confidence", "select 1 within 3"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="WITHIN 1%"):
        split_goal(text)
