"""Refresh sets of TPC-H: orders that come with their lines, orders that go with theirs, and orders whose values change.

Keys of new orders lie in the gaps that TPC-H leaves for them: of every 32 keys the first eight are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import nearly

ORDER, LINE = "o_orderkey", "l_orderkey"
GAP = 8
KEYS = {"orders": [ORDER], "lineitem": [LINE, "l_linenumber"]}


@dataclass(frozen=True, slots=True)
class RefreshSet:
    """Keys of orders that are copied into a gap, that are deleted, and that are changed."""

    copied: pa.Array
    deleted: pa.Array
    changed: pa.Array


def refresh_set(db: nearly.Session, percent: float, turn: int) -> RefreshSet:
    """Up to one percent as TPC-H has it: so many come and so many go. Beyond, half come, a quarter goes, a quarter changes."""
    keys = db.sql(f"select {ORDER} from orders where {ORDER} % 32 < {GAP}").exact().table[ORDER].to_numpy()
    chosen = np.random.default_rng(turn).permutation(keys)
    share = percent / 100 * len(keys)
    sizes = [share, share, 0.0] if percent < 1 else [share / 2, share / 4, share / 4]
    ends = np.cumsum([max(1, int(size)) if size else 0 for size in sizes])
    return RefreshSet(*(pa.array(np.sort(part)) for part in np.split(chosen, ends)[:3]))


def apply(db: nearly.Session, made: RefreshSet, turn: int, files: Mapping[str, Path]) -> int:
    """Change both tables in one transaction; how many rows came, went or changed. `files` hold the tables as they are."""
    rows = 0
    with db.transaction():
        for table, key in (("orders", ORDER), ("lineitem", LINE)):
            copied = _shifted(_rows_of(files[table], key, made.copied), key, GAP * (1 + turn % 3))
            changed = _other_values(table, _rows_of(files[table], key, made.changed))
            gone = _rows_of(files[table], key, made.deleted)
            for work, given in ((db.delete, gone), (db.merge, changed), (db.insert, copied)):
                if given.num_rows:
                    work(table, given)
                    rows += given.num_rows
    return rows


def _rows_of(directory: Path, key: str, keys: pa.Array) -> pa.Table:
    """The rows of some orders."""
    with duckdb.connect() as connection:
        connection.register("keys", pa.table({"k": keys}))
        text = f"SELECT t.* FROM read_parquet('{directory}/*.parquet') AS t SEMI JOIN keys ON t.{key} = k"
        found = connection.sql(text).to_arrow_table()
    fields = [field.with_type(pa.string()) if field.type == pa.string_view() else field for field in found.schema]
    return found.cast(pa.schema(fields))


def _shifted(rows: pa.Table, key: str, gap: int) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(key), rows.schema.field(key), pc.add(rows[key], gap))


def _other_values(table: str, rows: pa.Table) -> pa.Table:
    """The same keys with other amounts."""
    name = "o_totalprice" if table == "orders" else "l_extendedprice"
    place = rows.schema.get_field_index(name)
    moved = pc.cast(pc.multiply(rows[name], pa.scalar(2, rows.schema.field(name).type)), rows.schema.field(name).type)
    return rows.set_column(place, rows.schema.field(name), moved)
