"""What could be known only afterwards: the best set of views for a whole workload, and the view that is used last.

The best set is an integer programme: x(v) says whether a view is made, y(q, v) how much of a query's occurrences it serves.

    maximise   sum of n(q) * gain(q, v) * y(q, v)  -  sum of cost(v) * x(v)
    so that    sum of bytes(v) * x(v) <= capacity,   y(q, v) <= x(v),   sum over v of y(q, v) <= 1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix

from benchmarks.autoviews.matrix import Matrix
from nearly.autoview.options import Holding, Occasion, Option
from nearly.autoview.policies.policy import ViewPolicy

SECONDS = 20.0


def best_views(matrix: Matrix, queries: Sequence[int], capacity: float, noise: float = 1.0, seed: int = 0) -> list[str]:
    """The best set of views; with `noise` their gains are known only up to this factor."""
    random = np.random.default_rng(seed)
    counts = Counter(queries)
    makeable = {each.id for query in counts for each in matrix.options[query]}
    views = [view for view, size in matrix.bytes.items() if size <= capacity and view in makeable]
    place = {view: number for number, view in enumerate(views)}
    pairs = [(query, view) for query in counts for view in matrix.pair[query] if view in place and matrix.gain(query, view) > 0]
    if not pairs:
        return []
    factors = np.exp(random.uniform(-np.log(noise), np.log(noise), len(pairs))) if noise > 1 else np.ones(len(pairs))
    gains = [counts[query] * matrix.gain(query, view) * factor for (query, view), factor in zip(pairs, factors, strict=True)]
    width = len(views) + len(pairs)
    rows = lil_matrix((1 + len(pairs) + len(counts), width))
    limits = np.zeros(rows.shape[0])
    for view, number in place.items():
        rows[0, number] = matrix.bytes[view] / capacity
    limits[0] = 1.0
    numbers = {query: number for number, query in enumerate(counts)}
    for number, (query, view) in enumerate(pairs):
        rows[1 + number, len(views) + number] = 1.0
        rows[1 + number, place[view]] = -1.0
        rows[1 + len(pairs) + numbers[query], len(views) + number] = 1.0
    limits[1 + len(pairs) :] = 1.0
    costs = np.array([matrix.making[view] for view in views] + [-gain for gain in gains])
    found = milp(
        costs, constraints=LinearConstraint(rows.tocsr(), -np.inf, limits), bounds=Bounds(0, 1),
        integrality=np.array([1] * len(views) + [0] * len(pairs)), options={"time_limit": SECONDS},
    )  # fmt: skip
    return [] if found.x is None else [view for view, number in place.items() if found.x[number] > 0.5]


class Clairvoyant(ViewPolicy):
    """Belady's rule with perfect knowledge: makes what helps the query at hand most, lets go of what is used again last."""

    name = "belady"

    def __init__(self, matrix: Matrix, queries: Sequence[int]) -> None:
        self._matrix = matrix
        self._next: list[dict[str, int]] = [{} for _ in range(len(queries) + 2)]
        upcoming: dict[str, int] = {}
        for step in range(len(queries), 0, -1):
            upcoming = {**upcoming, **dict.fromkeys(self._served(queries[step - 1]), step)}
            self._next[step - 1] = upcoming
        self._next[len(queries)] = {}

    def _served(self, query: int) -> list[str]:
        return [view for view in self._matrix.pair[query] if self._matrix.gain(query, view) > 0]

    def ranked(self, moment: Occasion) -> Sequence[Option]:
        query = int(moment.question)
        best = max((self._matrix.gain(query, each.id) for each in moment.kept), default=0.0)
        gains: Mapping[str, float] = {each.id: self._matrix.gain(query, each.id) for each in moment.options}
        worth = [each for each in moment.options if gains[each.id] > max(best, 0.0)]
        return sorted(worth, key=lambda each: -gains[each.id])[:1]

    def value(self, holding: Holding, moment: Occasion) -> float:
        return -float(self._next[moment.step].get(holding.id, len(self._next) + 1))
