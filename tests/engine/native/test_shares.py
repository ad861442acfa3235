"""The shares of all sites are the tables, also where tables of one stage are clustered by keys of different types."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from nearly.engine.native.reading import NativeReader
from nearly.engine.native.shares import Shares
from nearly.engine.storage.blocks import BlockTarget
from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.registration import register_parquet
from nearly.plan.nodes import Field, Scan

ROWS = 4000


def clustered(catalog: Catalog, home: Path, name: str, keys: list[Any]) -> tuple[Scan, Table]:
    path = home / f"{name}.parquet"
    pq.write_table(pa.table({"k": keys, "v": list(range(len(keys)))}), path, row_group_size=100)
    table = register_parquet(catalog, name, str(path), clustered_by=["k"], target=BlockTarget(100))
    return Scan(name, tuple(Field(f"{each.name}_1", each.name, each.type) for each in table.columns), share="range"), table


def test_ranges_of_different_types(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "catalog")
    first = dt.date(2020, 1, 1)
    spread = [
        clustered(catalog, tmp_path, "numbers", list(range(ROWS))),
        clustered(catalog, tmp_path, "days", [first + dt.timedelta(days=place) for place in range(ROWS // 2)]),
        clustered(catalog, tmp_path, "words", [f"{place:05}" for place in range(ROWS)]),
    ]
    shares = Shares(NativeReader(), spread, 3)
    for scan, table in spread:
        parts = [duckdb.sql(shares.view(scan, table, site)).fetchall() for site in range(3)]
        assert sorted(row for part in parts for row in part) == sorted(
            duckdb.sql(f"select * from '{table.base.manifest.paths[0]}'").fetchall()
        )
        assert all(parts)
