"""Random aggregates, casts and filters in SQL over the table of a synopsis: it agrees with the exact answer, or it has none."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from tests.fixtures.driver_only import driver_only

ROWS = 2_000
COLUMNS = {"i": "int", "f": "float", "d": "double", "x": "decimal(10,2)", "day": "date", "t": "text", "b": "boolean"}
MEASURES = {"whole": "i2", "money": "m", "single": "s", "double": "v"}
TARGETS = (
    "int",
    "bigint",
    "smallint",
    "float",
    "double",
    "decimal(8,1)",
    "decimal(12,4)",
    "decimal(20,2)",
    "string",
    "date",
    "boolean",
)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    home = tmp_path_factory.mktemp("random_sql")
    rng = np.random.default_rng(3)

    def with_nulls(values: list[Any], type_: pa.DataType) -> pa.Array:
        return pa.array([None if rng.random() < 0.04 else value for value in values], type_)

    cents = rng.integers(-99_999, 99_999, ROWS)
    columns = {
        "i": with_nulls(rng.integers(-20, 20, ROWS).tolist(), pa.int32()),
        "f": with_nulls((rng.integers(-30, 30, ROWS) / 10).tolist(), pa.float32()),
        "d": with_nulls(np.round(rng.normal(0, 5, ROWS), 1).tolist(), pa.float64()),
        "x": with_nulls([Decimal(int(each)) / 100 for each in rng.integers(-500, 500, ROWS)], pa.decimal128(10, 2)),
        "day": with_nulls([dt.date(2024, 1, 1) + dt.timedelta(days=int(each)) for each in rng.integers(0, 60, ROWS)], pa.date32()),
        "t": with_nulls(rng.choice(["a", "b", "3", ""], ROWS).tolist(), pa.string()),
        "b": with_nulls((rng.random(ROWS) < 0.4).tolist(), pa.bool_()),
        "i2": with_nulls(rng.integers(-1_000, 1_000, ROWS).tolist(), pa.int64()),
        "m": with_nulls([Decimal(int(each)) / 100 for each in cents], pa.decimal128(12, 2)),
        "s": with_nulls((rng.integers(-300, 300, ROWS) / 8).tolist(), pa.float32()),
        "v": with_nulls(rng.lognormal(0, 2, ROWS).tolist(), pa.float64()),
    }
    pq.write_table(pa.table(columns), home / "r.parquet", row_group_size=500)
    with driver_only(home / "catalog") as session:
        session.register("r", home / "r.parquet")
        for name, measure in MEASURES.items():
            on = [["i"], ["d"], ["x", "t"], ["day"], ["f", "b"]]
            session.create_synopsis(name, "r", measure, on, leaves=8, sample=0.2 if name == "double" else 1.0)
        yield session


def constant(draw: random.Random, column: str) -> str:
    number = draw.choice(
        ["3", "-2", "0", "2.5", "0.1", "1e0", "-0.3", "3.0000000000000000001", "cast(0.1 as float)", "2.999", "null"]
    )
    if column == "day":
        return f"date '{dt.date(2024, 1, 1) + dt.timedelta(days=draw.randrange(70))}'"
    if column == "t":
        return draw.choice(["'a'", "'3'", "''", "'nobody'"])
    return draw.choice(["true", "false"]) if column == "b" else number


def cast(draw: random.Random, text: str, chance: float) -> str:
    while draw.random() < chance:
        text = f"{'try_cast' if draw.random() < 0.2 else 'cast'}({text} as {draw.choice(TARGETS)})"
    return text


def condition(draw: random.Random) -> str:
    column = draw.choice(list(COLUMNS))
    if draw.random() < 0.15:
        return f"{column} is {draw.choice(['', 'not '])}null"
    left, right = cast(draw, column, 0.25), constant(draw, column)
    if draw.random() < 0.2:
        left, right = right, left
    return f"{left} {draw.choice(['<', '<=', '>', '>=', '=', '=', '<>'])} {right}"


def aggregate(draw: random.Random, measure: str) -> str:
    argument = cast(draw, measure, 0.3) if draw.random() < 0.95 else f"{measure} + 1"
    function = draw.choice(["sum", "sum", "avg", "avg", "min", "max", "count", "stddev", "var_pop", "count(*)", "count(1)"])
    return function if "(" in function else f"{function}({argument})"


def question(draw: random.Random, measure: str) -> tuple[str, int]:
    """A query and the number of its keys."""
    keys = draw.sample(["t", "b"], draw.choice([0, 0, 1, 2]))
    outputs = [*keys, *(f"{aggregate(draw, measure)} as a{place}" for place in range(draw.choice([1, 1, 2])))]
    text = f"select {', '.join(outputs)} from r"
    if conditions := [condition(draw) for _ in range(draw.choice([0, 1, 1, 2]))]:
        text += f" where {' and '.join(conditions)}"
    return text + (f" group by {', '.join(keys)}" if keys else ""), len(keys)


@pytest.mark.parametrize("name", list(MEASURES))
def test_answers_of_a_synopsis_agree_with_the_exact_ones(db: nearly.Session, name: str) -> None:
    draw = random.Random(name)
    routed = 0
    for _ in range(60):
        text, keys = question(draw, MEASURES[name])
        try:
            found = db.sql(text, using=name).run()
        except nearly.NearlyError:
            continue
        routed += 1
        agree(found, exactly(db, text), keys, text)
    assert routed > 10


def exactly(db: nearly.Session, text: str) -> pa.Table:
    return db.sql(text, kernel="native").exact().table


def agree(found: nearly.Answer, exact: pa.Table, keys: int, text: str) -> None:
    """Law: exact values are equal, certain bounds hold, and groups are missing only where that is told."""
    assert found.table.schema == exact.schema, text
    shown = {tuple(row.values())[:keys]: place for place, row in enumerate(found.table.to_pylist())}
    truth = {tuple(row.values())[:keys]: tuple(row.values())[keys:] for row in exact.to_pylist()}
    assert set(shown) <= set(truth), text
    assert len(truth) - len(shown) <= found.unseen.most, text
    assert not found.complete or set(shown) == set(truth), text
    for key, place in shown.items():
        for column, value in enumerate(truth[key], keys):
            cell(found, place, column, value, text)


def cell(found: nearly.Answer, place: int, column: int, truth: Any, text: str) -> None:
    value, low, high = (table.column(column)[place].as_py() for table in (found.table, found.hard_low, found.hard_high))
    shown = f"{text}: {found.table.column_names[column]} {value} in [{low}, {high}], exact={found.exact}, computed {truth}"
    if truth is None:
        assert not found.exact or value is None, shown
        return
    slack = 1e-9 * (1.0 + abs(float(truth))) if isinstance(truth, float) else 0
    if found.exact and isinstance(truth, float):
        assert math.isclose(value, truth, rel_tol=1e-9, abs_tol=1e-9), shown
    elif found.exact:
        assert value == truth, shown
    assert low is None or low <= truth + slack, shown
    assert high is None or high >= truth - slack, shown
