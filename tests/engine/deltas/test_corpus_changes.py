"""Every query of the corpus as something to keep up to date: rows come, go and change, tables are emptied and filled again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

import nearly
from nearly.engine.deltas.binding import bound_to_both
from nearly.engine.native.failures import NativeFailure
from nearly.engine.storage.layouts import Origin, Table
from nearly.errors import NearlyError
from tests.engine.deltas.judging import judged, rows_of
from tests.fixtures import tables
from tests.fixtures.driver_only import driver_only
from tests.fixtures.queries import QueryCase, corpus

CASES = [case for case in corpus() if not case.notes.keys() & {"error", "kernel"} and "unnamed" not in str(case)]
OPEN = ("limit_without", "sample")
Versions = list[dict[str, Table]]


def _inserted(db: nearly.Session, name: str, rows: pa.Table, pick: random.Random) -> None:
    """Some rows a second time, and some with values of others."""
    if rows.num_rows:
        places = [[pick.randrange(rows.num_rows) for _ in range(3)] for _ in rows.column_names]
        mixed = pa.table({name: rows[name].take(pa.array(place)) for name, place in zip(rows.column_names, places, strict=True)})
        db.insert(name, pa.concat_tables([rows.slice(0, 1), mixed.cast(rows.schema)]))


def _deleted(db: nearly.Session, name: str, rows: pa.Table, pick: random.Random) -> None:
    db.delete(name, rows.take(pa.array([place for place in range(rows.num_rows) if pick.random() < 0.3], pa.int64())))


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    with driver_only(tmp_path_factory.mktemp("corpus") / "catalog") as session:
        for name, path in tables.write(tmp_path_factory.mktemp("files")).items():
            session.register(name, str(path))
            catalog = session._engine.catalog
            catalog.save(replace(catalog.table(name), origin=Origin("dataframe")))
        yield session


@pytest.fixture(scope="module")
def versions(db: nearly.Session) -> Versions:
    """As registered; rows came; rows went, and the tables were compacted; emptied; filled again, and rows changed."""
    pick = random.Random(7)
    content = {name: table for name, table in tables.tables().items() if name != "nested"}
    found = [_present(db)]
    for step in (_inserted, _deleted):
        for name in content:
            step(db, name, db.sql(f"select * from `{name}`").exact().table, pick)
        found.append(_present(db))
    for name in content:
        db.compact(name)
        db.delete(name, where="true")
    found.append(_present(db))
    for name, rows in content.items():
        db.insert(name, rows)
        _deleted(db, name, rows, pick)
    found.append(_present(db))
    return found


def _present(db: nearly.Session) -> dict[str, Table]:
    return {name: db.table(name).info for name in db.tables}


@pytest.mark.parametrize(
    "case", [pytest.param(each, marks=[pytest.mark.long] if at % 6 else []) for at, each in enumerate(CASES)], ids=str
)
def test_oracle_incremental_is_recomputed(case: QueryCase, db: nearly.Session, versions: Versions) -> None:
    engine = db._engine
    for before, after in ((0, 1), (1, 2), (2, 3), (3, 4), (1, 4)):
        try:
            plan = bound_to_both(engine, case.text, versions[before], versions[after]).plan
            [rows_of(engine, plan, versions[place]) for place in (before, after)]
        except (NearlyError, NativeFailure):
            continue
        judged(engine, case.text, versions[before], versions[after])
