"""Random queries as views over random histories, views on them, reopened in between: each is its query after every batch."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nearly.errors import NearlyError
from nearly.views import kept_groups
from nearly.views.moving import Move
from tests.engine.deltas.histories import Histories
from tests.fixtures.agreement import difference
from tests.fixtures.driver_only import driver_only
from tests.fixtures.generation import QueryGenerator

STEPS = 5
VIEWS = 6


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 10))])
def test_oracle_views_are_their_queries(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 4:  # by deltas, also where these small tables would be read again in less time
        monkeypatch.setattr(Move, "_too_much", lambda *_: None)
    if seed % 3:
        monkeypatch.setattr(kept_groups, "FEWEST_READ", -1)
        monkeypatch.setattr(kept_groups, "MOST_SHARE", 10.0)
    pick = random.Random(seed).choice
    world = Histories(tmp_path, pick)
    try:
        texts = _views(world, pick)
        for step in range(STEPS):
            world.step()
            if step == 2:
                world.db.close()
                world.db = driver_only(tmp_path / "catalog")
            for name, text in reversed(texts.items()):
                if pick((True, True, False)):
                    _judge(world, name, text)
        for name, text in texts.items():
            _judge(world, name, text)
    finally:
        world.db.close()


def _views(world: Histories, pick: object) -> dict[str, str]:
    """Views of random queries, and views on them, with the queries that they stand for."""
    generator = QueryGenerator(pick)  # type: ignore[arg-type]
    texts: dict[str, str] = {}
    while len(texts) < VIEWS:
        text, name = generator.query(), f"v{len(texts)}"
        try:
            world.db.sql(text, kernel="native").exact()
            made = world.db.create_view(name, text)
        except NearlyError:
            continue
        texts[name] = text
        column = made.columns[0]
        for on in (f"select {column} as k, count(*) as n from {{source}} group by {column}", "select * from {source}"):
            if len(texts) < VIEWS:
                above = f"v{len(texts)}"
                world.db.create_view(above, on.format(source=name))
                texts[above] = on.format(source=f"({text})")
    return texts


def _judge(world: Histories, name: str, text: str) -> None:
    try:
        expected = world.db.sql(text, kernel="native").exact().table
    except NearlyError:
        return
    view = world.db.view(name).refresh()
    assert view.stale == {}
    found = world.db.sql(f"select * from {name}", kernel="native").exact().table
    assert difference(expected, found, "select 1") is None, f"{name} by {view.history[0].strategy}\n{text}"
