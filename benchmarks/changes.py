"""Changing tables: small commits, upserts, deletes, what deleted rows cost those who read, and the same by Delta Lake and DuckDB.

One table of TPC-H, orders with its key, is changed by all of them in the same way; at the end all must hold the same rows.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nearly
from benchmarks.engines import start_spark
from benchmarks.report import Record, median, print_summary, print_table, write_json
from benchmarks.tpch.data import DEFAULT_DIRECTORY, PARTS, ensure_tables

TINY = {"sf": "0.01", "commits": 5, "merges": 2, "upserts": 500, "repeat": 2}
KEY = "o_orderkey"
SCANS = {
    "sum": "select count(*), sum(o_totalprice) from orders",
    "groups": "select o_orderpriority, count(*), sum(o_totalprice), max(o_orderdate) from orders group by o_orderpriority",
    "filter": "select count(*), sum(o_totalprice) from orders where o_orderdate >= date '1996-01-01' and o_orderstatus = 'F'",
    "distinct": "select count(distinct o_custkey) from orders",
}
COLUMNS = ("what", "nearly", "duckdb", "deltalake", "unit")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when a row was lost or doubled."""
    options = parse(arguments)
    directory = Path(tempfile.mkdtemp(prefix="nearly-bench-changes-"))
    spark = start_spark("nearly-bench-changes")
    try:
        source = ensure_tables(options.sf, options.data)["orders"]
        rows = plain(pa.concat_tables(pq.read_table(file) for file in sorted(Path(source).glob("*.parquet"))))
        with nearly.connect(spark, path=directory / "catalog") as db:
            db.register("orders", spark.read.parquet(f"file://{source}"), key=[KEY])
            course = Course(db, rows, directory, options)
            found = course.run()
    finally:
        spark.stop()
        shutil.rmtree(directory, ignore_errors=True)
    summary = summarize(found)
    print_table(COLUMNS, found)
    print()
    print_summary(summary)
    if options.json:
        write_json(options.json, {"benchmark": "changes", "sf": options.sf}, summary, found)
    return 1 if summary["lost"] or summary["doubled"] else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run bench changes", description=__doc__)
    parser.add_argument("--sf", choices=sorted(PARTS, key=float), default="1", help="scale factor (default 1: 1.5 million orders)")
    parser.add_argument("--commits", type=int, default=50, help="commits of 100 rows (default 50)")
    parser.add_argument("--merges", type=int, default=10, help="merges of upserts (default 10)")
    parser.add_argument("--upserts", type=int, default=10_000, help="rows in each (default 10,000)")
    parser.add_argument("--repeat", type=int, default=7, help="runs of each scan, of which the median counts (default 7)")
    parser.add_argument("--tiny", action="store_true", help="hardly any data, to see that all works")
    parser.add_argument("--data", type=Path, default=DEFAULT_DIRECTORY, help="where the tables are, or are generated")
    parser.add_argument("--json", type=Path, help="also write a report to this file")
    options = parser.parse_args(arguments)
    if options.tiny:
        vars(options).update(TINY)
    return options


class Course:
    """The same changes to nearly's table, a DuckDB table in a file, and a Delta table."""

    def __init__(self, db: nearly.Session, rows: pa.Table, directory: Path, options: argparse.Namespace) -> None:
        self.db, self.options = db, options
        self.random = np.random.default_rng(0)
        self.rows = rows
        self.next_key = int(np.max(rows[KEY].to_numpy())) + 1
        self.duck = duckdb.connect(str(directory / "duck.db"))
        self.duck.register("given", rows)
        self.duck.execute(f"CREATE TABLE orders AS SELECT * FROM given; CREATE UNIQUE INDEX by_key ON orders({KEY})")
        self.delta = delta_table(directory / "delta", rows)

    def run(self) -> list[Record]:
        found = [self._commits(), self._upserts(), self._merge_one_percent()]
        found += [record("key_index", self.db._engine.key_indexes.bytes / self.db.table("orders").info.rows, unit="bytes/row")]
        found += self._deletes()
        found += self._scans()
        return [*found, *self._compared()]

    def _commits(self) -> Record:
        mine, theirs = [], []
        for _ in range(self.options.commits):
            rows = self._new(100)
            mine.append(timed(self.db.insert, "orders", rows))
            theirs.append(timed(self._duck, "INSERT INTO orders SELECT * FROM given", rows))
            self._delta_append(rows)
        return record("commit_ms", 1000 * statistics.median(mine), 1000 * statistics.median(theirs), unit="ms, 100 rows")

    def _upserts(self) -> Record:
        mine, theirs = [], []
        for _ in range(self.options.merges):
            rows = pa.concat_tables([self._known(self.options.upserts // 2), self._new(self.options.upserts // 2)])
            mine.append(timed(self.db.merge, "orders", rows))
            theirs.append(timed(self._duck, "INSERT OR REPLACE INTO orders SELECT * FROM given", rows))
            self._delta_merge(rows)
        count = self.options.upserts // 2 * 2
        return record("upserts_per_s", count / statistics.median(mine), count / statistics.median(theirs), unit="rows/s")

    def _merge_one_percent(self) -> Record:
        rows = self._known(max(1, self.rows.num_rows // 100))
        mine = timed(lambda: self.db.merge("orders", rows))
        theirs = timed(lambda: self._duck("INSERT OR REPLACE INTO orders SELECT * FROM given", rows))
        return record("merge_1pct_s", mine, theirs, None if self.delta is None else timed(lambda: self._delta_merge(rows)), "s")

    def _deletes(self) -> list[Record]:
        """One percent by a condition, then more until five percent of all rows are deleted ones."""
        where = f"({KEY} * 7919) % 100 = 37"
        mine = timed(lambda: self.db.delete("orders", where=where))
        duck = timed(lambda: self.duck.execute(f"DELETE FROM orders WHERE {where}"))
        delta = None if self.delta is None else timed(lambda: self.delta.delete(where))
        return [record("delete_1pct_s", mine, duck, delta, "s")]

    def _scans(self) -> list[Record]:
        self.db.compact("orders")
        compacted = {name: self._scan(text) for name, text in SCANS.items()}
        where = f"({KEY} * 7907) % 1000 < 49"  # a little more, and the table is compacted in the background
        self.db.delete("orders", where=where)
        self.duck.execute(f"DELETE FROM orders WHERE {where}")
        if self.delta is not None:
            self.delta.delete(where)
        base = self.db.table("orders").info.base
        share = base.gone / base.manifest.rows
        after = {name: self._scan(text) for name, text in SCANS.items()}
        self.db.compact("orders")
        again = {name: self._scan(text) for name, text in SCANS.items()}
        plain = {name: statistics.mean([compacted[name] * (1 - share), again[name]]) for name in SCANS}
        ratios = [record(f"scan_{name}", after[name] / plain[name], unit="x") for name in SCANS]
        return [record("deleted_share", share, unit="of the rows"), *ratios]

    def _scan(self, text: str) -> float:
        self.db.sql(text).exact()
        return statistics.median(timed(lambda: self.db.sql(text).exact()) for _ in range(self.options.repeat))

    def _compared(self) -> list[Record]:
        """Rows that one has and another has not."""
        mine = self.db.sql("select * from orders").exact().table
        self.duck.register("mine", mine)
        lost = self.duck.execute("SELECT count(*) FROM (SELECT * FROM orders EXCEPT ALL SELECT * FROM mine)").fetchall()[0][0]
        more = self.duck.execute("SELECT count(*) FROM (SELECT * FROM mine EXCEPT ALL SELECT * FROM orders)").fetchall()[0][0]
        found = [record("lost", lost, unit="rows"), record("doubled", more, unit="rows")]
        if self.delta is not None:
            self.duck.register("theirs", self.delta.to_pyarrow_table())
            other = self.duck.execute("SELECT count(*) FROM (SELECT * FROM orders EXCEPT ALL SELECT * FROM theirs)").fetchall()[0][
                0
            ]
            found.append(record("delta_differs", other, unit="rows"))
        return found

    def _new(self, count: int) -> pa.Table:
        rows = self._known(count)
        keys = pa.array(np.arange(self.next_key, self.next_key + count), rows.schema.field(KEY).type)
        self.next_key += count
        return rows.set_column(rows.schema.get_field_index(KEY), rows.schema.field(KEY), keys)

    def _known(self, count: int) -> pa.Table:
        """Other values under keys that were there at the beginning."""
        chosen = self.random.choice(self.rows.num_rows, count, replace=False)
        rows = self.rows.take(pa.array(chosen))
        values = self.rows.take(pa.array(self.random.permutation(chosen)))
        return values.set_column(rows.schema.get_field_index(KEY), rows.schema.field(KEY), rows[KEY])

    def _duck(self, sql: str, rows: pa.Table) -> None:
        self.duck.register("given", rows)
        self.duck.execute(sql)

    def _delta_append(self, rows: pa.Table) -> None:
        if self.delta is not None:
            write_delta(self.delta, rows)

    def _delta_merge(self, rows: pa.Table) -> None:
        if self.delta is not None:
            merging = self.delta.merge(rows, f"t.{KEY} = s.{KEY}", source_alias="s", target_alias="t")
            merging.when_matched_update_all().when_not_matched_insert_all().execute()


def plain(rows: pa.Table) -> pa.Table:
    """The rows with texts of the usual type, which all of Arrow's functions take."""
    fields = [pa.field(each.name, pa.string() if each.type == pa.string_view() else each.type) for each in rows.schema]
    return rows.cast(pa.schema(fields))


def delta_table(path: Path, rows: pa.Table) -> Any:
    """The rows as a Delta table, None where deltalake is not installed."""
    try:
        from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415  an extra
    except ImportError:
        print("deltalake is not installed: over_delta_merge is left out", file=sys.stderr)
        return None
    write_deltalake(str(path), rows)
    return DeltaTable(str(path))


def write_delta(table: Any, rows: pa.Table) -> None:
    from deltalake import write_deltalake  # noqa: PLC0415  an extra

    write_deltalake(table, rows, mode="append")


def timed(work: Callable[..., Any], *arguments: Any) -> float:
    began = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - began


def record(what: str, mine: float, duck: float | None = None, delta: float | None = None, unit: str = "") -> Record:
    return {"what": what, "nearly": mine, "duckdb": duck, "deltalake": delta, "unit": unit}


def summarize(found: Sequence[Record]) -> Record:
    by_name = {str(each["what"]): each for each in found}
    value = {name: each["nearly"] for name, each in by_name.items()}
    scans = [
        float(each["nearly"]) for name, each in by_name.items() if name.startswith("scan_") and isinstance(each["nearly"], float)
    ]
    merge = by_name["merge_1pct_s"]
    mine, theirs = merge["nearly"], merge["deltalake"]
    ratio = float(mine) / float(theirs) if isinstance(mine, float) and isinstance(theirs, float) else None
    return {
        "commit_ms": value["commit_ms"],
        "upserts_per_s": value["upserts_per_s"],
        "delete_1pct_s": value["delete_1pct_s"],
        "scan_overhead_5pct": median(scans),
        "scan_overhead_worst": max(scans),
        "over_delta_merge": ratio,
        "lost": value["lost"],
        "doubled": value["doubled"],
    }


if __name__ == "__main__":
    sys.exit(main())
