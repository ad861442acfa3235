"""Views of the retailer's queries (CTEs, rollups, windows, set operations, correlated subqueries) stay what their queries are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import nearly
from benchmarks.agreement import difference
from benchmarks.retailer.data import ensure_tables
from benchmarks.retailer.queries import NAMES, NUMBERS, query
from nearly.errors import NearlyError

SCALE = "0.01"
ROUNDS = 3
MOST_ROWS = 40


@pytest.mark.long
@pytest.mark.parametrize("part", [0, 2])
def test_views_of_all_queries_after_every_change(part: int, tmp_path: Path) -> None:
    """Rows of every table come, go and change; the views are refreshed, and hold what their queries give then."""
    numbers = NUMBERS[part::4]
    wrong = []
    with nearly.connect(lazy=True, path=tmp_path / "catalog") as db:
        tables = ensure_tables(SCALE, tmp_path / "data")
        for name, path in tables.items():
            db.register(name, str(path))
        for number in numbers:
            db.create_view(f"v{number}", query(number))
        for turn, _ in enumerate(_changes(db, tuple(tables))):
            for number in numbers:
                db.view(f"v{number}").refresh()
                wrong += [f"{NAMES[number]} after change {turn}: {each}" for each in _differences(db, number)]
    assert not wrong, "\n".join(wrong)


def _differences(db: nearly.Session, number: int) -> Iterator[str]:
    try:
        expected = db.sql(query(number)).exact()
        found = db.sql(f"select * from v{number}").exact().table
    except NearlyError as error:
        yield f"{type(error).__name__}: {error}"
        return
    if problem := difference(expected.table, found, "select 1"):
        yield problem


def _changes(db: nearly.Session, tables: tuple[str, ...]) -> Iterator[None]:
    """Every round some rows of each table are deleted and other ones doubled; in the last, two tables are emptied and refilled."""
    random = np.random.default_rng(7)
    for turn in range(ROUNDS):
        with db.transaction():
            for name in tables:
                rows = db.sql(f"select * from {name}").exact().table
                places = random.permutation(rows.num_rows)[: min(MOST_ROWS, max(1, rows.num_rows // 20))]
                half = len(places) // 2
                if half:
                    db.delete(name, rows.take(places[:half]))
                if len(places) - half:
                    db.insert(name, rows.take(places[half:]))
        yield
        if turn == ROUNDS - 1:
            for name in tables[:2]:
                rows = db.sql(f"select * from {name}").exact().table
                db.delete(name, where="true")
                yield
                db.insert(name, rows)
                yield
