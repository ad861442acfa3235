"""Random queries over random tables give what Spark SQL gives. Hypothesis chooses the seeds, the same ones in every run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

import nearly
from nearly.errors import NearlyError
from tests.fixtures.agreement import difference
from tests.fixtures.generation import TABLES, QueryGenerator, random_table
from tests.fixtures.quick_spark import quick_session

EXAMPLES = 6
QUERIES_PER_EXAMPLE = {1: 4, 3: 2}
"""By the number of executors."""


@pytest.fixture(scope="module")
def quick(spark: Any) -> Any:
    return quick_session(spark)


@pytest.fixture(scope="module", params=QUERIES_PER_EXAMPLE)
def db(request: pytest.FixtureRequest, quick: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    path = tmp_path_factory.mktemp("generated")
    with nearly.connect(quick, path=path, executors=request.param, cores=1) as session:
        yield session


@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.integers(0, 2**32 - 1))
def test_generated_queries_agree_with_spark(
    seed: int, db: nearly.Session, quick: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pick = random.Random(seed).choice
    _make_tables(pick, db, quick, tmp_path_factory.mktemp("tables"))
    generator = QueryGenerator(pick)
    for _ in range(QUERIES_PER_EXAMPLE[db._engine.cluster.sites.executors]):
        text = generator.query()
        note(text)
        assert _disagreement(text, db, quick) is None


def _make_tables(pick: Any, db: nearly.Session, oracle: Any, directory: Path) -> None:
    for name in TABLES:
        path = str(directory / f"{name}.parquet")
        pq.write_table(random_table(pick), path)
        oracle.read.parquet(path).createOrReplaceTempView(name)
        db.register(name, path)


def _disagreement(text: str, db: nearly.Session, oracle: Any) -> str | None:
    try:
        expected = oracle.sql(text).toArrow()
    except Exception as trouble:  # noqa: BLE001 - whatever Spark raises is its answer
        with pytest.raises(NearlyError):
            db.sql(text).exact()
        note(f"both refuse: {trouble}")
        return None
    return difference(expected, db.sql(text).exact().table, text)
