"""Golden plans of the passes for every query, which are also run, before and after the pass, against Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import nearly
from nearly.engine.results import finished
from nearly.errors import Unsupported
from nearly.plan.binding.query import bind
from nearly.plan.binding.scope import FreshNames
from nearly.plan.explain import explain
from nearly.plan.nodes import BoundQuery, Plan
from nearly.plan.syntax.parse import parse_query
from nearly.rewrite.logical.decorrelate import decorrelate
from nearly.rewrite.logical.factor_or import factor_or
from nearly.rewrite.logical.prune import prune
from nearly.rewrite.logical.push_filter import push_filter
from tests.fixtures import tables
from tests.fixtures.agreement import difference
from tests.fixtures.driver_only import driver_only
from tests.fixtures.queries import QueryCase
from tests.fixtures.quick_spark import quick_session
from tests.rewrite.golden_plans import cases, check


def decorrelated(plan: Plan) -> Plan:
    return decorrelate(plan, FreshNames("sub"))


PASSES: dict[str, Callable[[Plan], Plan]] = {
    "factor_or": factor_or,
    "push_filter": push_filter,
    "prune": prune,
    "decorrelate": decorrelated,
    "reduce_domain": lambda plan: push_filter(decorrelated(push_filter(plan))),
}
"""The last one is part of decorrelation and needs the filters of the enclosing query below its joins."""

CASES = [case for name in PASSES for case in cases(f"logical/{name}")]


def bound(case: QueryCase) -> BoundQuery:
    return bind(parse_query(case.text), tables.schema)


def rewritten(case: QueryCase) -> BoundQuery:
    query = bound(case)
    return BoundQuery(PASSES[case.feature](query.plan), query.names)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_plan_after_pass(case: QueryCase) -> None:
    check(f"logical/{case.feature}", case, explain(rewritten(case).plan))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pass_is_idempotent_or_finishes(case: QueryCase) -> None:
    """A second run finds nothing more to do."""
    once = rewritten(case).plan
    assert explain(PASSES[case.feature](once)) == explain(once)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return tables.write(tmp_path_factory.mktemp("rewrite"))


@pytest.fixture(scope="module")
def db(files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    with driver_only(tmp_path_factory.mktemp("catalog")) as session:
        for name, path in files.items():
            session.register(name, str(path))
        yield session


@pytest.fixture(scope="module")
def oracle(spark: Any, files: dict[str, Path]) -> Any:
    session = quick_session(spark)
    for name, path in files.items():
        session.read.parquet(str(path)).createOrReplaceTempView(name)
    return session


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pass_keeps_the_rows(case: QueryCase, db: nearly.Session, oracle: Any) -> None:
    expected = oracle.sql(case.text).toArrow()
    for query in (bound(case), rewritten(case)):
        try:
            found = finished(db._engine.native.run(query.plan), query)
        except Unsupported:
            assert query.plan == bound(case).plan, "what decorrelation leaves must be executable"
            continue
        assert difference(expected, found, case.text) is None
