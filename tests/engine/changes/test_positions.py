"""Keys are paired by what they are, whether a few of them are compared here or many by a query."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from nearly.engine.changes import positions
from tests.fixtures.driver_only import driver_only

KEYS = {
    "numbers": ([1, 2, 3], [3, 5, 1]),
    "texts": (["a", "b", ""], ["", "c", "a"]),
    "days": ([dt.date(2024, 1, 1), dt.date(2024, 1, 2), None], [None, dt.date(2024, 1, 1), dt.date(2025, 1, 1)]),
    "decimals": ([Decimal("1.50"), Decimal("2.00"), Decimal("3.00")], [Decimal("2.00"), Decimal("9.99"), Decimal("1.50")]),
    "doubles": ([0.0, float("nan"), 1.5], [-0.0, float("nan"), 2.5]),
}


@pytest.mark.parametrize("kind", KEYS)
def test_few_keys_are_paired_as_many_are(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new, old = (pa.table({"k": pa.array(values), "part": pa.array([7, 7, 7])}) for values in KEYS[kind])
    with driver_only(tmp_path / "catalog") as db:
        here = positions.pairs(db._engine, new, old).sort_by("new")
        monkeypatch.setattr(positions, "FEW", 0)
        asked = positions.pairs(db._engine, new, old).sort_by("new")
    assert here.to_pydict() == asked.to_pydict()
    assert here["old"].null_count < 3
