"""The 22 TPC-H queries as views under refresh sets: each is its query, and all are maintained from changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.agreement import difference
from benchmarks.tpch.data import ensure_tables
from benchmarks.tpch.queries import NUMBERS, query
from nearly.rewrite.delta.strategy.strategies import WHOLE
from tests.engine.deltas.test_tpch_changes import SCALE, refresh
from tests.fixtures.driver_only import driver_only


@pytest.mark.parametrize("numbers", [(1, 3, 11, 13, 15, 18, 21, 22), pytest.param(tuple(NUMBERS), marks=pytest.mark.long)], ids=len)
def test_oracle_views_are_their_queries(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    with driver_only(tmp_path) as db:
        for name, path in ensure_tables(SCALE).items():
            db.register(name, path)
        views = {number: db.create_view(f"q{number}", query(number, SCALE)) for number in numbers}
        incremental = [number for number, view in views.items() if "computed anew" not in view.explain().splitlines()[0]]
        assert incremental == list(numbers)
        for seed in range(2):
            refresh(db, seed, 0.001)
            for number, view in views.items():
                view.refresh()
                expected = db.sql(query(number, SCALE), kernel="native").exact().table
                found = db.sql(f"select * from q{number}", kernel="native").exact().table
                assert difference(expected, found, query(number, SCALE)) is None, (number, view.history[0])
        policies = {number: view.history[0].strategy for number, view in views.items()}
        assert set(policies.values()) <= {"delta", "touched keys", WHOLE}
