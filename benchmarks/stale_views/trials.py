"""Many samples of one stale view: tickets are drawn for one of many columns of random numbers, so that each sample is another.

A population is a view before and after some changes, as columns of numbers. Estimates are those of the product, over its own plans.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import nearly
from benchmarks.stale_views.data import arrow
from nearly.answer import Answer
from nearly.engine.storage.layouts import Table
from nearly.plan.binding.scope import FreshNames
from nearly.plan.functions.tickets import TICKETS
from nearly.plan.nodes import BoundQuery
from nearly.rewrite.sample.sampled_query import core_parts, sampled_query
from nearly.views.sampling.cells import Cells
from nearly.views.sampling.cleaning import StaleView, drawn_stored, tickets_of
from nearly.views.sampling.estimation import Estimation
from nearly.views.sampling.sample import CleanSample, SampledRows

KINDS = (
    "tame grown", "tame few", "tame deleted", "tame replaced", "tame inserted",
    "skewed grown", "skewed few", "skewed deleted", "skewed replaced", "skewed inserted grown",
)  # fmt: skip
"""What the values are like, and what became of them."""

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Population:
    """Rows of a view by id: as stored, and as they should be; rows that are only in one of them came or went."""

    stale: Columns
    fresh: Columns


def population(kind: str, rows: int, seed: int = 0) -> Population:
    """A view with groups and values of some kind, and changes of some kind."""
    make = np.random.default_rng(seed)
    ids = np.arange(rows)
    group = make.integers(0, 5, rows)
    value = make.lognormal(3, 1.5, rows) if "skewed" in kind else make.normal(100, 20, rows)
    stale: Columns = {"id": ids, "g": group, "x": value}
    after = {name: column.copy() for name, column in stale.items()}
    if "few" in kind:
        touched = make.random(rows) < 0.004
        after["x"][touched] *= make.uniform(0.5, 3, touched.sum())
    elif "grown" in kind:
        touched = make.random(rows) < 0.2
        after["x"][touched] += make.exponential(after["x"][touched] * 0.3)
    elif "replaced" in kind:
        share = float(kind.rsplit(maxsplit=1)[-1]) if kind.rsplit(maxsplit=1)[-1][0].isdigit() else 0.9
        touched = make.random(rows) < share
        after["x"][touched] = make.permutation(after["x"][touched]) * (1 + share / 3)
    elif "deleted" in kind:
        kept = make.random(rows) > 0.15
        after = {name: column[kept] for name, column in after.items()}
    if "inserted" in kind:
        count = rows // 8
        fresh = {"id": rows + np.arange(count), "g": make.integers(0, 5, count), "x": make.permutation(value)[:count] * 1.3}
        after = {name: np.concatenate([column, fresh[name]]) for name, column in after.items()}
    return Population(stale, after)


class Trials:
    """A stale view in a session without Spark, and samples of it."""

    def __init__(self, db: nearly.Session, path: Path, given: Population, samples: int) -> None:
        self.db, self.given, self.samples = db, given, samples
        self.engine = db._engine
        drawn = np.random.default_rng(1).integers(
            0, 2**60, (samples, int(max(given.fresh["id"].max(), given.stale["id"].max())) + 1)
        )
        self._random = drawn
        pq.write_table(self._table(given.stale), path / "v.parquet")
        db.register("v", str(path / "v.parquet"), key=["id"])
        self.new, self.old = self._changed()

    def _table(self, columns: Columns) -> pa.Table:
        extra = {f"r{place}": row[columns["id"]] for place, row in enumerate(self._random)}
        return pa.table({name: pa.array(column) for name, column in {**columns, **extra}.items()})

    def _changed(self) -> tuple[pa.Table, pa.Table]:
        """The clean and the stale rows of keys that changed."""
        sides = [
            dict(zip(each["id"].tolist(), zip(each["g"], each["x"], strict=True), strict=True))
            for each in (self.given.fresh, self.given.stale)
        ]
        found = []
        for columns, other in ((self.given.fresh, sides[1]), (self.given.stale, sides[0])):
            rows = zip(columns["id"].tolist(), columns["g"], columns["x"], strict=True)
            differs = np.array([other.get(i) != (g, x) for i, g, x in rows])
            found.append(self._table({name: column[differs] for name, column in columns.items()}))
        return found[0], found[1]

    @property
    def table(self) -> Table:
        return self.engine.catalog.table("v")

    def view(self, number: int) -> StaleView:
        """The view with tickets drawn for one of the columns of random numbers."""
        plan = self.engine.planner.bound("select * from v").plan
        return StaleView(self.table, plan, tuple(column.name for column in self.table.columns), ("id",), {}, {}, (f"r{number}",))

    def sample(self, view: StaleView, share: float) -> CleanSample:
        """One of the samples, with a share of its tickets clean."""
        new, old = (self._drawn(view, rows, share) for rows in (self.new, self.old))
        keys = pa.concat_tables([each.table.select(["id"]) for each in (new, old)]).group_by(["id"]).aggregate([])
        return CleanSample(share, ("id",), view.ticket_columns, new, old, keys)

    def _drawn(self, view: StaleView, rows: pa.Table, share: float) -> SampledRows:
        tickets = tickets_of(self.engine, rows, view)
        mine = tickets < share * TICKETS
        return SampledRows.drawn(rows.filter(pa.array(mine)), tickets[mine])

    def bound(self, text: str) -> BoundQuery:
        prepared = self.engine.planner.prepare(text)
        assert prepared.query is not None
        return prepared.query

    def tickets(self) -> NDArray[np.int64]:
        """The tickets of every id in each sample."""
        found = [
            tickets_of(self.engine, pa.table({f"r{number}": row}), self.view(number)) for number, row in enumerate(self._random)
        ]
        return np.array(found)

    def answers(self, text: str, share: float, method: str) -> Iterator[Answer]:
        """The answer of each sample."""
        query = self.bound(text)
        for number in range(self.samples):
            sampled, view = sampled_query(query.plan, "v"), self.view(number)
            sample = self.sample(view, share)

            def draw(columns: tuple[str, ...], view: StaleView = view, sample: CleanSample = sample) -> SampledRows:
                return drawn_stored(self.engine, view, sample, columns)

            cells = Cells(self.engine, sampled, core_parts(sampled.core, FreshNames("core")), sample, draw)
            yield Estimation(cells, query, "v", method, 0.95).answer({})

    def truth(self, text: str) -> pa.Table:
        """The exact answer of the fresh view."""
        connection = duckdb.connect()
        connection.register("v", self._table(self.given.fresh))
        return arrow(connection, text)


@dataclass(slots=True)
class Score:
    """How many intervals were given, how many held, how many were withheld, and how far off estimates were."""

    given: int = 0
    held: int = 0
    withheld: int = 0
    wrong_without_width: int = 0
    errors: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    """Half the lengths of intervals, in relation to the truth, as the errors are."""

    def take(self, truth: float, value: float | None, low: float | None, high: float | None) -> None:
        if value is not None and truth:
            self.errors.append(abs(float(value) - truth) / abs(truth))
        if low is None or high is None:
            self.withheld += 1
            return
        self.given += 1
        self.widths += [(float(high) - float(low)) / 2 / abs(truth)] if truth else []
        self.held += float(low) <= truth <= float(high)
        self.wrong_without_width += low == high and float(low) != truth

    @property
    def coverage(self) -> float:
        return self.held / max(self.given, 1)

    @property
    def looseness(self) -> float | None:
        """Half the usual length of an interval over the root mean square error: 1.96 where errors are normal and known to be."""
        error = float(np.sqrt(np.mean(np.square(self.errors)))) if self.errors else 0.0
        return float(np.median(self.widths)) / error if self.widths and error else None

    @property
    def error(self) -> float:
        return float(np.median(self.errors)) if self.errors else 0.0


def score(trials: Trials, text: str, share: float, method: str, keys: int = 0) -> Score:
    """Judge the last column of a query's answers; the first `keys` columns tell its rows."""
    truth = {tuple(list(row.values())[:keys]): list(row.values())[-1] for row in trials.truth(text).to_pylist()}
    found = Score()
    for answer in trials.answers(text, share, method):
        sides = [table.to_pylist() for table in (answer.table, answer.low, answer.high)]
        for value, low, high in zip(*sides, strict=True):
            known = truth.get(tuple(list(value.values())[:keys]))
            if known is not None:
                found.take(float(known), *(list(each.values())[-1] for each in (value, low, high)))
    return found
