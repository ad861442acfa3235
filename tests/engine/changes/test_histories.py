"""Random histories of a table against a plain list of rows: every version, what changed between them, both kernels, reopened."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.changes import row_files
from nearly.engine.changes.feed import BEFORE, DELETE, KIND, TIME, VERSION, moved
from nearly.engine.storage.layouts import Origin
from tests.fixtures.driver_only import driver_only
from tests.fixtures.long import first_quick

SCHEMA = pa.schema([
    ("k", pa.int64()), ("x", pa.float64()), ("d", pa.decimal128(10, 2)), ("s", pa.string()), ("t", pa.date32()), ("b", pa.bool_()),
])  # fmt: skip
Row = tuple[Any, ...]


def rows_of(random_: random.Random, keys: list[int]) -> list[Row]:
    """Rows with these keys, many of them alike, nulls included."""
    return [
        (
            key,
            random_.choice([None, 0.0, -1.5, float("nan"), 1e300]),
            random_.choice([None, Decimal("0.00"), Decimal("-12.34")]),
            random_.choice([None, "", "a", "größe", "it's"]),
            random_.choice([None, dt.date(2024, 2, 29)]),
            random_.choice([None, True, False]),
        )
        for key in keys
    ]


def table_of(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in SCHEMA]
    return pa.Table.from_arrays([pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def bag(rows: Any) -> Counter[Row]:
    return Counter(tuple("nan" if isinstance(v, float) and math.isnan(v) else v for v in row) for row in rows)


def named(table: pa.Table) -> list[Row]:
    """The rows in order, with a word for NaN, which is not equal to itself."""
    return [next(iter(bag([row]))) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def bag_of(table: pa.Table) -> Counter[Row]:
    return Counter(named(table))


class History:
    """A table and, for every version, the rows that it must hold."""

    def __init__(self, path: Path, seed: int, keyed: bool, clustered: bool, copied: bool) -> None:
        self.random = random.Random(seed)
        self.path, self.keyed = path, keyed
        keys = list(range(self.random.choice([0, 1, 40, 400])))
        if not clustered:
            self.random.shuffle(keys)
        rows = rows_of(self.random, keys if keyed else [key // 3 for key in keys])
        for number, part in enumerate((rows[: len(rows) // 3], rows[len(rows) // 3 :])):
            pq.write_table(table_of(part), path / f"part{number}.parquet", row_group_size=16)
        self.db = driver_only(path / "catalog")
        self.db.register("t", str(path / "part*.parquet"), key=["k"] if keyed else [])
        if copied:  # as if the files were a copy that may be compacted
            catalog = self.db._engine.catalog
            catalog.save(replace(catalog.table("t"), origin=Origin("dataframe")))
        self.versions: dict[int, list[Row]] = {1: rows}
        self.next_key = 10_000

    @property
    def rows(self) -> list[Row]:
        return self.versions[max(self.versions)]

    def step(self) -> None:
        kinds = [
            "insert",
            "delete",
            "where",
            "update",
            "merge" if self.keyed else "insert",
            "reopen",
            "empty",
            "compact",
            "transaction",
            "copy",
        ]
        kind = self.random.choice(kinds)
        before = max(self.versions)
        after = getattr(self, f"_{kind}")(list(self.rows))
        version = self.db.table("t").info.version
        rows = self.rows if after is None else after
        assert version - before <= (2 if kind == "transaction" else 1)
        assert version > before or bag(rows) == bag(self.rows)
        self.versions[version] = rows

    def _insert(self, rows: list[Row]) -> list[Row]:
        count = self.random.choice([1, 2, 30])
        keys = [self.next_key + place for place in range(count)]
        self.next_key += count
        new = rows_of(self.random, keys if self.keyed else [self.random.randrange(50) for _ in keys])
        self.db.insert("t", table_of(new))
        return rows + new

    def _delete(self, rows: list[Row]) -> list[Row] | None:
        if not rows:
            return None
        gone = self.random.sample(rows, min(len(rows), self.random.choice([1, 5, 60])))
        self.db.delete("t", table_of(gone).select(["k"]) if self.keyed else table_of(gone))
        left = bag(rows) - bag(gone)
        return _named(rows, left)

    def _where(self, rows: list[Row]) -> list[Row]:
        low = self.random.choice([0, 5, 20, 10_010])
        self.db.delete("t", where=f"k >= {low} and k < {low} + 7 and (s is null or s <> 'a')")
        return [row for row in rows if not (low <= row[0] < low + 7 and row[3] != "a")]

    def _update(self, rows: list[Row]) -> list[Row]:
        self.db.update("t", {"d": "coalesce(d, 0) + 1.5", "S": "concat(coalesce(s, 'null'), '!')"}, where="k % 11 = 3")
        return [
            (r[0], r[1], (r[2] or Decimal(0)) + Decimal("1.50"), ("null" if r[3] is None else r[3]) + "!", r[4], r[5])
            if r[0] % 11 == 3
            else r
            for r in rows
        ]

    def _copy(self, rows: list[Row]) -> list[Row]:
        """Rows of the table itself under other keys."""
        self.next_key += 20_000
        self.db.execute(f"insert into t select k + {self.next_key}, x, d, s, t, b from t where k % 7 = 2 and k < 20000")
        new = [(row[0] + self.next_key, *row[1:]) for row in rows if row[0] % 7 == 2 and row[0] < 20_000]
        self.next_key += 20_000
        return rows + new

    def _merge(self, rows: list[Row]) -> list[Row]:
        known = [row[0] for row in rows]
        keys = [*self.random.sample(known, min(len(known), 8)), self.next_key, self.next_key + 1]
        self.next_key += 2
        self.random.shuffle(keys)
        new = rows_of(self.random, keys)
        self.db.merge("t", table_of(new))
        return [row for row in rows if row[0] not in set(keys)] + new

    def _reopen(self, _: list[Row]) -> None:
        self.db.close()
        self.db = driver_only(self.path / "catalog")

    def _compact(self, rows: list[Row]) -> None:
        assert self.db.compact("t").rows == len(rows)

    def _transaction(self, rows: list[Row]) -> list[Row]:
        """Two changes at once, of which the second meets the first; and two that are taken back."""
        with suppress(KeyError), self.db.transaction():
            self._insert([])
            raise KeyError
        with self.db.transaction():
            first = self._insert(rows)
            self.db.delete("t", where=f"k = {first[-1][0]}")
        return [row for row in first if row[0] != first[-1][0]]

    def _empty(self, _: list[Row]) -> list[Row] | None:
        if self.random.random() < 0.7:
            return None
        self.db.delete("t", where="true")
        return []


def _named(rows: list[Row], left: Counter[Row]) -> list[Row]:
    """The rows that are left, one by one."""
    found = []
    for row in rows:
        name = next(iter(bag([row])))
        if left[name] > 0:
            left[name] -= 1
            found.append(row)
    return found


def read(db: nearly.Session, version: int) -> Counter[Row]:
    return bag_of(db.sql(f"select * from t version as of {version}").exact().table)


FACTS = (KIND, VERSION, TIME)


def _went(changes: pa.Table) -> pa.Array:
    return pc.is_in(changes[KIND], value_set=pa.array([DELETE, BEFORE]))


@pytest.mark.parametrize("seed", first_quick(range(12), 4))
def test_every_version_is_what_it_was_and_changes_lead_from_one_to_the_next(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every third history, memory holds hardly a row of what is inserted by queries or updated."""
    if seed % 3 == 1:
        monkeypatch.setattr(row_files, "MOST_HELD", 200)
        monkeypatch.setattr(row_files, "ROWS_IN_FILE", 30)
    history = History(tmp_path, seed, keyed=seed % 2 == 0, clustered=seed % 3 == 0, copied=seed % 4 < 2)
    for _ in range(25):
        history.step()
        assert bag_of(history.db.sql("select * from t").exact().table) == bag(history.rows)
    for version, rows in history.versions.items():
        assert read(history.db, version) == bag(rows), version
    for _ in range(6):
        since, middle, until = sorted(history.random.choices(list(history.versions), k=3))
        whole = history.db.changes("t", since, until)
        parts = pa.concat_tables([history.db.changes("t", since, middle), history.db.changes("t", middle, until)])
        assert named(whole) == named(parts)
        assert _applied(bag(history.versions[since]), whole) == bag(history.versions[until])
        told = [each.drop_columns(list(FACTS)) for each in (whole.filter(_went(whole)), whole.filter(pc.invert(_went(whole))))]
        if len(history.db._engine.catalog.batches("t", since, until)) == until - since:
            went, came = moved(history.db._engine, "t", since, until, history.db.table("t").info.column_names)
            assert [bag_of(went), bag_of(came)] == [bag_of(each) for each in told]
    history.db.close()


def _applied(rows: Counter[Row], changes: pa.Table) -> Counter[Row]:
    for row, kind in zip(
        zip(*(changes[name].to_pylist() for name in SCHEMA.names), strict=True), changes["_change_type"].to_pylist(), strict=True
    ):
        (name,) = bag([row])
        rows[name] += 1 if kind in ("insert", "update_postimage") else -1
        assert rows[name] >= 0, (row, kind)
    return +rows
