"""The figures of the benchmark of standing queries, from its rows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from benchmarks.report import Record, median
from benchmarks.standings.course import GREEDY, KEEP_ALL, OURS, RECOMPUTE
from benchmarks.standings.oracles import least, random_tree
from nearly.standing.actions import Allowed, Prices
from nearly.standing.planner import StateBudget, choose

LATE, PERCENT, SIZES, COMPLETENESS, BUDGETS, WITH_DELETES = "E-I1", "one percent", "E-I4", "E-I5", "E-I6", "E-I8"
TREES = 100


@dataclass(frozen=True, slots=True)
class Figures:
    """What the rows of a report come to; a row that was given up tells no ratio, and is counted."""

    rows: Sequence[Record]

    def summary(self) -> dict[str, float | int | None]:
        wrong = [*self._wrong_predictions()]
        deletes = [*self._beside(WITH_DELETES, OURS, RECOMPUTE)]
        greedy = [1 / each for each in self._beside(BUDGETS, OURS, GREEDY)]
        return {
            "mismatches": sum(not row["right"] for row in self.rows),
            "delta_over_recompute_best": min(self._ratios(LATE, OURS, RECOMPUTE, "best", "delta"), default=None),
            "delta_over_recompute_median": median(self._ratios(LATE, OURS, RECOMPUTE)),
            "one_percent_over_recompute_median": median(self._ratios(PERCENT, OURS, RECOMPUTE)),
            "work_over_recompute_median": median(self._ratios(LATE, OURS, RECOMPUTE, "work")),
            "one_percent_work_over_recompute_median": median(self._ratios(PERCENT, OURS, RECOMPUTE, "work")),
            "delta_over_keep_all_median": median(self._ratios(LATE, OURS, KEEP_ALL)),
            "work_over_keep_all_median": median(self._ratios(LATE, OURS, KEEP_ALL, "work")),
            "memory_over_keep_all_median": median(self._ratios(LATE, OURS, KEEP_ALL, "memory_mb")),
            "over_duckdb_median": median(self._ratios(LATE, OURS, "duckdb")),
            "worst_over_better": self._over_better("delta"),
            "work_worst_over_better": self._over_better("work"),
            "keep_all_given_up": sum(bool(row.get("gave_up")) for row in self.rows),
            "over_greedy_median": median(greedy),
            "over_greedy_best": max(greedy, default=None),
            "wrong_prediction_over_recompute_worst": max(wrong, default=None),
            "deletes_over_recompute_median": median(deletes),
            "deletes_over_recompute_worst": max(deletes, default=None),
            "budget_exceeded": sum(int(row.get("exceeded") or 0) for row in self.rows),
            "optimal_of_random": optimal_of_random(),
            "plan_ms_median": median([_number(row, "plan_ms") for row in self.rows if _is_planned(row)]),
        }

    def _row(self, experiment: str, query: object, strategy: str) -> Record | None:
        return next(
            (row for row in self.rows if (row["experiment"], row["query"], row["strategy"]) == (experiment, query, strategy)), None
        )

    def _of(self, experiment: str) -> list[Record]:
        return [row for row in self.rows if row["experiment"] == experiment]

    def _ratios(self, experiment: str, above: str, below: str, what: str = "delta", over: str | None = None) -> list[float]:
        """By query, a value of one strategy over that of another."""
        found = []
        for row in self._of(experiment):
            other = self._row(experiment, row["query"], below)
            if row["strategy"] == above and other is not None and _number(other, over or what):
                found.append(_number(row, what) / _number(other, over or what))
        return found

    def _beside(self, experiment: str, above: str, below: str) -> Iterator[float]:
        """The same of strategies with something else in their name, where that is the same of both."""
        for row in self._of(experiment):
            name = str(row["strategy"])
            other = self._row(experiment, row["query"], name.replace(above, below)) if name.startswith(above) else None
            if other is not None and _number(other, "delta"):
                yield _number(row, "delta") / _number(other, "delta")

    def _wrong_predictions(self) -> Iterator[float]:
        """What deltas took of which something else was predicted, over computing all of it again."""
        for experiment in (SIZES, COMPLETENESS):
            for row in self._of(experiment):
                come, _, told = str(row["strategy"]).partition(", ")
                whole = f"{RECOMPUTE}, {come}" if experiment == SIZES else RECOMPUTE
                other = self._row(experiment, row["query"], whole)
                is_wrong = told.endswith("predicted") and told.split()[0] != come.split()[0]
                if is_wrong and other is not None and _number(other, "delta"):
                    yield _number(row, "delta") / _number(other, "delta")

    def _over_better(self, what: str) -> float | None:
        """The greatest ratio to the better of computing all again and keeping all, as far as that ended."""
        return max((*self._ratios(LATE, OURS, RECOMPUTE, what), *self._ratios(LATE, OURS, KEEP_ALL, what)), default=None)


def _number(row: Record, name: str) -> float:
    found = row.get(name)
    return 0.0 if found is None else float(found)


def _is_planned(row: Record) -> bool:
    return row.get("plan_ms") is not None and str(row["strategy"]).startswith(OURS)


def optimal_of_random() -> float:
    """The share of random trees for which no choice of actions is cheaper than the programme's."""
    right = 0
    for seed in range(TREES):
        pick = random.Random(seed)
        tree = random_tree(pick, pick.randint(1, 4), count())
        memory = float(pick.randint(0, int(sum(each.bytes for each in tree.walk())) + 1))
        found = choose(tree, Prices(), StateBudget(memory)).cost
        right += abs(found - least(tree, Prices(), Allowed(), memory)) <= 1e-9 * max(found, 1e-12)
    return right / TREES
