"""Families as Parquet files in several layouts, known to a session of the product, and to DuckDB for the exact answers."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nearly
from benchmarks.random_queries.families import Family
from nearly.engine.storage.blocks import BlockTarget
from nearly.engine.storage.registration import register_parquet
from nearly.rewrite.stream import cut_query

FILES = 20
"""Of a table."""


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
        _write_files(rows, folder / name, family.row_group)


def _write_files(rows: pa.Table, folder: Path, row_group: int) -> None:
    """Some files of whole row groups: to read one of them, no more than the footer of its file has to be read."""
    folder.mkdir(exist_ok=True)
    size = max(1, ceil(rows.num_rows / row_group / FILES)) * row_group
    for number, start in enumerate(range(0, rows.num_rows, size)):
        pq.write_table(rows.slice(start, size), folder / f"part-{number:02}.parquet", row_group_size=row_group)


def _sorted(table: pa.Table, by: list[str], rng: np.random.Generator) -> pa.Table:
    """Sorted, with equal rows in random order."""
    mixed = table.take(pa.array(rng.permutation(table.num_rows)))
    return mixed.sort_by([(name, "ascending") for name in by]) if by else mixed


def open_session(families: Iterable[Family], layout: str, directory: Path, catalog: Path) -> nearly.Session:
    """A session that knows the tables of all families in one layout."""
    cut_query.SAMPLED_ROWS = 0  # the tables stand in for larger ones
    db = nearly.connect(lazy=True, path=catalog, eager=True)
    for family in families:
        for name in family.tables:
            path = directory / layout / name
            if family.fine and name in (
                family.name,
                family.peer.table,
            ):  # each row group a block, which only the engine can be told
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
                files = directory / layout / name / "*.parquet"
                self._engine.execute(f"CREATE VIEW {name} AS SELECT * FROM '{files}'")

    def answer(self, text: str) -> pa.Table:
        return self._engine.sql(text).to_arrow_table()
