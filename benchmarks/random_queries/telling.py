"""What the trials tell: a table by kind and layout, the figures to reach, and the answers that fail, with what repeats them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.random_queries.judging import Score
from benchmarks.random_queries.trying import Trial
from benchmarks.report import Record

COLUMNS = ("kind", "layout", "answers", "cells", "given", "cover", "inside", "worst", "later", "zero wrong", "hard broken",
           "recall", "superfluous", "lacking", "false error", "false complete", "goal right", "goal early",
           "early right")  # fmt: skip
PLAIN = ("grouped",)
ENOUGH = 30
"""A query with fewer intervals, over its seeds, is not the worst one."""


@dataclass(frozen=True, slots=True)
class Offender:
    """A trial that breaks a promise."""

    weight: float
    line: str


def by_kind_and_layout(trials: Sequence[Trial]) -> list[Record]:
    """A row for each kind and layout, and one for each kind over all layouts."""
    kinds = dict.fromkeys(trial.asked.kind for trial in trials)
    layouts = dict.fromkeys(trial.layout for trial in trials)
    rows = []
    for kind in kinds:
        mine = [trial for trial in trials if trial.asked.kind == kind]
        rows += [_row(kind, layout, [trial for trial in mine if trial.layout == layout]) for layout in layouts]
        rows.append(_row(kind, "all", mine))
    return rows


def _row(kind: str, layout: str, trials: Sequence[Trial]) -> Record:
    first, later, end = (added(getattr(trial, part) for trial in trials) for part in ("first", "later", "end"))
    both = added([first, later])
    return {
        "kind": kind, "layout": layout, "answers": both.answers, "cells": both.cells, "given": _share(both.given, both.cells),
        "cover": first.coverage, "inside": _share(both.inside, both.given), "worst": _worst(trials), "later": later.coverage,
        "zero wrong": both.zero_wrong, "hard broken": both.hard_broken, "recall": _share(both.rows - both.missing, both.rows),
        "superfluous": both.superfluous, "lacking": both.lacking, "false error": both.false_error,
        "false complete": both.false_complete, "goal right": _share(end.goals_right, end.goals), "goal early": end.goals_early,
        "early right": _share(end.goals_early_right, end.goals_early),
    }  # fmt: skip


def _worst(trials: Sequence[Trial]) -> float | None:
    """The lowest coverage of a query over its seeds and layouts."""
    queries: dict[int, Score] = defaultdict(Score)
    for trial in trials:
        queries[trial.asked.number] += trial.first
    return min((score.covered / score.given for score in queries.values() if score.given >= ENOUGH), default=None)


def summarize(trials: Sequence[Trial]) -> Record:
    """The figures to reach."""
    kinds = {kind: [trial for trial in trials if trial.asked.kind == kind] for kind in {trial.asked.kind for trial in trials}}
    scores = {kind: added(score for trial in mine for score in (trial.first, trial.later)) for kind, mine in kinds.items()}
    covers = {kind: score.coverage for kind, score in scores.items() if score.coverage is not None}
    total, end = added(scores.values()), added(trial.end for trial in trials)
    plain = added(trial.first for trial in trials if trial.asked.kind in PLAIN and trial.layout == "shuffled")
    return {
        "answers": total.answers,
        "lowest": min(covers.values(), default=None),
        "lowest_kind": min(covers, key=lambda kind: covers[kind] or 0, default=None),
        "highest": max(covers.values(), default=None),
        "coverage": total.coverage,
        "zero_wrong": total.zero_wrong,
        "hard_broken": total.hard_broken,
        "given_plain_groups": _share(plain.given, plain.cells),
        "lacking": total.lacking,
        "false_error": total.false_error,
        "false_complete": total.false_complete,
        "false_firm": total.false_firm,
        "unseen_given": total.unseen_given,
        "unseen_wrong": total.unseen_wrong,
        "goals": end.goals,
        "goals_right": _share(end.goals_right, end.goals),
        "goals_early": end.goals_early,
        "goals_early_right": _share(end.goals_early_right, end.goals_early),
        "goals_early_near": _share(end.goals_early_near, end.goals_early),
        "exact_wrong": end.exact_wrong,
        "failures": sum(trial.failure is not None for trial in trials),
    }


def offenders(trials: Sequence[Trial]) -> list[Offender]:
    """Trials that break a promise, the worst first, one line each."""
    found = [
        Offender(weight, f"{reason}  {trial.asked.kind} #{trial.asked.number} {trial.layout} seed {trial.seed}  {trial.asked.text}")
        for trial in trials
        for weight, reason in _complaints(trial)
    ]
    return sorted(found, key=lambda each: -each.weight)


def _complaints(trial: Trial) -> list[tuple[float, str]]:
    """What is wrong, the worse the larger the number."""
    both = added([trial.first, trial.later])
    missed = both.given - both.covered
    named = (
        (1e6, trial.failure is not None, f"FAILED {trial.failure}"),
        (1e5, trial.end.exact_wrong, "EXACT WRONG"),
        (1e4 * both.hard_broken, both.hard_broken, f"CERTAIN BROKEN {both.hard_broken} of {both.cells}"),
        (1e3 + both.zero_wrong, both.zero_wrong, f"ZERO WIDTH {both.zero_wrong} of {both.given}"),
        (900, both.false_complete, f"FALSE COMPLETE {both.missing} missing {both.superfluous} superfluous of {both.rows}"),
        (800, both.false_error, f"FALSE ERROR {both.missing} missing {both.superfluous} superfluous of {both.rows}"),
        (750, both.false_firm, f"FALSE FIRM {both.false_firm} of {both.superfluous} superfluous"),
        (700, trial.end.goals_early - trial.end.goals_early_right, "GOAL WRONG"),
        (600, both.unseen_wrong, f"UNSEEN WRONG {both.missing} missing"),
        (missed, missed > max(2, 0.1 * both.given), f"MISSES {missed} of {both.given}"),
    )
    return [(float(weight), reason) for weight, there, reason in named if there]


def added(scores: Iterable[Score]) -> Score:
    total = Score()
    for each in scores:
        total += each
    return total


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
