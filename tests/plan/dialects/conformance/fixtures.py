"""The tables in both engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.plan.dialects.conformance import inputs

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Compiling hundreds of expressions takes far longer than interpreting them on a few rows."""


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, pa.Table]]:
    """The same rows for both engines; Spark interprets expressions meanwhile."""
    home: Path = tmp_path_factory.mktemp("conformance")
    before = {name: spark.conf.get(name, None) for name in INTERPRETED}
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    made = {}
    for name in inputs.TABLES:
        made[name] = inputs.rows(name)
        pq.write_table(made[name], home / f"{name}.parquet")
        spark.read.parquet(str(home / f"{name}.parquet")).createOrReplaceTempView(f"conformance_{name}")
    yield made
    for name in made:
        spark.catalog.dropTempView(f"conformance_{name}")
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)
