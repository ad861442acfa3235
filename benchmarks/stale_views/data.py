"""TPC-H tables with skewed values, in a session: rows that are there from the start, and rows that come and change later.

Skew: the value at rank r of N is multiplied by (N / r)^s with s = (z - 1) / 4, a Zipf law over ranks that a hash of the key deals
out; z = 1 leaves the values as they are, and z = 4 has no finite variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

import nearly

HELD_OUT = 0.2
"""The share of the orders that is not there at the start."""
BUCKETS = 10_000
LINEITEM = (
    "l_orderkey", "l_linenumber", "l_partkey", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount", "l_returnflag",
    "l_shipdate", "l_commitdate", "l_receiptdate", "l_shipmode",
)  # fmt: skip
ORDERS = ("o_orderkey", "o_custkey", "o_orderstatus", "o_totalprice", "o_orderdate", "o_orderpriority", "o_shippriority")
PLAIN = {
    "customer": ("c_custkey", "c_nationkey", "c_mktsegment", "c_acctbal", "c_phone"),
    "supplier": ("s_suppkey", "s_nationkey", "s_name"),
    "nation": ("n_nationkey", "n_name", "n_regionkey"),
    "region": ("r_regionkey", "r_name"),
    "part": ("p_partkey", "p_brand", "p_type", "p_name"),
}
KEYS = {
    "lineitem": ["l_orderkey", "l_linenumber"], "orders": ["o_orderkey"], "customer": ["c_custkey"], "supplier": ["s_suppkey"],
    "nation": ["n_nationkey"], "region": ["r_regionkey"], "part": ["p_partkey"],
}  # fmt: skip


@dataclass
class Shop:
    """The tables in a session; `used` tells which share of the orders has come late, `rounds` how often rows changed."""

    db: nearly.Session
    source: dict[str, Path]
    z: float
    directory: Path
    used: float = 0.0
    rounds: int = 0

    @classmethod
    def open(cls, source: dict[str, Path], directory: Path, z: float, tables: Sequence[str] = tuple(KEYS)) -> Shop:
        """Write what is there at the start, and register it."""
        directory.mkdir(parents=True, exist_ok=True)
        db = nearly.connect(path=directory / "catalog", lazy=True)
        shop = cls(db, source, z, directory)
        for name in tables:
            path = directory / f"{name}.parquet"
            if name in ("lineitem", "orders"):
                key = "l_orderkey" if name == "lineitem" else "o_orderkey"
                text = shop.text(name, f"{_bucket(key)} >= {int(HELD_OUT * BUCKETS)}", 0)
            else:
                text = f"SELECT {', '.join(PLAIN[name])} FROM read_parquet('{source[name]}/*.parquet')"
            order = " ORDER BY l_orderkey, l_linenumber" if name == "lineitem" else ""
            duckdb.sql(f"COPY ({text}{order}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 122880)")
            db.register(name, str(path), key=KEYS[name])
        return shop

    def text(self, name: str, where: str, salt: int) -> str:
        """Rows of a large table, with skewed values; `salt` gives others."""
        columns, skew = (LINEITEM, ("l_quantity", "l_extendedprice")) if name == "lineitem" else (ORDERS, ("o_totalprice",))
        key = ", ".join(KEYS[name])
        power = (self.z - 1) / 4
        chosen = [f"{_skewed(each, key, power, salt)} AS {each}" if each in skew else each for each in columns]
        return f"SELECT {', '.join(chosen)} FROM read_parquet('{self.source[name]}/*.parquet') WHERE {where}"

    def change(self, share: float, inserts: float = 0.5) -> None:
        """Let so many rows come and change, in relation to those at the start: some new orders, the rest other values."""
        self.rounds += 1
        coming = share * inserts * (1 - HELD_OUT)
        first, last = (int(each * BUCKETS) for each in (self.used, min(self.used + coming, HELD_OUT)))
        self.used += coming
        if last > first:
            for name, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
                self.db.insert(name, self.rows(self.text(name, f"{_bucket(key)} BETWEEN {first} AND {last - 1}", 0)))
        updated = share * (1 - inserts)
        if updated:
            chosen = f"hash(l_orderkey, l_linenumber, {self.rounds}) % {BUCKETS} < {int(updated * BUCKETS)}"
            where = f"{_bucket('l_orderkey')} >= {int(HELD_OUT * BUCKETS)} AND {chosen}"
            self.db.merge("lineitem", self.rows(self.text("lineitem", where, self.rounds)))

    def rows(self, text: str) -> pa.Table:
        found = arrow(duckdb.connect(), text)
        fields = [pa.field(each.name, pa.string() if each.type == pa.string_view() else each.type) for each in found.schema]
        return found.cast(pa.schema(fields))

    def exact(self, text: str) -> pa.Table:
        """A query over the tables, by nearly."""
        return self.db.sql(text).exact().table

    def close(self) -> None:
        self.db.close()


def arrow(connection: duckdb.DuckDBPyConnection, text: str) -> pa.Table:
    """The rows of a query."""
    reader: pa.RecordBatchReader = connection.execute(text).to_arrow_reader()
    return reader.read_all()


def _bucket(key: str) -> str:
    return f"(hash({key}) % {BUCKETS})"


def _skewed(column: str, key: str, power: float, salt: int) -> str:
    """A value by its rank, which a hash of the key deals out; a salted one is of another row's size, too."""
    uniform = f"((hash({key}, {salt}) % 1000003 + 1) / 1000004.0)"
    other = f" * (0.5 + ((hash({key}, {salt}, 'other') % 1000) / 1000.0))" if salt else ""
    return f"CAST({column} * pow({uniform}, {-power}){other} AS DECIMAL(15, 2))"
