"""Queries asked through the public interface, seed by seed, and what the judge says to their answers.

Batches have fixed sizes: then small tables have early answers at all, and the same ones in every run, on any machine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import nearly
from benchmarks.random_queries.asking import Asked
from benchmarks.random_queries.families import LAYOUTS, Family
from benchmarks.random_queries.judging import Score, Truth, faults, judge, judge_exact, judge_goal
from benchmarks.random_queries.storing import open_session
from nearly.answer import Answer
from nearly.engine.stream.task import Pace
from nearly.errors import NearlyError
from nearly.query import Query

GOAL = 0.05
SIZES = (16, 8, 8, *(16,) * 100)
"""Units of the batches: the first answer as users get it, then several more before the end."""
LOOKS = 4
"""Runs are followed for so many answers; a run to a goal that goes on then is taken to end with the exact one."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One query in one layout with one seed: what its first answer, a later one and its end are worth."""

    asked: Asked
    layout: str
    seed: int
    first: Score = field(default_factory=Score)
    later: Score = field(default_factory=Score)
    end: Score = field(default_factory=Score)
    failure: str | None = None
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """Some queries in one layout."""

    layout: str
    questions: tuple[tuple[Asked, Truth], ...]
    seeds: tuple[int, ...]


class Asker:
    """Asks in one process; a session for each layout stays open."""

    def __init__(self, families: Sequence[Family], directory: Path, *, goal: float = GOAL, detailed: bool = False) -> None:
        self._goal = goal
        self._detailed = detailed
        self._families = families
        self._directory = directory
        self._catalogs = tempfile.TemporaryDirectory(prefix="nearly-coverage-")
        self._sessions: dict[str, nearly.Session] = {}

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()
        self._catalogs.cleanup()

    def session(self, layout: str) -> nearly.Session:
        if layout not in self._sessions:
            catalog = Path(self._catalogs.name) / layout
            self._sessions[layout] = open_session(self._families, layout, self._directory, catalog)
        return self._sessions[layout]

    def trials(self, task: Task) -> Iterator[Trial]:
        """The first seed runs to the goal, the second to a later answer, in one of the layouts to the end; others to the first."""
        for asked, truth in task.questions:
            ways = [self._to_goal, self._to_end if _is_followed(asked, task.layout) else self._to_later]
            for place, seed in enumerate(task.seeds):
                way = ways[place] if place < len(ways) else self._to_first
                trial = Trial(asked, task.layout, seed)
                try:
                    yield way(trial, truth)
                except NearlyError as error:
                    yield replace(trial, failure=f"{type(error).__name__}: {error}")

    def _to_first(self, trial: Trial, truth: Truth) -> Trial:
        return self._looked(trial, truth, _taken(self.query(trial), 1))

    def _to_later(self, trial: Trial, truth: Truth) -> Trial:
        answers = _taken(self.query(trial), 2 + (trial.seed + trial.asked.number) % (LOOKS - 1))
        return self._looked(trial, truth, answers)

    def _to_end(self, trial: Trial, truth: Truth) -> Trial:
        answers = list(self.query(trial))
        return replace(self._looked(trial, truth, answers[:1]), end=judge_exact(answers[-1], truth))

    def _to_goal(self, trial: Trial, truth: Truth) -> Trial:
        """What stops early has been judged by its error, so its intervals do not count as those of a later answer."""
        answers = _taken(self.query(trial), LOOKS, self._goal)
        end = judge_goal(answers[-1], truth, self._goal, stopped=len(answers) < LOOKS)
        return replace(self._looked(trial, truth, answers), later=Score(), end=end)

    def _looked(self, trial: Trial, truth: Truth, answers: Sequence[Answer]) -> Trial:
        """The trial with the first answer judged, and the last one if it is another."""
        early = [answer for answer in answers[:: max(1, len(answers) - 1)] if not answer.exact]
        scores = [*(judge(answer, truth) for answer in early), Score(), Score()]
        told = tuple(line for answer in early for line in faults(answer, truth)) if self._detailed else ()
        return replace(trial, first=scores[0], later=scores[1], faults=told)

    def query(self, trial: Trial) -> Query:
        query = self.session(trial.layout).sql(trial.asked.text, seed=trial.seed)
        query._request = replace(query._request, pace=Pace(sizes=SIZES))
        return query


def _taken(query: Query, most: int, error: float | None = None) -> list[Answer]:
    """The first answers; the run is stopped then."""
    found = list(islice(query.answers(error=error), most))
    query.stop()
    return found


def _is_followed(asked: Asked, layout: str) -> bool:
    return asked.number % len(LAYOUTS) == LAYOUTS.index(layout)
