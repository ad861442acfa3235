"""A table with everything that makes sampling hard, in many small blocks."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly

FILES = 32
ROWS = 16_400


@pytest.fixture(scope="session")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """32 files, each one block: clustered by id, time-ordered values, nulls, rare keys."""
    directory = tmp_path_factory.mktemp("events") / "events"
    directory.mkdir()
    random = np.random.default_rng(7)
    for part in range(FILES):
        ids = np.arange(part * ROWS, (part + 1) * ROWS)
        x = random.gamma(2.0, 10.0, ROWS) + part
        table = pa.table({
            "id": pa.array(ids // 4, pa.int64()),
            "grp": pa.array(ids % 5, pa.int32()),
            "rare": pa.array(random.zipf(1.5, ROWS) % 100_000, pa.int64()),
            "x": pa.array(x, mask=random.random(ROWS) < 0.1),
            "price": pa.array([Decimal(int(value * 100)) / 100 for value in x], pa.decimal128(12, 2)),
            "name": pa.array([f"größe {i % 3}" for i in ids]),
        })  # fmt: skip
        pq.write_table(table, directory / f"part-{part:02}.parquet", row_group_size=ROWS)
    return directory


@pytest.fixture(scope="session")
def db(spark: Any, events: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    with nearly.connect(spark, path=tmp_path_factory.mktemp("progressive"), eager=True) as session:
        session.register("events", events)
        yield session
