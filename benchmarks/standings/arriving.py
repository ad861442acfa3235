"""TPC-H as data that arrives: versions of its tables with 70, 90, 99, 99.9 and 100 percent of the rows, then with rows that go.

Nation and region are always complete. Rows are told apart by a hash of their key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa

import nearly
from nearly.engine.storage.layouts import Table

KEYS = {
    "lineitem": ("l_orderkey", "l_linenumber"), "orders": ("o_orderkey",), "customer": ("c_custkey",), "part": ("p_partkey",),
    "supplier": ("s_suppkey",), "partsupp": ("ps_partkey", "ps_suppkey"),
}  # fmt: skip
COMPLETE = {"nation": ("n_nationkey",), "region": ("r_regionkey",)}
SHARES = (0.7, 0.9, 0.99, 0.999, 1.0)
DELETES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Shares of deletes in the deltas of one percent that come at the end."""
GONE, DELTA = 0.2, 0.01
"""From where on rows go, and come back in the same order later; how many in each delta."""
PARTS = 10_000
Tables = dict[str, Table]


@dataclass(frozen=True, slots=True)
class Arriving:
    """The versions of all tables: `arrived[i]` has the share `SHARES[i]`; from `mixed[i]` to the next, `DELETES[i]` of 1 % go."""

    db: nearly.Session
    arrived: list[Tables]
    mixed: list[Tables]

    def one_by_one(self, names: list[str], before: int, after: int) -> list[Tables]:
        """From one share to another, one table after the other."""
        found = [self.arrived[before]]
        for name in names:
            found.append(found[-1] | {name: self.arrived[after][name]})
        return found


def arrive(db: nearly.Session, source: dict[str, Path], directory: Path) -> Arriving:
    """Register and insert everything."""
    with duckdb.connect() as connection:
        for name, key in KEYS.items():
            files = f"read_parquet('{source[name]}/*.parquet')"
            numbered = f"SELECT *, hash({', '.join(key)}) % {PARTS} AS part FROM {files}"
            (directory / name).mkdir(parents=True)
            first = f"SELECT * EXCLUDE part FROM ({numbered}) WHERE part < {SHARES[0] * PARTS}"
            connection.execute(
                f"COPY ({first}) TO '{directory / name}' (FORMAT parquet, PER_THREAD_OUTPUT true, OVERWRITE_OR_IGNORE)"
            )
            db.register(name, str(directory / name), key=list(key))
        for name, key in COMPLETE.items():
            db.register(name, str(source[name]), key=list(key))
        arrived = [_present(db)]
        for low, high in pairwise(SHARES):
            for name in KEYS:
                db.insert(name, _between(connection, source, name, low, high))
            arrived.append(_present(db))
        mixed, gone, back = [arrived[-1]], GONE, GONE
        for share in DELETES:
            went, came = gone + share * DELTA, back + (1 - share) * DELTA
            for name, key in KEYS.items():
                if share:
                    db.delete(name, _between(connection, source, name, gone, went).select(list(key)))
                if share < 1:
                    db.insert(name, _between(connection, source, name, back, came))
            gone, back = went, came
            mixed.append(_present(db))
    return Arriving(db, arrived, mixed)


def arrived_in(db: nearly.Session, source: dict[str, Path], directory: Path) -> Arriving:
    """What arrived in a directory before; where nothing did, it arrives now."""
    file, catalog = directory / "versions.json", db._engine.catalog
    if not file.exists():
        found = arrive(db, source, directory)
        told = [[{name: table.version for name, table in each.items()} for each in some] for some in (found.arrived, found.mixed)]
        file.write_text(json.dumps(told))
        return found
    arrived, mixed = (
        [{name: replace(catalog.at(name, version), name=name) for name, version in each.items()} for each in some]
        for some in json.loads(file.read_text())
    )
    return Arriving(db, arrived, mixed)


def _present(db: nearly.Session) -> Tables:
    return {name: db.table(name).info for name in (*KEYS, *COMPLETE)}


def _between(connection: duckdb.DuckDBPyConnection, source: dict[str, Path], name: str, low: float, high: float) -> pa.Table:
    part = f"hash({', '.join(KEYS[name])}) % {PARTS}"
    test = f"{part} >= {round(low * PARTS)} AND {part} < {round(high * PARTS)}"
    return connection.sql(f"SELECT * FROM read_parquet('{source[name]}/*.parquet') WHERE {test}").to_arrow_table()
