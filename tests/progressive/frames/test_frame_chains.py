"""Closure: any chain of operations is a frame whose final rows are those of the same chain in SQL, by another engine."""

from __future__ import annotations

import duckdb
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import nearly
from tests.progressive.frames.chains import STEPS, Step, start
from tests.progressive.frames.comparison import differences


@seed(11)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(steps=st.lists(STEPS, min_size=1, max_size=5))
def test_oracle_agrees_with_random_chains(frames: nearly.Session, oracle: duckdb.DuckDBPyConnection, steps: list[Step]) -> None:
    chain = start(frames)
    for step in steps:
        chain = step(frames, chain)
    assert chain.frame.columns == ("g", "n", "x")
    assert chain.frame.mutable | chain.frame.constant == set(chain.frame.columns)
    answers = list(chain.frame)
    assert answers[-1].exact
    assert {answer.table.schema for answer in answers} == {answers[-1].table.schema}
    assert not differences(answers[-1].table, oracle.sql(chain.sql).to_arrow_table())
