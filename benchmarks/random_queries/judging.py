"""One answer of the product against the exact one: rows, cells, intervals, certain bounds, and the answer as a whole."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, Self

import pyarrow as pa

from nearly.answer import Answer

CLOSE = 1e-7
"""Sums of doubles in another order differ by less, relative to their size."""
CENT = 1e-3
"""Averages of decimals are rounded to some places."""

Key = tuple[Any, ...]
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """The exact rows by their keys; what occurs several times is numbered."""

    rows: dict[Key, Row]
    keys: int

    @classmethod
    def of(cls, table: pa.Table, keys: int) -> Truth:
        return cls(by_key(table, keys), keys)


@dataclass(slots=True)
class Score:
    """What was found in answers; scores add up."""

    answers: int = 0
    """Early answers that were judged."""
    cells: int = 0
    """Values of rows that are in the exact answer, too, and are not known for sure."""
    given: int = 0
    """Those with both ends of an interval."""
    covered: int = 0
    inside: int = 0
    """Covered and not on an end."""
    below: int = 0
    """The exact value lies below the interval."""
    zero_wrong: int = 0
    """Intervals without width beside the exact value."""
    hard_broken: int = 0
    rows: int = 0
    """Of the exact answer."""
    missing: int = 0
    superfluous: int = 0
    lacking: int = 0
    """Answers with missing or superfluous rows."""
    false_error: int = 0
    """Of these, answers with a finite error."""
    false_complete: int = 0
    """Of these, answers that call themselves complete."""
    unseen_given: int = 0
    """Answers with an estimate of the rows that are not there yet, and those of them whose bounds are wrong."""
    unseen_wrong: int = 0
    exact: int = 0
    """Exact answers, and those that differ from the oracle's."""
    exact_wrong: int = 0
    goals: int = 0
    """Runs to a given error, those that ended right as a whole, and the same of those that ended early."""
    goals_right: int = 0
    goals_early: int = 0
    goals_early_right: int = 0

    def __iadd__(self, other: Score) -> Self:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))
        return self

    @property
    def coverage(self) -> float | None:
        return self.covered / self.given if self.given else None


def by_key(table: pa.Table, keys: int) -> dict[Key, Row]:
    """Rows by their first columns, and by how often these occurred before."""
    seen: Counter[Key] = Counter()
    found = {}
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        key = tuple(map(plain, row[:keys]))
        found[*key, seen[key]] = tuple(map(plain, row[keys:]))
        seen[key] += 1
    return found


def plain(value: Any) -> Any:
    """Decimals as doubles."""
    return float(value) if isinstance(value, Decimal) else value


def judge(answer: Answer, truth: Truth) -> Score:
    """An early answer."""
    value, low, high, hard_low, hard_high = (
        list(by_key(table, 0).values()) for table in (answer.table, answer.low, answer.high, answer.hard_low, answer.hard_high)
    )
    score = Score(answers=1, rows=len(truth.rows))
    shown = list(by_key(answer.table, truth.keys))
    for place, key in enumerate(shown):
        if key in truth.rows:
            for column, exact in enumerate(truth.rows[key], start=truth.keys):
                ends = low[place][column], high[place][column]
                _judge_cell(score, exact, ends, (hard_low[place][column], hard_high[place][column]), value[place][column])
    present = sum(key in truth.rows for key in shown)
    score.missing, score.superfluous = len(truth.rows) - present, len(shown) - present
    _judge_completeness(score, answer)
    return score


def _judge_cell(score: Score, exact: Any, ends: tuple[Any, Any], hard: tuple[Any, Any], value: Any) -> None:
    if not _holds(exact, hard, one_sided=True):
        score.hard_broken += 1
    if hard[0] is not None and hard[0] == hard[1]:
        return
    score.cells += 1
    if ends[0] is None or ends[1] is None:
        return
    score.given += 1
    covered = _holds(exact, ends)
    score.covered += covered
    score.inside += covered and ends[0] < exact < ends[1]
    score.below += not covered and exact is not None and exact < ends[0]
    score.zero_wrong += not covered and ends[0] == ends[1]


def _judge_completeness(score: Score, answer: Answer) -> None:
    lacking = bool(score.missing or score.superfluous)
    score.lacking = int(lacking)
    score.false_error = int(lacking and math.isfinite(answer.error))
    score.false_complete = int(lacking and getattr(answer, "complete", None) is True)
    unseen = getattr(answer, "unseen", None)
    if unseen is not None:
        score.unseen_given = 1
        low, high = getattr(unseen, "low", None), getattr(unseen, "high", None)
        score.unseen_wrong = int((low is not None and score.missing < low) or (high is not None and score.missing > high))


def _holds(exact: Any, ends: tuple[Any, Any], one_sided: bool = False) -> bool:
    low, high = ends
    if exact is None:
        return one_sided
    if isinstance(exact, float) and math.isnan(exact):
        return high is None or (isinstance(high, float) and math.isnan(high))
    slack = CLOSE * abs(exact) if isinstance(exact, int | float) else None
    below = low is not None and (low > exact if slack is None else low > exact + slack)
    above = high is not None and (high < exact if slack is None else high < exact - slack)
    return not (below or above)


def judge_exact(answer: Answer, truth: Truth) -> Score:
    """An answer that calls itself exact."""
    return Score(exact=1, exact_wrong=int(not whole(answer.table, truth, CLOSE, CENT)))


def judge_goal(answer: Answer, truth: Truth, error: float, *, stopped: bool) -> Score:
    """The last answer of a run to some error: right when it has the rows of the exact one and each number is so near to its own.

    A run that was not over by then would go on to the exact answer.
    """
    early = int(stopped and not answer.exact)
    right = int(whole(answer.table, truth, error) if early else True)
    return Score(goals=1, goals_right=right, goals_early=early, goals_early_right=early * right)


def whole(table: pa.Table, truth: Truth, error: float, tiny: float = 0.0) -> bool:
    """Whether the rows are those of the exact answer, and every number is within the error of the exact one."""
    shown = by_key(table, truth.keys)
    return shown.keys() == truth.rows.keys() and all(
        _near(mine, exact, error, tiny) for key, row in shown.items() for mine, exact in zip(row, truth.rows[key], strict=True)
    )


def _near(mine: Any, exact: Any, error: float, tiny: float) -> bool:
    if not isinstance(exact, int | float) or mine is None:
        return bool(mine == exact)
    if isinstance(exact, float) and math.isnan(exact):
        return isinstance(mine, float) and math.isnan(mine)
    return bool(abs(mine - exact) <= error * abs(exact) + tiny * min(1.0, abs(exact)) + 1e-9)
