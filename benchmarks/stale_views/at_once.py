"""Thousands of samples of one stale view at once: the product's estimators over sums that are computed here.

A query on a sample takes the product tens of milliseconds, and a coverage of 95 % is told apart from one of 93 % by thousands of
samples. So the sums that estimates are made of are computed for all samples together, one cell for each of them, and handed to the
same functions that the product hands them to. `agreement` compares some samples with the product's own answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchmarks.stale_views.trials import Columns, Population, Score
from nearly.estimate.corrected_quantiles import QuantileWeights, UnitValues, corrected_quantile
from nearly.estimate.corrections import Counts, Estimates
from nearly.estimate.evidence import Evidence
from nearly.estimate.intervals import Interval, joined
from nearly.plan.functions.tickets import TICKETS
from nearly.views.sampling.linear import DrawnRows, bounded, linear_column
from nearly.views.sampling.strata import CORRECTED, DIRECT, STORED, Strata

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Test = Callable[[Columns], NDArray[np.bool_]]

GROUPS = 5
"""The groups of a population."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An aggregate of x over the rows that pass a test, in all or by group; `text` asks the product for the same."""

    function: str
    text: str
    test: Test = lambda columns: np.ones(len(columns["x"]), dtype=bool)
    grouped: bool = False


QUERIES = {
    "sum": Asked("sum", "select sum(x) as s from v"),
    "count": Asked("count", "select count(*) as n from v where x > 120", lambda columns: np.asarray(columns["x"] > 120)),
    "avg": Asked("avg", "select avg(x) as a from v where g = 2", lambda columns: np.asarray(columns["g"] == 2)),
    "groups": Asked("sum", "select g, sum(x) as s from v group by g", grouped=True),
    "averages": Asked("avg", "select g, avg(x) as a from v group by g", grouped=True),
    "stddev": Asked("stddev", "select stddev(x) as d from v"),
    "median": Asked("median", "select median(x) as m from v"),
}


@dataclass(frozen=True, slots=True)
class Found:
    """The truth of a cell, and its estimate and interval in every sample."""

    truth: float
    theta: Floats
    ends: Interval

    def sides(self, sample: int) -> tuple[float, float, float]:
        """The value and its bounds in one sample."""
        return float(self.theta[sample]), float(self.ends.low[sample]), float(self.ends.high[sample])

    def judged(self, score: Score) -> None:
        for value, low, high in zip(self.theta, self.ends.low, self.ends.high, strict=True):
            score.take(self.truth, *(None if np.isnan(each) else float(each) for each in (value, low, high)))


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The rows of one sample: group, value and unit of each."""

    columns: Columns
    unit: Integers


@dataclass
class AtOnce:
    """Samples of a share of a population, each by tickets of its own (samples x ids)."""

    given: Population
    share: float
    tickets: Integers

    @classmethod
    def random(cls, given: Population, share: float, samples: int, seed: int = 1) -> AtOnce:
        most = int(max(given.fresh["id"].max(), given.stale["id"].max())) + 1
        return cls(given, share, np.random.default_rng(seed).integers(0, TICKETS, (samples, most)))

    @property
    def strata(self) -> Strata:
        return Strata(self.share)

    @cached_property
    def _samples(self) -> list[_Drawn]:
        stale, fresh = self.given.stale, self.given.fresh
        sides = [dict(zip(each["id"], zip(each["g"], each["x"], strict=True), strict=True)) for each in (stale, fresh)]
        old, new = (
            np.array([other.get(row) != mine[row] for row in columns["id"]])
            for columns, mine, other in ((stale, sides[0], sides[1]), (fresh, sides[1], sides[0]))
        )
        strata = self.strata
        pieces = [(stale, strata.drawn), (_only(stale, old), strata.old), (_only(fresh, new), strata.new)]
        return [self._drawn(tickets, pieces) for tickets in self.tickets]

    def _drawn(self, tickets: Integers, pieces: list[tuple[Columns, slice]]) -> _Drawn:
        found, units = list[Columns](), list[Integers]()
        for columns, part in pieces:
            mine = tickets[columns["id"]]
            inside = mine < self.strata.bound
            found.append(_only(columns, inside))
            units.append(self.strata.units_of(part, mine[inside]).astype(np.int64))
        whole = {name: np.concatenate([each[name] for each in found]) for name in ("g", "x")}
        return _Drawn(whole, np.concatenate(units))

    def ask(self, query: Asked, method: str = "auto", confidence: float = 0.95) -> list[Found]:
        """The estimates of each cell of a query: one, or one for each group."""
        behind = Evidence(self.share, self.strata.groups, np.ones(self.strata.groups), confidence)
        return [self._cell(query, group, method, behind) for group in (range(GROUPS) if query.grouped else [None])]

    def _cell(self, query: Asked, group: int | None, method: str, behind: Evidence) -> Found:
        def chosen(columns: Columns) -> Columns:
            mine = query.test(columns)
            return _only(columns, mine if group is None else mine & (columns["g"] == group))

        fresh, stale = chosen(self.given.fresh)["x"], chosen(self.given.stale)["x"]
        truth = _TRUTH[query.function](fresh)
        rows = [
            (each, query.test(each.columns) & (True if group is None else each.columns["g"] == group)) for each in self._samples
        ]
        values = [(each.columns["x"][mine], each.unit[mine]) for each, mine in rows]
        if query.function == "median":
            return Found(truth, *self._medians(stale, values, method, behind))
        cells = _Cells(query.function, self.strata, stale, values)
        found = linear_column(cells, "", behind, method)
        ends = found.own or bounded(found.chosen, found.direct, [found], None if cells.is_total else cells.drawn_rows, behind)
        return Found(truth, found.chosen.theta, ends)

    def _medians(
        self, stale: Floats, values: list[tuple[Floats, Integers]], method: str, behind: Evidence
    ) -> tuple[Floats, Interval]:
        strata = self.strata
        weights = QuantileWeights(
            strata.weights(DIRECT), strata.copies(DIRECT), strata.weights(CORRECTED), strata.copies(CORRECTED)
        )
        theta, ends = list[float](), list[Interval]()
        for value, unit in values:
            units = np.concatenate([np.full(len(stale), STORED), unit])
            middle, around = corrected_quantile(
                UnitValues.of(np.concatenate([stale, value]), units), 0.5, weights, behind, method
            )  # fmt: skip
            theta.append(middle)
            ends.append(around)
        return np.array(theta), joined(ends)


@dataclass
class _Cells:
    """What `linear_column` asks of cells: here each sample is one. Sums are of what is left of x after its stale average."""

    function: str
    strata: Strata
    stale: Floats
    drawn: list[tuple[Floats, Integers]]
    replicated: bool = True
    together: float = 1.0

    @property
    def count(self) -> int:
        return len(self.drawn)

    @property
    def is_total(self) -> bool:
        return self.function in ("sum", "count")

    def is_spread(self, _name: str) -> bool:
        return self.function == "stddev"

    def is_count(self, _name: str) -> bool:
        return self.function == "count"

    @cached_property
    def _middle(self) -> float:
        return float(self.stale.mean()) if len(self.stale) else 0.0

    @cached_property
    def _sums(self) -> Floats:
        """Numbers, sums and sums of squares: unit x 3 x sample."""
        found = np.zeros((self.strata.units, 3, self.count))
        for place, (value, unit) in enumerate([(self.stale, np.full(len(self.stale), STORED)), *self.drawn]):
            left = value - self._middle
            parts = np.stack([np.bincount(unit, left**power, self.strata.units) for power in range(3)], axis=1)
            if place == 0:
                found += parts[:, :, None]
            else:
                found[:, :, place - 1] += parts
        return found

    @property
    def drawn_rows(self) -> DrawnRows:
        old, new = (self._sums[part, 0].sum(axis=0) for part in (self.strata.old, self.strata.new))
        counted = Estimates(self.strata.weights(DIRECT) @ self._sums[:, 0], self.strata.copies(DIRECT) @ self._sums[:, 0])
        return DrawnRows(counted, np.asarray(np.maximum(old, new), dtype=np.int64))

    def changed_groups(self) -> Counts:
        there = (self._sums[self.strata.old, 0] > 0) | (self._sums[self.strata.new, 0] > 0)
        return np.asarray(there.sum(axis=0))

    def values_of(self, weights: Floats) -> Floats:
        """The aggregate under sets of weights: sets x samples."""
        count, total, squares = np.einsum("su,uqc->qsc", weights, self._sums)
        count = np.where(np.abs(count) < 1e-9, 0.0, count)
        if self.function == "count":
            return np.asarray(count)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.function == "sum":
                return np.where(count != 0, total + self._middle * count, np.nan)
            if self.function == "avg":
                return np.where(count != 0, total / count + self._middle, np.nan)
            variance = (squares - total**2 / count) / (count - 1)
        return np.sqrt(np.where((count > 1) & (variance >= 0), variance, np.nan))

    def estimates(self, _name: str, kind: int) -> Estimates:
        copies = self.values_of(self.strata.copies(kind))
        return Estimates(self.values("", kind), np.nan_to_num(copies) if self.is_total else copies)

    def values(self, _name: str, kind: int) -> Floats:
        return np.asarray(self.values_of(self.strata.weights(kind)[None])[0])


_TRUTH: dict[str, Callable[[Floats], float]] = {
    "sum": lambda x: float(x.sum()),
    "count": lambda x: float(len(x)),
    "avg": lambda x: float(x.mean()),
    "stddev": lambda x: float(x.std(ddof=1)),
    "median": lambda x: float(np.median(x)),
}


def _only(columns: Columns, rows: NDArray[np.bool_]) -> Columns:
    return {name: column[rows] for name, column in columns.items()}


def scored(samples: AtOnce, query: Asked, method: str = "auto") -> Score:
    """How the intervals of a query did in all samples."""
    found = Score()
    for each in samples.ask(query, method):
        each.judged(found)
    return found
