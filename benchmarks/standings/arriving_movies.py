"""A JOB-shaped database as data that arrives: versions with 99 percent of the rows, and with all.

Tables of few rows are always complete, as in the paper. Rows are told apart by a hash of all their columns.
"""

from __future__ import annotations

import re
from pathlib import Path

import duckdb

import nearly
from benchmarks.autoviews.workloads import workload
from benchmarks.standings.arriving import PARTS, Tables

FIRST = 0.99
FEW = 10_000
"""A table of fewer rows is complete from the beginning, at scale 1."""


def arrive_movies(db: nearly.Session, scale: str, directory: Path) -> tuple[list[Tables], tuple[str, ...]]:
    """Register and insert everything; the versions, and one query of each family, as the paper takes 1a, 2a, 3a, ..."""
    movies = workload("movies", scale, 1_000)
    changing = []
    with duckdb.connect() as connection:
        for name, source in movies.tables.items():
            files = f"read_parquet('{source}/*.parquet')"
            ((rows,),) = connection.execute(f"SELECT count(*) FROM {files}").fetchall()
            if rows < FEW * float(scale):
                db.register(name, str(source))
                continue
            changing.append(name)
            (directory / name).mkdir(parents=True)
            first = f"SELECT * FROM {files} AS t WHERE hash(t) % {PARTS} < {FIRST * PARTS}"
            connection.execute(f"COPY ({first}) TO '{directory / name}' (FORMAT parquet, PER_THREAD_OUTPUT true)")
            db.register(name, str(directory / name))
        before = {name: db.table(name).info for name in movies.tables}
        for name in changing:
            rest = f"SELECT * FROM read_parquet('{movies.tables[name]}/*.parquet') AS t WHERE hash(t) % {PARTS} >= {FIRST * PARTS}"
            db.insert(name, connection.sql(rest).to_arrow_table())
    families = {re.sub(r"'[^']*'|\d+", "?", text): text for text in reversed(movies.queries)}
    return [before, {name: db.table(name).info for name in movies.tables}], tuple(reversed(families.values()))
