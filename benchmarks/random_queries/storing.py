"""Families as Parquet files in several layouts, known to a session of the product, and to DuckDB for the exact answers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nearly
from benchmarks.random_queries.families import Family
from nearly.engine.blocks import BlockTarget
from nearly.engine.registration import register_parquet


def write(family: Family, layout: str, directory: Path, seed: int) -> None:
    """Write all tables of a family; the main one in its layout, the others in the order of their keys where that is by a key."""
    folder = directory / layout
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for name, table in family.tables.items():
        if name == family.name:
            rows = _sorted(table, family.order(layout), rng)
        else:
            rows = _sorted(table, [] if layout == "shuffled" else table.column_names[:1], rng)
        pq.write_table(rows, folder / f"{name}.parquet", row_group_size=family.row_group)


def _sorted(table: pa.Table, by: list[str], rng: np.random.Generator) -> pa.Table:
    """Sorted, with equal rows in random order."""
    mixed = table.take(pa.array(rng.permutation(table.num_rows)))
    return mixed.sort_by([(name, "ascending") for name in by]) if by else mixed


def open_session(families: Iterable[Family], layout: str, directory: Path, catalog: Path) -> nearly.Session:
    """A session that knows the tables of all families in one layout."""
    db = nearly.connect(lazy=True, path=catalog)
    for family in families:
        for name in family.tables:
            path = directory / layout / f"{name}.parquet"
            if family.fine and name == family.name:  # each row group a block, which only the engine can be told
                register_parquet(db._engine.catalog, name, path, target=BlockTarget(1, 1))
            else:
                db.register(name, str(path))
    return db


class Oracle:
    """Exact answers, by DuckDB alone from one of the layouts: rows are the same in all of them."""

    def __init__(self, families: Iterable[Family], layout: str, directory: Path) -> None:
        self._engine = duckdb.connect()
        for family in families:
            for name in family.tables:
                path = directory / layout / f"{name}.parquet"
                self._engine.execute(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")

    def answer(self, text: str) -> pa.Table:
        return self._engine.execute(text).to_arrow_table()
