"""One answer of the product against the exact one: rows, cells, intervals, certain bounds, and the answer as a whole."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
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
    """Of these, answers whose error is smaller than the share of rows that are missing or superfluous."""
    false_complete: int = 0
    """Of these, answers that call themselves complete."""
    false_firm: int = 0
    """Superfluous rows that are not called tentative."""
    unseen_given: int = 0
    """Answers with a bound of the rows that are not there yet, and those of them that lack more."""
    unseen_wrong: int = 0
    exact: int = 0
    """Exact answers, and those that differ from the oracle's."""
    exact_wrong: int = 0
    goals: int = 0
    """Runs to a given error, those that ended right as a whole, and the same of those that ended early."""
    goals_right: int = 0
    goals_early: int = 0
    goals_early_right: int = 0
    goals_early_near: int = 0
    """As right, but a share of the rows as large as the error may be missing or superfluous."""

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


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of an early answer, its bounds, and what it is in the exact answer."""

    key: Key
    column: str
    exact: Any
    value: Any
    low: Any
    high: Any
    hard_low: Any
    hard_high: Any

    @property
    def certain(self) -> bool:
        return self.hard_low is not None and bool(self.hard_low == self.hard_high)

    @property
    def given(self) -> bool:
        """Whether there is an interval; bounds that hold for sure are shown in its place where there is none."""
        sure = (self.low, self.high) == (self.hard_low, self.hard_high)
        return not self.certain and not sure and self.low is not None and self.high is not None

    @property
    def covered(self) -> bool:
        return self.exact is not None and _holds(self.exact, self.low, self.high)

    @property
    def inside(self) -> bool:
        return self.covered and bool(self.low < self.exact < self.high)

    @property
    def broken(self) -> bool:
        return self.exact is not None and not _holds(self.exact, self.hard_low, self.hard_high)

    @property
    def zero_wrong(self) -> bool:
        return self.given and not self.covered and bool(self.low == self.high)


def cells_of(answer: Answer, truth: Truth) -> Iterator[Cell]:
    """The cells of all rows that are in the exact answer, too."""
    sides = (answer.table, answer.low, answer.high, answer.hard_low, answer.hard_high)
    value, low, high, hard_low, hard_high = (list(by_key(table, 0).values()) for table in sides)
    for place, key in enumerate(by_key(answer.table, truth.keys)):
        for column, exact in enumerate(truth.rows.get(key, ()), start=truth.keys):
            bounds = (each[place][column] for each in (value, low, high, hard_low, hard_high))
            yield Cell(key, answer.table.column_names[column], exact, *bounds)


def judge(answer: Answer, truth: Truth) -> Score:
    """An early answer."""
    score = Score(answers=1, rows=len(truth.rows))
    for cell in cells_of(answer, truth):
        score.hard_broken += cell.broken
        score.cells += not cell.certain
        if cell.given:
            score.given += 1
            score.covered += cell.covered
            score.inside += cell.inside
            score.zero_wrong += cell.zero_wrong
    shown = list(by_key(answer.table, truth.keys))
    tentative = [False] * len(shown) if answer.tentative is None else answer.tentative.to_pylist()
    extra = [firm for firm, key in zip(tentative, shown, strict=True) if key not in truth.rows]
    score.superfluous, score.false_firm = len(extra), extra.count(False)
    score.missing = len(truth.rows) - len(shown) + len(extra)
    _judge_completeness(score, answer, _share_wrong(shown, truth))
    return score


def faults(answer: Answer, truth: Truth) -> list[str]:
    """What is wrong with an early answer, a line for each cell."""
    shown, head = by_key(answer.table, truth.keys).keys(), f"{answer.progress:.1%} read, error {answer.error:.3g}:"
    rows = [
        f"{head} {what} row {key[:-1]}"
        for what, keys in (("missing", truth.rows.keys() - shown), ("superfluous", shown - truth.rows.keys()))
        for key in keys
    ]
    return rows + [
        f"{head} {each.column} of {each.key[:-1]} is {each.exact}, not {each.value} in [{each.low}, {each.high}], "
        f"for sure [{each.hard_low}, {each.hard_high}]"
        for each in cells_of(answer, truth)
        if each.broken or (each.given and not each.covered)
    ]


def _judge_completeness(score: Score, answer: Answer, wrong: float) -> None:
    score.lacking = int(wrong > 0)
    score.false_error = int(answer.error < wrong)
    score.false_complete = int(answer.complete and wrong > 0)
    if answer.unseen is not None and math.isfinite(answer.unseen.most):
        score.unseen_given, score.unseen_wrong = 1, int(score.missing > answer.unseen.most)


def _share_wrong(shown: Collection[Key], truth: Truth) -> float:
    """Rows that are missing or superfluous, relative to all rows of the larger answer."""
    wrong = len(truth.rows.keys() ^ set(shown))
    return wrong / max(len(shown), len(truth.rows)) if wrong else 0.0


def _holds(exact: Any, low: Any, high: Any) -> bool:
    """Whether a value lies between ends; an end that is not known holds."""
    if isinstance(exact, float) and math.isnan(exact):
        return high is None or (isinstance(high, float) and math.isnan(high))
    if not isinstance(exact, int | float):
        return (low is None or low <= exact) and (high is None or exact <= high)
    slack = CLOSE * abs(exact) + max(map(_half_a_place, (low, high)))
    return (low is None or low <= exact + slack) and (high is None or exact - slack <= high)


def _half_a_place(end: Any) -> float:
    """How far a decimal may be from the double that it was rounded from."""
    return 0.5 * 10.0 ** float(end.as_tuple().exponent) if isinstance(end, Decimal) else 0.0


def judge_exact(answer: Answer, truth: Truth) -> Score:
    """An answer that calls itself exact."""
    return Score(exact=1, exact_wrong=int(not whole(answer.table, truth, CLOSE, CENT)))


def judge_goal(answer: Answer, truth: Truth, error: float, *, stopped: bool) -> Score:
    """The last answer of a run to some error: right when it has the rows of the exact one and each number is so near to its own.

    A run that was not over by then would go on to the exact answer.
    """
    if answer.exact or not stopped:
        return Score(goals=1, goals_right=1)
    right = int(whole(answer.table, truth, error))
    shown = by_key(answer.table, truth.keys)
    near = int(_share_wrong(shown, truth) <= error and _all_near(shown, truth, error))
    return Score(goals=1, goals_right=right, goals_early=1, goals_early_right=right, goals_early_near=near)


def whole(table: pa.Table, truth: Truth, error: float, tiny: float = 0.0) -> bool:
    """Whether the rows are those of the exact answer, and every number is within the error of the exact one."""
    shown = by_key(table, truth.keys)
    return shown.keys() == truth.rows.keys() and _all_near(shown, truth, error, tiny)


def _all_near(shown: dict[Key, Row], truth: Truth, error: float, tiny: float = 0.0) -> bool:
    pairs = ((row, truth.rows[key]) for key, row in shown.items() if key in truth.rows)
    return all(_near(mine, exact, error, tiny) for row, other in pairs for mine, exact in zip(row, other, strict=True))


def _near(mine: Any, exact: Any, error: float, tiny: float) -> bool:
    if not isinstance(exact, int | float) or mine is None:
        return bool(mine == exact)
    if isinstance(exact, float) and math.isnan(exact):
        return isinstance(mine, float) and math.isnan(mine)
    return bool(abs(mine - exact) <= error * abs(exact) + tiny * min(1.0, abs(exact)) + 1e-9)
