"""What an answer must be after some units: the query over exactly their rows, each weighing N/n, computed by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

import nearly
from nearly.answer import Answer
from nearly.engine.stream.task import Pace
from nearly.engine.stream.units import units_of
from nearly.progressive.reading import UnitsRead
from nearly.progressive.run import Request, Run
from nearly.rewrite.passes import for_units

BATCHES = (6, 6, 6, 6)


def run(db: nearly.Session, text: str, *, slack: float = 2.0, seed: int = 0, sizes: tuple[int, ...] = BATCHES) -> Run:
    """A run whose first batches have these numbers of units."""
    return Run(db._engine, db._engine.prepare(text), Request(seed=seed, slack=slack, pace=Pace(sizes=sizes)))


def recomputed(db: nearly.Session, text: str, seed: int = 0) -> Iterator[tuple[duckdb.DuckDBPyConnection, float]]:
    """After each batch: a connection whose view `events` has the rows read so far, and their weight."""
    engine = db._engine
    query = engine.prepare(text).query
    assert query is not None
    cut = for_units(query.plan, engine.catalog.schema)
    assert cut is not None
    units = units_of(cut, [engine.catalog.table(scan.table) for scan in cut.scans], seed)
    end = 0
    for size in BATCHES:
        end += size
        pieces = []
        for position in range(end):
            for block in units.blocks(position):
                for part in block.parts:
                    low, high = part.first_row, part.first_row + part.rows
                    pieces.append(
                        f"select * exclude (file_row_number) from read_parquet('{part.path}', file_row_number = true) "
                        f"where file_row_number >= {low} and file_row_number < {high}"
                    )
        connection = duckdb.connect()
        connection.execute(f"create view events as {' union all '.join(pieces)}")
        yield connection, UnitsRead.of(units, range(end)).weight


def early(run_: Run) -> list[Answer]:
    """The answers before the exact one."""
    found = list(run_.answers())
    assert found[-1].exact
    return found[:-1]
