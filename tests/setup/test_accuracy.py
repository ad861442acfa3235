"""The strict comparison of an early answer with the exact one: rows that are missing or superfluous count."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from benchmarks.accuracy import accuracy
from benchmarks.timeline import Look, good_from
from tests.fixtures.answers import estimated

EXACT = pa.table({"city": ["Bern", "Oslo"], "n": [10, 20]})


def judged(columns: dict[str, list[Any]], evolving: tuple[int, ...] = (1,), exact: pa.Table = EXACT) -> Any:
    table = pa.table(columns).cast(exact.schema)
    return accuracy(estimated(table, table, table, evolving=evolving), exact)


def test_the_exact_answer_is_right() -> None:
    found = judged({"city": ["Oslo", "Bern"], "n": [20, 10]})
    assert (found.error, found.recall, found.strict, found.whole) == (0.0, 1.0, 0.0, 0.0)


def test_a_wrong_number_counts_beside_the_larger_of_both() -> None:
    found = judged({"city": ["Bern", "Oslo"], "n": [10, 25]})
    assert (found.error, found.worst, found.whole) == (0.125, 0.2, 0.2)


def test_a_missing_row_is_half_of_two() -> None:
    found = judged({"city": ["Bern"], "n": [10]})
    assert (found.error, found.recall, found.strict) == (0.0, 0.5, 0.5)
    assert (found.missing, found.superfluous, found.whole) == (0.5, 0.0, 0.5)


def test_a_superfluous_row_counts() -> None:
    found = judged({"city": ["Bern", "Oslo", "Rome", "Ulm"], "n": [10, 20, 1, 2]})
    assert (found.error, found.recall, found.superfluous, found.whole) == (0.0, 1.0, 0.5, 0.5)


def test_an_empty_answer_is_wholly_wrong_unless_it_is_right() -> None:
    empty: dict[str, list[Any]] = {"city": [], "n": []}
    assert judged(empty).whole == 1.0
    assert judged(empty, exact=EXACT.slice(0, 0)).whole == 0.0


def test_a_text_that_evolves_must_be_the_same() -> None:
    assert judged({"city": ["Bern", "Rome"], "n": [10, 20]}, evolving=(0, 1)).whole == 0.5


def test_rows_without_other_columns_are_matched_in_order() -> None:
    exact = pa.table({"n": [1, 2, 3]})
    assert judged({"n": [3, 1]}, (0,), exact).missing == pytest.approx(1 / 3)
    assert judged({"n": [3, 2, 1]}, (0,), exact).whole == 0.0


@pytest.mark.parametrize(("told", "false"), [(0.0, True), (0.19, True), (0.2, False), (1.0, False), (float("inf"), False)])
def test_an_error_is_belied_by_a_greater_one(told: float, false: bool) -> None:
    assert judged({"city": ["Bern", "Oslo"], "n": [10, 25]}).belies(told) is false


def test_an_answer_with_missing_rows_is_not_strictly_good() -> None:
    table = EXACT.slice(0, 1)
    early = estimated(table, table, table, evolving=(1,))
    looks = [Look(1.0, early, accuracy(early, EXACT)), Look(2.0, early, accuracy(early, table))]
    assert (good_from(looks), good_from(looks, strictly=True)) == (1.0, 2.0)
