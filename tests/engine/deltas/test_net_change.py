"""What changes in a query's rows is what recomputation says: generated queries over random histories, without Spark."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from nearly.engine.deltas.binding import bound_to_both
from nearly.engine.deltas.net_change import LIMITED, net_change
from nearly.engine.native.failures import NativeFailure
from nearly.errors import NearlyError, Unsupported
from tests.engine.deltas.histories import Histories
from tests.engine.deltas.judging import bag, judged, rows_of, signed
from tests.fixtures.driver_only import driver_only
from tests.fixtures.generation import QueryGenerator
from tests.fixtures.large_tables import read_by_keys
from tests.fixtures.long import first_quick

QUERIES, STEPS = 6, 3


@pytest.mark.parametrize("seed", first_quick(range(12), 2))
def test_oracle_incremental_is_recomputed(seed: int, tmp_path: Path) -> None:
    _check_history(seed, tmp_path)


@pytest.mark.parametrize("seed", first_quick(range(200, 208), 1))
def test_oracle_large_tables_are_read_by_keys(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_by_keys(monkeypatch)
    _check_history(seed, tmp_path)


def _check_history(seed: int, path: Path) -> None:
    pick = random.Random(seed).choice
    history, generator = Histories(path, pick), QueryGenerator(pick)
    texts = [generator.query() for _ in range(QUERIES)]
    engine, before, checked = history.db._engine, history.tables, 0
    for _ in range(STEPS):
        history.step()
        after = history.tables
        for text in texts:
            try:
                plan = bound_to_both(engine, text, before, after).plan
                [rows_of(engine, plan, tables) for tables in (before, after)]
            except (NearlyError, NativeFailure):
                continue  # what the native kernel does not answer has no oracle here
            assert judged(engine, text, before, after).reason in (None, LIMITED)
            checked += 1
        before = after
    assert checked
    history.db.close()


@pytest.mark.parametrize("seed", first_quick(range(100, 104), 1))
def test_law_changes_add_up(seed: int, tmp_path: Path) -> None:
    pick = random.Random(seed).choice
    history, generator = Histories(tmp_path, pick), QueryGenerator(pick)
    engine = history.db._engine
    versions = [history.tables]
    for _ in range(2):
        history.step()
        versions.append(history.tables)
    for _ in range(QUERIES):
        text = generator.query()
        try:
            plan = bound_to_both(engine, text, versions[0], versions[2]).plan
            parts = [
                signed(net_change(engine, plan, *pair).rows) for pair in ((versions[0], versions[1]), (versions[1], versions[2]))
            ]
            whole = signed(net_change(engine, plan, versions[0], versions[2]).rows)
            back = signed(net_change(engine, plan, versions[2], versions[0]).rows)
        except (NearlyError, NativeFailure):
            continue
        total = parts[0].copy()
        total.update(parts[1])
        assert Counter({row: count for row, count in total.items() if count}) == whole, text
        assert Counter({row: -count for row, count in back.items()}) == whole, text
        assert net_change(engine, plan, versions[1], versions[1]).rows.num_rows == 0
    history.db.close()


def test_every_row_is_there_once(tmp_path: Path) -> None:
    history = Histories(tmp_path, random.Random(5).choice)
    before = history.tables
    for _ in range(4):
        history.step()
    engine = history.db._engine
    plan = bound_to_both(engine, "select a from r union all select a from t", before, history.tables).plan
    found = net_change(engine, plan, before, history.tables)
    assert max(bag(found.rows.drop_columns(["_weight"])).values(), default=1) == 1
    assert 0 not in found.rows["_weight"].to_pylist()
    history.db.close()


def test_a_column_that_is_called_as_changes_are_told_is_refused(tmp_path: Path) -> None:
    """Rows would count as often as it says."""
    with driver_only(tmp_path / "catalog") as db:
        db.register("weights", pa.table({"id": [1, 2], "NEARLY_weight": [3, 4]}))
        before = {"weights": db._engine.catalog.table("weights")}
        db.insert("weights", [{"id": 3, "NEARLY_weight": 5}])
        after = {"weights": db._engine.catalog.table("weights")}
        plan = bound_to_both(db._engine, "select nearly_weight, count(*) as n from weights group by 1", before, after).plan
        with pytest.raises(Unsupported, match="'nearly_weight'"):
            net_change(db._engine, plan, before, after)
