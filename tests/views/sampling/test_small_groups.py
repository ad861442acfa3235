"""Sums of small groups: few of their rows are drawn, and few of those changed, so that intervals are long or withheld."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from nearly.estimate.corrections import Estimates
from nearly.estimate.evidence import Evidence
from nearly.estimate.intervals import Interval
from nearly.plan.functions.tickets import TICKETS
from nearly.views.sampling.linear import AUTO, DrawnRows, Estimated, bounded, linear_column
from nearly.views.sampling.strata import DIRECT, STORED, Strata

SHARE, GROUPS = 0.1, 400

Floats = NDArray[np.float64]
Rows = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Changed:
    """Groups x rows: values before and after, and in which of both versions of the view a row is."""

    before: Floats
    after: Floats
    stale: Rows
    fresh: Rows

    @property
    def truth(self) -> Floats:
        return np.asarray((self.after * self.fresh).sum(axis=1))


def changed(kind: str, rows: int, rate: float, make: np.random.Generator, tame: bool = False) -> Changed:
    """Groups of so many rows, of whose values or rows a share is touched."""
    room = rows + int(2 * rate * rows) + 5
    before = make.normal(100, 20, (GROUPS, room)) if tame else make.lognormal(3, 1.0, (GROUPS, room))
    stale = np.zeros(before.shape, dtype=bool)
    stale[:, :rows] = True
    touched = make.random(before.shape) < rate
    after, fresh = before, stale
    if kind == "inserts":
        fresh = np.arange(room) < rows + make.binomial(rows, rate, GROUPS)[:, None]
    elif kind == "deletes":
        fresh = stale & ~touched
    elif kind == "updates":
        after = np.where(touched, before * make.uniform(0.5, 3, before.shape), before)
    elif kind == "skewed updates":
        after = np.where(touched, before * make.lognormal(0, 1.2, before.shape), before)
    elif kind == "in few groups":
        touched = (make.random(before.shape) < min(5 * rate, 0.8)) & (make.random(GROUPS) < 0.1)[:, None]
        after = np.where(touched, before * make.uniform(0.5, 3, before.shape), before)
    return Changed(before, after, stale, fresh)


@dataclass
class Sampled:
    """What `linear_column` asks of cells, of the sum or average in each group; every row has a ticket, or so many in a row one."""

    given: Changed
    tickets: NDArray[np.int64]
    is_sum: bool = True
    replicated: bool = True
    together: float = 1.0

    def __post_init__(self) -> None:
        given, self.strata, self.count = self.given, Strata(SHARE), len(self.given.before)
        differs = (given.stale != given.fresh) | (given.before != given.after)
        old, new = given.stale & differs, given.fresh & differs
        self._rows, self._sums = (np.zeros((self.strata.units, self.count)) for _ in range(2))
        self._rows[STORED], self._sums[STORED] = given.stale.sum(axis=1), (given.before * given.stale).sum(axis=1)
        strata = self.strata
        for part, there, value in (
            (strata.drawn, given.stale, given.before), (strata.old, old, given.before), (strata.new, new, given.after)
        ):  # fmt: skip
            self._add(part, there & (self.tickets < strata.bound), value)

    def _add(self, part: slice, there: Rows, value: Floats) -> None:
        group, row = np.nonzero(there)
        place = (self.strata.units_of(part, self.tickets[group, row]), group)
        np.add.at(self._rows, place, 1.0)
        np.add.at(self._sums, place, value[group, row])

    @property
    def truth(self) -> Floats:
        total = self.given.truth
        return total if self.is_sum else total / self.given.fresh.sum(axis=1)

    @property
    def drawn(self) -> DrawnRows:
        old, new = (self._rows[part].sum(axis=0) for part in (self.strata.old, self.strata.new))
        counted = Estimates(self.strata.weights(DIRECT) @ self._rows, self.strata.copies(DIRECT) @ self._rows)
        return DrawnRows(counted, np.maximum(old, new).astype(np.int64))

    def _weighed(self, weights: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return weights @ self._sums if self.is_sum else (weights @ self._sums) / (weights @ self._rows)

    def values(self, _name: str, kind: int) -> Floats:
        return self._weighed(self.strata.weights(kind))

    def estimates(self, name: str, kind: int) -> Estimates:
        return Estimates(self.values(name, kind), self._weighed(self.strata.copies(kind)))

    def changed_groups(self) -> NDArray[np.int64]:
        return np.asarray(((self._rows[self.strata.old] > 0) | (self._rows[self.strata.new] > 0)).sum(axis=0))

    def is_spread(self, _name: str) -> bool:
        return False

    def is_count(self, _name: str) -> bool:
        return False


def intervals(sampled: Sampled) -> tuple[Estimated, Interval]:
    behind = Evidence(SHARE, sampled.strata.groups, np.ones(sampled.strata.groups), 0.95)
    found = linear_column(sampled, "", behind, AUTO)
    return found, bounded(found.chosen, found.direct, [found], None if sampled.is_sum else sampled.drawn, behind)


@pytest.mark.parametrize("together", [1, 5])
@pytest.mark.parametrize("rows", [35, 150, 1_000])
@pytest.mark.parametrize("kind", ["inserts", "deletes", "updates", "skewed updates", "in few groups"])
def test_sums_hold_or_are_withheld(kind: str, rows: int, together: int) -> None:
    make = np.random.default_rng(rows + together)
    given = held = 0
    for rate in (0.01, 0.1):
        population = changed(kind, rows, rate, make)
        room = population.before.shape[1]
        tickets = make.integers(0, TICKETS, (GROUPS, -(-room // together))).repeat(together, axis=1)[:, :room]
        found, ends = intervals(Sampled(population, tickets))
        inside = (ends.low <= population.truth + 1e-6) & (population.truth - 1e-6 <= ends.high)
        given, held = given + int((~ends.withheld).sum()), held + int(inside[~ends.withheld].sum())
        assert not (ends.low == ends.high)[~ends.withheld].any()
        assert ((ends.low <= found.chosen.theta) & (found.chosen.theta <= ends.high))[~ends.withheld].all()
    assert held >= 0.95 * given - 3 * np.sqrt(0.95 * 0.05 * given)
    assert given >= 0.9 * 2 * GROUPS or rows < 1_000


def test_groups_without_a_change_in_the_sample_are_not_exact() -> None:
    """Of 150 rows fifteen were drawn, none of which changed: how many of the others did is open."""
    make = np.random.default_rng(7)
    population = changed("updates", 150, 0.01, make)
    sampled = Sampled(population, make.integers(0, TICKETS, population.before.shape))
    found, ends = intervals(sampled)
    none = sampled.changed_groups() == 0
    assert none.mean() > 0.5
    assert (found.chosen.theta[none] == sampled.values("", 0)[none]).all()
    assert ((ends.high - ends.low)[none & ~ends.withheld] > 0.1 * population.truth[none & ~ends.withheld]).all()


@pytest.mark.parametrize("rows", [150, 1_000])
@pytest.mark.parametrize("kind", ["inserts", "deletes", "updates", "skewed updates", "in few groups"])
def test_averages_of_tame_values_hold_whatever_few_changes_do(kind: str, rows: int) -> None:
    """How tame the stale values are says nothing of changes that were not drawn."""
    make = np.random.default_rng(rows)
    given = held = 0
    for rate in (0.01, 0.05, 0.1):
        population = changed(kind, rows, rate, make, tame=True)
        sampled = Sampled(population, make.integers(0, TICKETS, population.before.shape), is_sum=False)
        _, ends = intervals(sampled)
        inside = (ends.low <= sampled.truth) & (sampled.truth <= ends.high)
        given, held = given + int((~ends.withheld).sum()), held + int(inside[~ends.withheld].sum())
    assert given >= 0.9 * 3 * GROUPS
    assert held >= 0.95 * given - 3 * np.sqrt(0.95 * 0.05 * given)
