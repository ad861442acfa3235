"""Every query of the corpus gives what Spark SQL gives over the same files: names, types, rows, order, or an error.

A query runs by the kernel that nearly chooses, which must be the native one unless the fixture says otherwise, and once more by the
spark kernel, where its plan is rendered back to SQL: a wrong plan shows up twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nearly
from nearly.errors import NearlyError
from tests.fixtures import tables
from tests.fixtures.agreement import difference
from tests.fixtures.queries import QueryCase, corpus

EXECUTORS = (1, 3)
"""One site runs a query as one fragment; three force the plan of a cluster, with exchanges between stages."""

CASES = corpus()


@dataclass(frozen=True, slots=True)
class Expected:
    """What Spark says to a query: rows or an error."""

    rows: pa.Table | None
    error: str


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return tables.write(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def interpreted(spark: Any) -> Any:
    """A session that does not compile its plans to Java: over ten rows that takes longer than the query."""
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    return session


@pytest.fixture(scope="module")
def oracle(interpreted: Any, files: dict[str, Path]) -> Any:
    """Spark's own answers, each computed once."""
    for name, path in files.items():
        interpreted.read.parquet(str(path)).createOrReplaceTempView(name)

    @lru_cache(maxsize=None)
    def ask(text: str) -> Expected:
        try:
            return Expected(interpreted.sql(text).toArrow(), "")
        except Exception as trouble:  # noqa: BLE001 - whatever Spark raises is its answer
            return Expected(None, str(trouble))

    return ask


@pytest.fixture(scope="module", params=EXECUTORS, ids=lambda count: f"executors={count}")
def db(request: pytest.FixtureRequest, interpreted: Any, files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    with nearly.connect(interpreted, path=tmp_path_factory.mktemp("catalog"), executors=request.param, cores=1) as session:
        for name, path in files.items():
            session.register(name, str(path))
        yield session


@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_spark(case: QueryCase, db: nearly.Session, oracle: Any) -> None:
    expected = oracle(case.text)
    if "error" in case.notes:
        assert case.notes["error"] in expected.error
        with pytest.raises(NearlyError):
            db.sql(case.text).exact()
        return
    assert expected.rows is not None, expected.error
    answer = db.sql(case.text).exact()
    assert difference(expected.rows, answer.table, case.text) is None
    assert answer.source == case.notes.get("kernel", "native"), db.sql(case.text).explain()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_plan_agrees_with_spark(case: QueryCase, db: nearly.Session, oracle: Any) -> None:
    expected = oracle(case.text)
    if expected.rows is None or db._engine.cluster.sites.executors > 1:
        pytest.skip("nothing to compare, or compared with one site already")
    query = db.sql(case.text, kernel="spark")
    if "plan:" not in query.explain():
        pytest.skip("no plan: Spark runs the text")
    assert difference(expected.rows, query.exact().table, case.text) is None


def test_corpus_is_large_enough() -> None:
    assert len(CASES) >= 180
    assert sum(case.notes.get("kernel") == "spark" for case in CASES) >= 20
