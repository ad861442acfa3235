"""The suffixes WITHIN ... are read from the end of a query and nowhere else."""

from __future__ import annotations

import pytest

from nearly.errors import ParseError
from nearly.plan.syntax.goal import Goal, split_goal


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
        ("select 'within' 5 %", Goal()),
    ],
)
def test_goals(text: str, goal: Goal) -> None:
    plain, found = split_goal(text)
    assert found == goal
    assert plain == (text if goal == Goal() else text[: text.lower().rindex("within")].rstrip())


@pytest.mark.parametrize(
    "suffix",
    [
        "5 bananas", "1% confidence", "3", "0%", "0.0 seconds", "nan%", "inf%", "nan seconds", "1e999 seconds", "1e-999%",
        "1% confidence 0%", "1% confidence 100%", "1% confidence nan%",
    ],
)  # fmt: skip
def test_nonsense_is_refused(suffix: str) -> None:
    with pytest.raises(ParseError, match="WITHIN 1%"):
        split_goal(f"select 1 within {suffix}")
