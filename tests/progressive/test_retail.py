"""Queries in the shapes of TPC-DS: the last answer is the exact one, and no early answer tells less than its true error.

The tables are small, and so are their blocks: a query has several answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import nearly
from benchmarks.agreement import difference, loose_difference
from benchmarks.engines import Engine, duckdb_alone, spark_sql
from benchmarks.retailer.data import ensure_tables
from benchmarks.retailer.queries import NAMES, NUMBERS, query
from benchmarks.timeline import judged
from nearly.engine.storage import blocks
from nearly.engine.stream.task import Pace
from nearly.plan.nodes import Join
from nearly.plan.properties import equated
from nearly.progressive.run import Request, Run
from nearly.rewrite.logical.order_joins import order_joins
from tests.fixtures.driver_only import driver_only
from tests.fixtures.long import first_quick

SCALE = "0.02"
QUICK = (1, 3, 6, 18, 21, 24, 27, 28, 36, 38, 40, 49, 51, 56, 67, 72, 76, 83, 91, 96)
"""One or two of each shape."""


@pytest.fixture(scope="module")
def tables() -> dict[str, Path]:
    return ensure_tables(SCALE)


@pytest.fixture(scope="module")
def db(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    with (
        pytest.MonkeyPatch.context() as patch,
        driver_only(tmp_path_factory.mktemp("retail"), eager=True) as session,
    ):
        patch.setattr(blocks, "SMALLEST_ROWS", 256)
        for name, path in tables.items():
            session.register(name, path)
        yield session


@pytest.fixture(scope="module")
def other_engine(tables: dict[str, Path]) -> Engine:
    return duckdb_alone(tables)


def by_units(db: nearly.Session, number: int) -> list[nearly.Answer]:
    """The answers of a run that goes on by units to the end, with intervals so sure that a failure is a mistake, not chance."""
    request = Request(confidence=0.999, pace=Pace(sizes=(16, 12, 12)))
    return list(Run(db._engine, db._engine.prepare(query(number)), request).answers())


def check(number: int, db: nearly.Session, expected: pa.Table) -> None:
    text = query(number)
    exact = db.sql(text).exact().table
    assert loose_difference(expected, exact, text) is None
    answers = by_units(db, number)
    assert answers[-1].exact
    assert difference(exact, answers[-1].table, text) is None
    assert all(answer.table.schema == exact.schema for answer in answers)
    assert [look.description for look in judged([(0.0, answer) for answer in answers]) if look.false] == []


@pytest.mark.parametrize("number", first_quick(QUICK, len(QUICK) // 2), ids=[NAMES[number] for number in QUICK])
def test_answers(number: int, db: nearly.Session, other_engine: Engine) -> None:
    check(number, db, other_engine(query(number)))


@pytest.mark.parametrize(("number", "bounded"), [(28, True), (56, False), (96, False)])
def test_there_are_early_answers_to_judge(number: int, bounded: bool, db: nearly.Session) -> None:
    """Else the tests above would hold for nothing. Most queries are so selective here that no early answer is shown at all."""
    early = by_units(db, number)[:-1]
    assert early
    assert bounded is any(math.isfinite(answer.error) for answer in early)


@pytest.mark.parametrize("number", [15, 81])
def test_tables_are_joined_by_keys_though_other_tests_connect_them_sooner(number: int, db: nearly.Session) -> None:
    """A disjunction over two tables is no reason to compare all their rows with each other."""
    prepared = db._engine.prepare(query(number))
    assert prepared.query is not None
    joins = [node for node in order_joins(prepared.query.plan, db._engine.catalog.schema).walk() if isinstance(node, Join)]
    assert joins
    assert all(equated(join) for join in joins)


@pytest.mark.long
@pytest.mark.parametrize("number", sorted({*NUMBERS} - {*QUICK})[::2])
def test_more_answers(number: int, db: nearly.Session, other_engine: Engine) -> None:
    check(number, db, other_engine(query(number)))


@pytest.mark.long
@pytest.mark.parametrize("number", NUMBERS[::4])
def test_exact_answers_have_the_types_of_spark(number: int, db: nearly.Session, from_spark: Engine) -> None:
    text = query(number)
    assert difference(from_spark(text), db.sql(text).exact().table, text) is None


@pytest.fixture(scope="module")
def from_spark(spark: object, tables: dict[str, Path]) -> Engine:
    return spark_sql(spark, tables)  # type: ignore[arg-type]
