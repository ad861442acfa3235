"""Random queries in four layouts: early answers against the exact ones, as `./run bench coverage` holds them, but fewer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.random_queries import storing
from benchmarks.random_queries.asking import KINDS, draw
from benchmarks.random_queries.families import FAMILIES, LAYOUTS, Family
from benchmarks.random_queries.judging import Score, Truth, faults, judge, judge_goal, whole
from benchmarks.random_queries.storing import Oracle, write
from benchmarks.random_queries.telling import added, offenders
from benchmarks.random_queries.trying import Asker, Task, Trial
from nearly.answer import Answer
from nearly.rewrite.stream import cut_query
from tests.fixtures.driver_only import driver_only

SCALE = 0.1
"""Of the rows of the benchmark's tables."""
GOAL = 0.3
"""An error that runs over so few rows reach before their end."""


def _trials(directory: Path, names: Sequence[str], rounds: int, seed: int) -> list[Trial]:
    """Every kind so many times, in other layouts, each time another query with a seed of its own."""
    families = [FAMILIES[name](np.random.default_rng(seed), SCALE) for name in names]
    for layout in LAYOUTS:
        for family in families:
            write(family, layout, directory, seed)
    oracle, asker = Oracle(families, LAYOUTS[0], directory), Asker(families, directory, goal=GOAL)
    found: list[Trial] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cut_query, "SAMPLED_ROWS", cut_query.SAMPLED_ROWS)  # the benchmark changes it; it is put back here
        patch.setattr(storing.nearly, "connect", lambda *, path, eager, lazy: driver_only(path, eager=eager))  # noqa: ARG005
        for asked in draw(families, tuple(KINDS), rounds * len(KINDS), seed):
            layout = LAYOUTS[(asked.number + asked.number // len(KINDS)) % len(LAYOUTS)]
            truth = Truth.of(oracle.answer(asked.oracle), asked.keys)
            found += asker.trials(Task(layout, ((asked, truth),), (asked.number,)))
    asker.close()
    return found


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    return _trials(tmp_path_factory.mktemp("few"), ("sales", "calls"), 2, 23)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    return _trials(tmp_path_factory.mktemp("many"), tuple(FAMILIES), 6, 29)


def _told(trials: Sequence[Trial], word: str) -> str:
    return "\n" + "\n".join(each.line for each in offenders(trials) if each.line.startswith(word))


def _early(trials: Sequence[Trial]) -> Score:
    return added(score for trial in trials for score in (trial.first, trial.later))


@pytest.mark.long
def test_there_are_early_answers(few: list[Trial]) -> None:
    assert not [trial.failure for trial in few if trial.failure]
    assert _early(few).answers > 0.9 * len(few)


@pytest.mark.long
def test_no_interval_without_width_is_wrong(few: list[Trial]) -> None:
    assert _early(few).zero_wrong == 0, _told(few, "ZERO")


@pytest.mark.long
def test_certain_bounds_hold(few: list[Trial]) -> None:
    assert _early(few).hard_broken == 0, _told(few, "CERTAIN")


@pytest.mark.long
def test_no_finite_error_while_rows_are_missing(few: list[Trial]) -> None:
    assert _early(few).false_error == 0, _told(few, "FALSE ERROR")


@pytest.mark.long
def test_complete_answers_have_all_rows(few: list[Trial]) -> None:
    assert _early(few).false_complete == 0, _told(few, "FALSE COMPLETE")


@pytest.mark.long
def test_intervals_cover(few: list[Trial]) -> None:
    """Cells of one answer depend on each other, so the limit is loose."""
    early = _early(few)
    assert early.given > 150
    assert early.covered >= 0.88 * early.given, _told(few, "MISSES")


@pytest.mark.long
def test_runs_to_a_goal_end_right(few: list[Trial]) -> None:
    end = added(trial.end for trial in few)
    assert end.goals == len(few)
    assert end.goals_early > 0
    assert end.goals_right >= 0.95 * end.goals, _told(few, "GOAL")


@pytest.mark.long
def test_many_queries(many: list[Trial]) -> None:
    early, end = _early(many), added(trial.end for trial in many)
    assert (early.zero_wrong, early.hard_broken, early.false_error, early.false_complete) == (0, 0, 0, 0), _told(many, "")
    assert early.covered >= 0.92 * early.given, _told(many, "MISSES")
    assert end.goals_right >= 0.95 * end.goals, _told(many, "GOAL")
    groups = added(trial.first for trial in many if trial.asked.kind == "grouped" and trial.layout == "shuffled")
    assert groups.given >= 0.7 * groups.cells


def test_queries_are_the_same_for_the_same_seed() -> None:
    family = FAMILIES["sales"](np.random.default_rng(0), 0.01)
    assert draw([family], tuple(KINDS), 60, 3) == draw([family], tuple(KINDS), 60, 3)
    assert len({asked.text for asked in draw([family], tuple(KINDS), 60, 3)}) > 50


def test_layouts_have_the_same_rows(tmp_path: Path) -> None:
    family = FAMILIES["sales"](np.random.default_rng(0), 0.01)
    assert family.main.num_rows == 4_000
    found = {layout: _sums(family, layout, tmp_path) for layout in LAYOUTS}
    assert len(set(found.values())) == 1


def _sums(family: Family, layout: str, directory: Path) -> str:
    write(family, layout, directory, 1)
    return str(Oracle([family], layout, directory).answer("SELECT count(*), sum(amount), sum(shop * units) FROM sales").to_pylist())


class TestJudge:
    """The judge finds what is wrong, and nothing else."""

    @staticmethod
    def _answer(rows: dict[str, int], low: float, high: float, error: float = 0.01) -> Answer:
        def side(values: Iterator[float] | list[float]) -> pa.Table:
            return pa.table({"k": list(rows), "v": pa.array(list(values), pa.float64())})

        value = side([float(each) for each in rows.values()])
        nothing = pa.table({"k": list(rows), "v": pa.nulls(len(rows), pa.float64())})
        lows, highs = (side([each * factor for each in rows.values()]) for factor in (low, high))
        return Answer(value, lows, highs, nothing, nothing, 0.1, False, 0.95, error, "progressive")

    truth = Truth.of(pa.table({"k": ["a", "b"], "v": [100, 200]}), 1)

    def test_covered(self) -> None:
        score = judge(self._answer({"a": 101, "b": 199}, 0.9, 1.1), self.truth)
        assert (score.given, score.covered, score.missing, score.lacking, score.zero_wrong) == (2, 2, 0, 0, 0)

    def test_missed_and_without_width(self) -> None:
        answer = self._answer({"a": 101, "b": 200}, 1.0, 1.0)
        score = judge(answer, self.truth)
        assert (score.given, score.covered, score.inside, score.zero_wrong) == (2, 1, 0, 1)
        assert len(faults(answer, self.truth)) == 1

    def test_rows(self) -> None:
        score = judge(self._answer({"a": 100, "c": 7}, 0.9, 1.1), self.truth)
        assert (score.missing, score.superfluous, score.false_error) == (1, 1, 1)
        assert judge(self._answer({"a": 100}, 0.9, 1.1, float("inf")), self.truth).false_error == 0

    def test_whole(self) -> None:
        assert whole(pa.table({"k": ["b", "a"], "v": [204, 96]}), self.truth, 0.05)
        assert not whole(pa.table({"k": ["b", "a"], "v": [204, 90]}), self.truth, 0.05)
        assert not whole(pa.table({"k": ["a"], "v": [100]}), self.truth, 0.05)

    def test_goal(self) -> None:
        assert judge_goal(self._answer({"a": 100}, 0.9, 1.1), self.truth, 0.05, stopped=True).goals_right == 0
        assert judge_goal(self._answer({"a": 100}, 0.9, 1.1), self.truth, 0.05, stopped=False).goals_right == 1
