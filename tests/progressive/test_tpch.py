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
from nearly.engine.stream.task import Pace
from nearly.progressive.run import Request, Run
from tests.answer_tpch import SCALE
from tests.fixtures.long import first_quick


@pytest.fixture(scope="module", params=[1, 3])
def lake(request: pytest.FixtureRequest, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    with nearly.connect(spark, path=tmp_path_factory.mktemp("lake"), executors=request.param, cores=1, eager=True) as db:
        for name, path in ensure_tables(SCALE).items():
            db.register(name, path)
        yield db


@pytest.fixture(scope="module")
def expected(tpch_expected: dict[int, pa.Table]) -> dict[int, pa.Table]:
    return tpch_expected


@pytest.mark.parametrize("patience", first_quick([0.0, 60.0], 1))
@pytest.mark.parametrize("number", NUMBERS)
def test_progressive(number: int, patience: float, lake: nearly.Session, expected: dict[int, pa.Table]) -> None:
    """With and without patience for an exact run: the last answer is merged from units, or follows the first one as a whole."""
    if patience and lake._engine.cluster.sites.executors > 1:
        pytest.skip("several sites always go by units")
    text = query(number, SCALE)
    answers = list(Run(lake._engine, lake._engine.prepare(text), Request(pace=Pace(patience=patience))).answers())
    assert difference(expected[number], answers[-1].table, text) is None
    assert answers[-1].source == "native"
    for answer in answers:
        assert answer.table.schema == answer.low.schema == answer.high.schema == answers[-1].table.schema
