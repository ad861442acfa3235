"""All 22 TPC-H queries progressively: every answer has the schema of the exact one, and the last equals Spark SQL's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import nearly
from benchmarks.agreement import difference
from benchmarks.tpch.data import ensure_tables
from benchmarks.tpch.queries import NUMBERS, query

SCALE = "0.1"


@pytest.fixture(scope="module", params=[1, 3])
def lake(request: pytest.FixtureRequest, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    with nearly.connect(spark, path=tmp_path_factory.mktemp("lake"), executors=request.param, cores=1) as db:
        for name, path in ensure_tables(SCALE).items():
            db.register(name, path)
        yield db


@pytest.fixture(scope="module")
def expected(spark: Any) -> dict[int, pa.Table]:
    for name, path in ensure_tables(SCALE).items():
        spark.read.parquet(str(path)).createOrReplaceTempView(name)
    return {number: spark.sql(query(number, SCALE)).toArrow() for number in NUMBERS}


@pytest.mark.parametrize("number", NUMBERS)
def test_progressive(number: int, lake: nearly.Session, expected: dict[int, pa.Table]) -> None:
    text = query(number, SCALE)
    answers = list(lake.sql(text))
    assert difference(expected[number], answers[-1].table, text) is None
    assert answers[-1].source == "native"
    for answer in answers:
        assert answer.table.schema == answer.low.schema == answer.high.schema == answers[-1].table.schema
