"""Random queries of many kinds over a family of tables, each as text for the product and as text for DuckDB.

Only functions that mean the same to Spark and to DuckDB are used, or such as can be written for each. The columns that tell which
row of the exact answer a row is come first in every query.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow.compute as pc

from benchmarks.random_queries.families import Family, Joined

T = TypeVar("T")
Made = tuple[str, int]
"""A text, and by how many of its first columns rows are told apart."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query: its kind, the text for the product and for the oracle, and how many key columns come first."""

    number: int
    kind: str
    family: str
    text: str
    oracle: str
    keys: int


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the product and DuckDB spell differently."""

    quantile: str
    median: str
    whole: str


PRODUCT = Dialect("percentile({}, {})", "median({})", "cast({} AS bigint)")
# Quantiles of decimals are doubles in Spark and decimals, rounded, in DuckDB.
DUCKDB = Dialect("quantile_cont({}::DOUBLE, {})", "median({}::DOUBLE)", "cast(trunc({}) AS bigint)")


@dataclass(slots=True)
class Writer:
    """Writes the parts of a query; the same generator gives the same query in either dialect."""

    family: Family
    rng: np.random.Generator
    dialect: Dialect
    _quantiles: dict[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> str:
        return self.family.name

    def pick(self, values: tuple[T, ...]) -> T:
        return values[int(self.rng.integers(len(values)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def measure(self) -> str:
        return self.pick(self.family.measures)

    def key(self) -> str:
        """A key to group by, mostly one of few values."""
        return self.pick(self.family.small if self.chance(0.65) else self.family.wide)

    def call(self) -> str:
        """A count, sum or average."""
        form = self.pick(("count(*)", "count({})", "sum({})", "avg({})", "sum({})", "avg({})", "sum({} * 2 + 1)"))
        return form.format(self.measure())

    def calls(self, most: int = 3) -> str:
        return ", ".join(f"{self.call()} AS v{place}" for place in range(int(self.rng.integers(1, most + 1))))

    def where(self, selective: bool | None = None) -> str:
        """A condition that few rows meet, or many; by a measure, by the time or by a key. None leaves that to chance."""
        selective = self.chance(0.5) if selective is None else selective
        share = 10 ** self.rng.uniform(-3, -1) if selective else self.rng.uniform(0.2, 0.95)
        match self.pick(("measure", "measure", "time", "key", "id", "both")):
            case "key":
                return self._one_of(self.pick((*self.family.small, *self.family.wide)))
            case "id" if selective:
                return self._one_of(self.family.ids[0])
            case "time" | "id":
                return self._between(self.family.time, share)
            case "both":
                return f"{self._above(share**0.5)} AND {self._between(self.family.time, share**0.5)}"
            case _:
                return self._above(share)

    def _above(self, share: float) -> str:
        name = self.measure()
        if self.chance(0.5):
            return f"{name} > {self._quantile(name, 1 - share)}"
        return f"{name} <= {self._quantile(name, share)}"

    def _between(self, name: str, share: float) -> str:
        low = self.rng.uniform(0, 1 - share)
        return f"{name} BETWEEN {self._quantile(name, low)} AND {self._quantile(name, low + share)}"

    def _one_of(self, name: str) -> str:
        """Some values of a key, as frequent as rows have them or each as likely as another."""
        column = self.family.main[name].drop_null()
        values = pc.unique(column) if self.chance(0.5) else column
        some = {values[int(place)].as_py() for place in self.rng.integers(0, len(values), self.pick((1, 1, 2, 4)))}
        return f"{name} IN ({', '.join(sorted(map(_literal, some)))})"

    def _quantile(self, name: str, share: float) -> str:
        if name not in self._quantiles:
            values = self.family.main[name].drop_null()
            self._quantiles[name] = values.take(pc.sort_indices(values))
        ordered = self._quantiles[name]
        return _literal(ordered[min(int(share * len(ordered)), len(ordered) - 1)].as_py())

    def maybe_where(self, share: float = 0.3) -> str:
        return f" WHERE {self.where(selective=False)}" if self.chance(share) else ""


def _literal(value: Any) -> str:
    match value:
        case str():
            return "'" + value.replace("'", "''") + "'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case float():
            return f"{value!r}"
        case _:
            return str(value)


def plain(w: Writer) -> Made:
    return f"SELECT {w.calls()} FROM {w.table}{w.maybe_where()}", 0


def grouped(w: Writer) -> Made:
    key = w.pick(w.family.small)
    other = w.pick(w.family.small)
    keys = f"{key}, {other}" if other != key and w.chance(0.3) else key
    return f"SELECT {keys}, {w.calls()} FROM {w.table}{w.maybe_where()} GROUP BY {keys}", keys.count(",") + 1


def grouped_wide(w: Writer) -> Made:
    key = w.pick((*w.family.wide, w.family.cluster, w.family.time))
    return f"SELECT {key}, {w.calls()} FROM {w.table}{w.maybe_where()} GROUP BY {key}", 1


def selective(w: Writer) -> Made:
    return f"SELECT {w.calls()} FROM {w.table} WHERE {w.where(selective=True)}", 0


def selective_grouped(w: Writer) -> Made:
    key = w.key()
    return f"SELECT {key}, {w.calls()} FROM {w.table} WHERE {w.where(selective=True)} GROUP BY {key}", 1


def filtered(w: Writer) -> Made:
    calls = ", ".join(f"{w.call()} FILTER (WHERE {w.where()}) AS v{place}" for place in range(int(w.rng.integers(1, 3))))
    if w.chance(0.5):
        return f"SELECT {calls} FROM {w.table}{w.maybe_where()}", 0
    key = w.key()
    return f"SELECT {key}, {calls} FROM {w.table}{w.maybe_where()} GROUP BY {key}", 1


def ratio(w: Writer) -> Made:
    above = w.pick(
        (f"sum({w.measure()})", f"count(*) FILTER (WHERE {w.where()})", f"sum({w.measure()}) FILTER (WHERE {w.where()})")
    )
    below = w.pick(("count(*)", f"sum({w.measure()})", f"count({w.measure()})"))
    value = f"{above} / nullif({below}, 0) AS v0"
    if w.chance(0.5):
        return f"SELECT {value} FROM {w.table}{w.maybe_where()}", 0
    key = w.key()
    return f"SELECT {key}, {value} FROM {w.table}{w.maybe_where()} GROUP BY {key}", 1


def extremes(w: Writer) -> Made:
    calls = f"{w.pick(('min', 'max'))}({w.measure()}) AS v0, max({w.measure()}) AS v1"
    condition = f" WHERE {w.where()}" if w.chance(0.4) else ""
    if w.chance(0.5):
        return f"SELECT {calls} FROM {w.table}{condition}", 0
    key = w.key()
    return f"SELECT {key}, {calls} FROM {w.table}{condition} GROUP BY {key}", 1


def spread(w: Writer) -> Made:
    calls = f"{w.pick(('stddev', 'variance'))}({w.measure()}) AS v0"
    if w.chance(0.5):
        return f"SELECT {calls} FROM {w.table}{w.maybe_where()}", 0
    key = w.key()
    return f"SELECT {key}, {calls} FROM {w.table}{w.maybe_where()} GROUP BY {key}", 1


def _quantile(w: Writer) -> str:
    name = w.measure()
    if w.chance(0.4):
        return w.dialect.median.format(name) + " AS v0"
    return w.dialect.quantile.format(name, w.pick(("0.05", "0.25", "0.5", "0.75", "0.9", "0.95", "0.99"))) + " AS v0"


def quantile(w: Writer) -> Made:
    condition = f" WHERE {w.where()}" if w.chance(0.4) else ""
    return f"SELECT {_quantile(w)} FROM {w.table}{condition}", 0


def quantile_grouped(w: Writer) -> Made:
    key = w.key() if w.chance(0.8) else w.family.cluster
    condition = f" WHERE {w.where()}" if w.chance(0.3) else ""
    return f"SELECT {key}, {_quantile(w)} FROM {w.table}{condition} GROUP BY {key}", 1


def _counted(w: Writer) -> str:
    return w.pick((*w.family.ids, *w.family.ids, *w.family.small, *w.family.wide))


def distinct(w: Writer) -> Made:
    condition = f" WHERE {w.where()}" if w.chance(0.4) else ""
    return f"SELECT count(DISTINCT {_counted(w)}) AS v0 FROM {w.table}{condition}", 0


def distinct_grouped(w: Writer) -> Made:
    key = w.key()
    condition = f" WHERE {w.where()}" if w.chance(0.3) else ""
    return f"SELECT {key}, count(DISTINCT {_counted(w)}) AS v0 FROM {w.table}{condition} GROUP BY {key}", 1


def having(w: Writer) -> Made:
    """Groups above a limit that a few of them are near to."""
    key, call = w.key(), w.pick((f"sum({w.measure()})", f"avg({w.measure()})", "count(*)"))
    groups = w.family.main.num_rows / len(pc.unique(w.family.main[key]))
    size = groups if call == "count(*)" else _mean(w, call) * (groups if call.startswith("sum") else 1)
    limit = _literal(float(f"{size * w.rng.uniform(0.6, 1.4):.3g}"))
    sign = w.pick((">", "<", ">="))
    return f"SELECT {key}, {call} AS v0 FROM {w.table}{w.maybe_where()} GROUP BY {key} HAVING {call} {sign} {limit}", 1


def _mean(w: Writer, call: str) -> float:
    return float(pc.mean(w.family.main[call[4:-1]]).as_py())


def top(w: Writer) -> Made:
    """The first rows by an aggregate, or by the key; equal ones by the key."""
    key, direction = w.key() if w.chance(0.7) else w.family.ids[0], w.pick(("DESC", "DESC", "ASC"))
    order = f"{key} {direction} NULLS LAST" if w.chance(0.25) else f"v0 {direction} NULLS LAST, {key} NULLS LAST"
    limit = w.pick((1, 3, 5, 10, 20))
    return f"SELECT {key}, {w.calls(2)} FROM {w.table}{w.maybe_where()} GROUP BY {key} ORDER BY {order} LIMIT {limit}", 1


def _join(w: Writer, other: Joined) -> Made:
    label = w.pick(other.labels)
    extra = w.pick((f"sum({other.measure})", f"avg({other.measure} * {w.measure()})", "count(*)"))
    source = f"{w.table} JOIN {other.table} ON {w.table}.{other.on} = {other.table}.{other.key}"
    if w.chance(0.35):
        return f"SELECT {w.calls(1)}, {extra} AS v9 FROM {source}{w.maybe_where()}".replace(
            f" {other.key} ", f" {w.table}.{other.on} "
        ), 0
    return f"SELECT {label}, {w.calls(1)}, {extra} AS v9 FROM {source} GROUP BY {label}", 1


def join_small(w: Writer) -> Made:
    return _join(w, w.family.dimension)


def join_large(w: Writer) -> Made:
    return _join(w, w.family.large)


def join_peer(w: Writer) -> Made:
    """Two large tables whose rows meet anywhere."""
    return _join(w, w.family.peer)


def decided(w: Writer) -> Made:
    """Rows that are compared with nested values: by equality, in groups that an aggregate picks, with several, by OR."""
    key, name, t = w.pick((*w.family.wide, *w.family.small)), w.measure(), w.table
    groups = f"SELECT {key} FROM {t} GROUP BY {key} HAVING avg({name}) > {_mean(w, f'avg({name})') * w.rng.uniform(0.8, 1.2):.6g}"
    above = f"{name} > (SELECT {w.rng.uniform(0.5, 2):.3f} * avg({name}) FROM {t})"
    other = w.measure()
    below = f"{other} < (SELECT {w.rng.uniform(0.5, 2):.3f} * avg({other}) FROM {t})"
    test = w.pick((
        f"{name} = (SELECT {w.pick(('min', 'max'))}({name}) FROM {t})", f"{key} IN ({groups})", f"{key} IN ({groups}) AND {above}",
        f"{above} OR {below}", f"{above} AND {below}", f"{above} OR {key} IN ({groups})",
    ))  # fmt: skip
    if w.chance(0.6):
        return f"SELECT {w.calls(2)} FROM {t} WHERE {test}", 0
    by = w.pick(w.family.small)
    return f"SELECT {by}, {w.calls(2)} FROM {t} WHERE {test} GROUP BY {by}", 1


def picked(w: Writer) -> Made:
    """Rows of a smaller table, picked or joined by aggregates of the large one."""
    other, name, t = w.pick((w.family.dimension, w.family.large)), w.measure(), w.table
    mean = _mean(w, f"avg({name})") * w.rng.uniform(0.8, 1.2)
    by = f"SELECT {other.on} AS k, {w.pick(('sum', 'avg'))}({name}) AS s FROM {t}{w.maybe_where()} GROUP BY {other.on}"
    source, test = w.pick((
        (other.table, f"{other.key} IN (SELECT {other.on} FROM {t} GROUP BY {other.on} HAVING avg({name}) > {mean:.6g})"),
        (other.table, f"{mean:.6g} > (SELECT avg({name}) FROM {t} WHERE {t}.{other.on} = {other.table}.{other.key})"),
        (other.table, f"{other.measure} > (SELECT avg({name}) * {w.rng.uniform(0.1, 3):.3f} FROM {t})"),
        (f"{other.table} JOIN ({by}) q ON {other.key} = q.k", "s > 0"),
        (f"{other.table} LEFT JOIN ({by}) q ON {other.key} = q.k", "true"),
    ))  # fmt: skip
    calls = f"count(*) AS v0, {w.pick(('sum', 'avg'))}({'s' if ' q ' in source and w.chance(0.7) else other.measure}) AS v1"
    if w.chance(0.5):
        return f"SELECT {calls} FROM {source} WHERE {test}", 0
    label = w.pick(other.labels)
    return f"SELECT {label}, {calls} FROM {source} WHERE {test} GROUP BY {label}", 1


def nested(w: Writer) -> Made:
    key, name, t = w.pick((*w.family.wide, w.family.ids[0], w.family.cluster)), w.measure(), w.table
    total = w.pick((f"sum({name})", "count(*)", f"avg({name})"))
    match w.pick(("average", "bent", "scalar", "in", "group")):
        case "bent":
            inner = w.pick((f"avg({name})", f"sum({name})", f"max({name})", f"stddev({name})"))
            middle = f"{_mean(w, f'avg({name})') * w.rng.uniform(0.8, 1.2):.6g}"
            outer = w.pick(
                ("avg(abs(s - {0}))", "count(*) FILTER (WHERE s > {0})", "sum(CASE WHEN s > {0} THEN 1 ELSE 0 END)", "avg(s)")
            )
            values = f"SELECT {key}, {inner} AS s FROM {t} GROUP BY {key}"
            return f"SELECT {outer.format(middle)} AS v0, {w.dialect.quantile.format('s', '0.9')} AS v1 FROM ({values}) q", 0
        case "average":
            return f"SELECT avg(s) AS v0, count(*) AS v1 FROM (SELECT {key}, {total} AS s FROM {t} GROUP BY {key}) q", 0
        case "scalar":
            return f"SELECT {w.calls(2)} FROM {t} WHERE {name} > (SELECT avg({name}) FROM {t}{w.maybe_where()})", 0
        case "in":
            mean = w.family.main.num_rows / len(pc.unique(w.family.main[key]))
            inner = f"SELECT {key} FROM {t} GROUP BY {key} HAVING count(*) > {int(mean * w.rng.uniform(0.5, 2))}"
            return f"SELECT {w.calls(2)} FROM {t} WHERE {key} IN ({inner})", 0
        case _:
            outer = w.pick(w.family.small)
            inner = f"SELECT {outer}, {key}, {total} AS s FROM {t} GROUP BY {outer}, {key}"
            return f"SELECT {outer}, avg(s) AS v0, max(s) AS v1 FROM ({inner}) q GROUP BY {outer}", 1


def expression(w: Writer) -> Made:
    name = w.measure()
    values = (
        f"coalesce(sum({name}) FILTER (WHERE {w.where(selective=True)}), -1)",
        f"coalesce(avg({name}), 0) + 1",
        f"CASE WHEN count(*) > 100 THEN avg({name}) ELSE -1 END",
        f"CASE WHEN sum({name}) > 0 THEN count(*) ELSE 0 END",
        w.dialect.whole.format(f"avg({name}) * 10"),
        f"cast(sum({name}) AS double)",
        "cast(count(*) AS double) / 2",
        f"round(avg({name}), 1)",
        f"abs(sum({name}) - count(*))",
        f"greatest(avg({name}), 5)",
        f"-sum({name})",
    )
    calls = ", ".join(f"{w.pick(values)} AS v{place}" for place in range(2))
    if w.chance(0.4):
        return f"SELECT {calls} FROM {w.table}{w.maybe_where()}", 0
    key = w.key()
    return f"SELECT {key}, {calls} FROM {w.table}{w.maybe_where()} GROUP BY {key}", 1


def select_distinct(w: Writer) -> Made:
    key, other = w.key(), w.key()
    keys = key if key == other or w.chance(0.5) else f"{key}, {other}"
    return f"SELECT DISTINCT {keys} FROM {w.table} WHERE {w.where()}", keys.count(",") + 1


def union(w: Writer) -> Made:
    """Two aggregates of the same types side by side."""
    call = w.call()
    one, two = (f"SELECT '{label}' AS part, {call} AS v0 FROM {w.table} WHERE {w.where()}" for label in "ab")
    return f"{one} UNION ALL {two}", 1


KINDS: dict[str, Callable[[Writer], Made]] = {
    "plain": plain, "grouped": grouped, "grouped_wide": grouped_wide, "selective": selective,
    "selective_grouped": selective_grouped, "filtered": filtered, "ratio": ratio, "extremes": extremes, "spread": spread,
    "quantile": quantile, "quantile_grouped": quantile_grouped, "distinct": distinct, "distinct_grouped": distinct_grouped,
    "having": having, "top": top,
    "join_small": join_small, "join_large": join_large, "join_peer": join_peer, "nested": nested, "decided": decided,
    "picked": picked, "expression": expression,
    "select_distinct": select_distinct, "union": union,
}  # fmt: skip


def draw(families: list[Family], kinds: tuple[str, ...], count: int, seed: int) -> list[Asked]:
    """So many queries, kinds in turn; the same seed gives the same ones."""
    found = []
    memory: dict[str, dict[str, Any]] = {family.name: {} for family in families}
    for number in range(count):
        kind = kinds[number % len(kinds)]
        family = families[int(np.random.default_rng((seed, number, 1)).integers(len(families)))]
        texts = [
            KINDS[kind](Writer(family, np.random.default_rng((seed, number)), dialect, memory[family.name]))
            for dialect in (PRODUCT, DUCKDB)
        ]
        (text, keys), (oracle, _) = texts
        found.append(Asked(number, kind, family.name, text, oracle, keys))
    return found
