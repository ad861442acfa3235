"""Errors of the native engine while rows are read some at a time: Arrow raises them as its own."""

from __future__ import annotations

import duckdb
import pytest

from nearly.engine.native.failures import NativeFailure, explained, read_in_batches


def test_an_error_among_the_rows_is_the_engines() -> None:
    with duckdb.connect() as engine:
        rows = engine.sql("select cast(case when i > 400000 then 'x' else '1' end as int) as n from range(500000) as t(i)")
        with pytest.raises(duckdb.Error, match="Conversion Error") as trouble:
            list(read_in_batches(rows, 1_000))
    assert isinstance(explained(trouble.value), NativeFailure)  # a question to Spark


def test_an_interrupt_is_one() -> None:
    with duckdb.connect() as engine:
        batches = read_in_batches(engine.sql("select i from range(1000000000) as t(i)"), 1_000)
        next(batches)
        engine.interrupt()
        with pytest.raises(duckdb.InterruptException):
            list(batches)


def test_all_rows_come() -> None:
    with duckdb.connect() as engine:
        batches = read_in_batches(engine.sql("select i from range(5000) as t(i)"), 1_000)
        assert [row for batch in batches for row in batch["i"].to_pylist()] == list(range(5_000))
