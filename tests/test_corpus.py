"""Every query of the corpus gives what Spark SQL gives over the same files: names, types, rows, order, or an error.

A query runs by the kernel that nearly chooses, which must be the native one unless the fixture says otherwise, and once more by the
spark kernel, where its plan is rendered back to SQL: a wrong plan shows up twice. What needs no Spark is answered without its jobs;
every fourth query, and on several sites every twelfth of a feature, is enough for a quick run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nearly
from nearly.errors import NearlyError
from tests.fixtures import tables
from tests.fixtures.agreement import difference
from tests.fixtures.driver_only import driver_only
from tests.fixtures.queries import QueryCase, corpus
from tests.fixtures.quick_spark import quick_session

DRIVER, ONE, SEVERAL = 0, 1, 3
"""Executors. The driver and one site run a query as one fragment; three force a plan for a cluster, with exchanges of rows."""

CASES = corpus()

SPREAD = frozenset({"aggregates", "grouping", "joins", "set_operations", "subqueries_as_values", "subqueries_in_where", "windows"})
"""Features whose plans differ on several sites."""

PLANNED = frozenset({"common_tables", "joins", "set_operations", "subqueries_as_values", "subqueries_in_where"})
"""Features whose plans are far from the text of the query."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What Spark says to a query: rows or an error."""

    rows: pa.Table | None
    error: str


Oracle = Callable[[str], Expected]
Sessions = Callable[[int], nearly.Session]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return tables.write(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def quick(spark: Any) -> Any:
    return quick_session(spark)


@pytest.fixture(scope="module")
def oracle(quick: Any, files: dict[str, Path]) -> Oracle:
    """Spark's own answers, each computed once."""
    for name, path in files.items():
        quick.read.parquet(str(path)).createOrReplaceTempView(name)

    @cache
    def ask(text: str) -> Expected:
        try:
            return Expected(quick.sql(text).toArrow(), "")
        except Exception as trouble:  # noqa: BLE001 - whatever Spark raises is its answer
            return Expected(None, str(trouble))

    return ask


@pytest.fixture(scope="module")
def sessions(quick: Any, files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    """A session for each number of executors, opened when it is first asked for; without executors, one without Spark."""
    with ExitStack() as opened:

        @cache
        def session(executors: int) -> nearly.Session:
            path = tmp_path_factory.mktemp("catalog")
            db = nearly.connect(quick, path=path, executors=executors, cores=1) if executors else driver_only(path)
            opened.enter_context(db)
            for name, location in files.items():
                db.register(name, str(location))
            return db

        yield session


def runs() -> Iterator[Any]:
    for place, case in enumerate(CASES):
        asks_spark = case.notes.keys() & {"error", "kernel"} or "unnamed" in str(case)  # Spark names what has no name
        count = ONE if asks_spark else DRIVER
        yield pytest.param(case, count, id=f"{case}-{count}", marks=[pytest.mark.long] if place % 4 else [])
    for feature in sorted(SPREAD):
        for place, case in enumerate(each for each in CASES if each.feature == feature):
            if place % 4 < 2:
                yield pytest.param(case, SEVERAL, id=f"{case}-{SEVERAL}", marks=[pytest.mark.long] if place % 12 else [])


@pytest.mark.parametrize(("case", "executors"), [*runs()])
def test_agrees_with_spark(case: QueryCase, executors: int, sessions: Sessions, oracle: Oracle) -> None:
    expected, query = oracle(case.text), sessions(executors).sql(case.text)
    if "error" in case.notes:
        assert case.notes["error"] in expected.error
        with pytest.raises(NearlyError):
            query.exact()
        return
    assert expected.rows is not None, expected.error
    answer = query.exact()
    assert difference(expected.rows, answer.table, case.text) is None
    assert answer.source == case.notes.get("kernel", "native"), query.explain()


def planned() -> list[Any]:
    cases = [case for case in CASES if case.feature in PLANNED and "error" not in case.notes]
    return [pytest.param(case, id=str(case), marks=[pytest.mark.long] if place % 4 else []) for place, case in enumerate(cases)]


@pytest.mark.parametrize("case", planned())
def test_plan_agrees_with_spark(case: QueryCase, sessions: Sessions, oracle: Oracle) -> None:
    query = sessions(ONE).sql(case.text, kernel="spark")
    if "plan:" not in query.explain():
        pytest.skip("no plan: Spark runs the text")
    assert difference(oracle(case.text).rows, query.exact().table, case.text) is None


def test_corpus_is_large_enough() -> None:
    assert len(CASES) >= 180
    assert sum(case.notes.get("kernel") == "spark" for case in CASES) >= 20
