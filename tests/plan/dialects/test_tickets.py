"""Tickets: the same number in both kernels for values of every type, spread evenly, and independent of their neighbours'."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

from nearly.errors import SchemaError
from nearly.plan.dialects import native
from nearly.plan.expressions import Column, Expression
from nearly.plan.functions.tickets import TICKETS, ticket
from nearly.plan.types import DOUBLE, LONG, STRING, decimal
from tests.plan.dialects.conformance import inputs
from tests.plan.dialects.conformance.fixtures import tables
from tests.plan.dialects.conformance.kernels import Native, by_spark, rendered

__all__ = ["tables"]

SEQUENCES = {
    "numbers": (["x"], "select i as x from range({n}) t(i)"),
    "negative": (["x"], "select -i as x from range({n}) t(i)"),
    "multiples of eight": (["x"], "select i * 8 as x from range({n}) t(i)"),
    "high halves": (["x"], "select i * 4294967296 as x from range({n}) t(i)"),
    "pairs": (["x", "y"], "select i // 4 as x, i % 4 + 1 as y from range({n}) t(i)"),
    "texts": (["s"], "select 'Customer#' || i as s from range({n}) t(i)"),
    "doubles": (["d"], "select i / 100.0::double as d from range({n}) t(i)"),
}
TYPES = {"x": LONG, "y": LONG, "s": STRING, "d": DOUBLE}


def of(names: list[str]) -> Expression:
    return ticket([Column(TYPES[name], name) for name in names])


def drawn_by(names: list[str], rows: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    text = native.expression(of(names)).sql(dialect="duckdb")
    return np.asarray(duckdb.sql(f"select {text} as t from ({rows})").fetchnumpy()["t"], dtype=np.int64)


@pytest.mark.parametrize("table", list(inputs.TABLES))
def test_both_kernels_draw_the_same(table: str, spark: Any, tables: dict[str, pa.Table]) -> None:
    columns = [Column(type_, name) for name, type_ in inputs.columns(table).items() if type_ != decimal(38, 38)]
    every = [ticket([column]) for column in columns] + [ticket(columns[:3]), ticket(columns[-2:])]
    _, expected = by_spark(spark, [rendered(each) for each in every], f"conformance_{table}", ["id"])
    found = Native(tables[table]).evaluate(every)
    for expression, (_, mine), theirs in zip(every, found, expected, strict=True):
        assert mine == theirs, expression
        assert all(0 <= each < TICKETS for each in mine)


@pytest.mark.parametrize("kind", SEQUENCES)
def test_tickets_look_random(kind: str) -> None:
    rows, bins = 300_000, 500
    names, text = SEQUENCES[kind]
    found = drawn_by(names, text.format(n=rows))
    cells = np.bincount(found * bins // TICKETS, minlength=bins)
    assert 1e-4 < chi2.sf(_chi_square(cells), bins - 1) < 1 - 1e-4
    coarse = found * 20 // TICKETS
    neighbours = np.bincount(coarse[:-1] * 20 + coarse[1:], minlength=400)
    assert 1e-4 < chi2.sf(_chi_square(neighbours), 399) < 1 - 1e-4


def test_equal_values_have_equal_tickets() -> None:
    rows = "select * from (values (0.0::double), (-0.0::double)) t(d)"
    assert len(set(drawn_by(["d"], rows))) == 1
    odd = "select * from (values ('nan'::double), ('inf'::double), (null::double)) t(d)"
    assert len(drawn_by(["d"], odd)) == 3


def test_order_of_columns_matters() -> None:
    rows = "select i as x, i + 1 as y from range(1000) t(i)"
    assert np.mean(drawn_by(["x", "y"], rows) == drawn_by(["y", "x"], rows)) < 0.01


def test_no_columns_have_no_ticket() -> None:
    with pytest.raises(SchemaError, match="at least one column"):
        ticket([])


def _chi_square(cells: np.ndarray[Any, np.dtype[np.int64]]) -> float:
    expected = cells.sum() / len(cells)
    return math.fsum((cells - expected) ** 2 / expected)
