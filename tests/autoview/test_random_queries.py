"""Random queries over random histories of their tables: the same answers with automatic views and without."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nearly.autoview import upkeep
from nearly.errors import NearlyError
from tests.autoview.keen import held_still, keen, rows_on_disk
from tests.engine.deltas.histories import Histories
from tests.fixtures.agreement import difference
from tests.fixtures.generation import QueryGenerator

LIMIT = 40_000
POLICIES = ("lru", "recycler", "lfu", "hawc")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 9))])
def test_oracle_answers_with_views_are_those_without(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "FEW", 1e9)
    monkeypatch.setattr(upkeep, "_expected", lambda *_: 0.0)
    pick = random.Random(seed).choice
    world = Histories(tmp_path, pick)
    generator = QueryGenerator(pick)
    with keen(), world.db as db:
        auto = held_still(db.autoview(str(LIMIT), policy=POLICIES[seed % len(POLICIES)], slowdown=10, seed=seed))
        texts: list[str] = []
        while len(texts) < 8:
            text = generator.query()
            try:
                db.sql(text, kernel="native").exact()
                texts.append(text)
            except NearlyError:
                continue
        for step in range(5):
            for _ in range(6):
                text = pick(texts)
                try:
                    expected = db.sql(text, kernel="native").exact().table
                except NearlyError:
                    continue
                found = db.sql(text).exact()
                assert difference(expected, found.table, text) is None, (step, text, found.source)
                assert rows_on_disk(tmp_path / "catalog") <= LIMIT
            if step % 2:
                world.step()
            if step != 3:
                auto.settle()
        assert auto.status().tally.made > 0 or seed % 4 == 3, "estimates may find nothing worth it in so small tables"
