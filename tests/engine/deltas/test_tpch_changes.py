"""The 22 TPC-H queries under refresh sets: orders and their lines come and go, some lines and suppliers change."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import nearly
from benchmarks.tpch.data import ensure_tables
from benchmarks.tpch.queries import NUMBERS, query
from nearly.engine.deltas.net_change import LIMITED
from nearly.engine.storage.layouts import Table
from tests.engine.deltas.judging import judged
from tests.fixtures.driver_only import driver_only
from tests.fixtures.long import first_quick

SCALE = "0.01"
STEPS = 3
Versions = list[dict[str, Table]]


def refresh(db: nearly.Session, seed: int, share: float) -> None:
    """A share of the orders goes, as many come under new keys; some lines and suppliers are changed."""
    random = np.random.default_rng(seed)
    orders, lines = (db.sql(f"select * from {name}").exact().table for name in ("orders", "lineitem"))
    keys = orders["o_orderkey"].to_numpy()
    chosen = random.choice(keys, 2 * max(1, int(len(keys) * share)), replace=False)
    gone, copied = (pa.array(each, orders["o_orderkey"].type) for each in np.split(chosen, 2))
    shift = int(keys.max()) + 1
    with db.transaction():
        for name, rows, key in (("orders", orders, "o_orderkey"), ("lineitem", lines, "l_orderkey")):
            some = rows.filter(pc.is_in(rows[key], copied))
            moved = pc.add(some[key], pa.scalar(shift, some[key].type))
            db.delete(name, where=f"{key} in ({', '.join(map(str, gone.to_pylist()))})")
            db.insert(name, some.set_column(some.column_names.index(key), key, moved))
    db.update("lineitem", {"l_discount": "0.05", "l_quantity": "l_quantity + 1"}, f"l_orderkey % 97 = {seed}")
    db.update("supplier", {"s_acctbal": "s_acctbal + 100", "s_comment": "'Customer Complaints'"}, f"s_suppkey % 50 = {seed}")


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    with driver_only(tmp_path_factory.mktemp("tpch")) as session:
        for name, path in ensure_tables(SCALE).items():
            session.register(name, path)
        yield session


@pytest.fixture(scope="module")
def versions(db: nearly.Session) -> Versions:
    names = db.tables
    found = [{name: db.table(name).info for name in names}]
    for step in range(STEPS):
        refresh(db, step, 0.01)
        found.append({name: db.table(name).info for name in names})
    return found


@pytest.mark.parametrize("number", NUMBERS)
def test_refresh_sets(number: int, db: nearly.Session, versions: Versions) -> None:
    found = judged(db._engine, query(number, SCALE), versions[0], versions[1])
    assert found.source == "native"
    assert found.reason in (None, LIMITED)


@pytest.mark.parametrize("number", first_quick(NUMBERS, 0))
def test_several_refresh_sets_at_once(number: int, db: nearly.Session, versions: Versions) -> None:
    for before, after in ((1, 2), (0, 3), (3, 1)):
        judged(db._engine, query(number, SCALE), versions[before], versions[after])
