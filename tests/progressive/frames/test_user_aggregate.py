"""Aggregates in Python, without any engine: the value does not depend on how the rows are cut."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nearly
from nearly.engine.native.function_adapters import FunctionFailed, ScalarAdapter, TableAdapter, function_failure
from nearly.progressive.user_aggregate import Finish, Steps

TOTAL = nearly.Aggregate(
    zero=lambda: [0, 0],
    step=lambda s, t: [s[0] + t.num_rows, s[1] + sum(v for v in t["x"].to_pylist() if v is not None)],
    merge=lambda a, b: [a[0] + b[0], a[1] + b[1]],
    finish=lambda s: s[0] * 1000 + s[1],
)
ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", "ß", None]), st.one_of(st.none(), st.integers(-9, 9))), max_size=30)


def _table(rows: list[tuple[str | None, int | None]]) -> pa.Table:
    return pa.table({"k": pa.array([k for k, _ in rows], pa.string()), "x": pa.array([x for _, x in rows], pa.int64())})


@settings(deadline=None)
@given(rows=ROWS, cuts=st.lists(st.integers(0, 30), max_size=4))
def test_law_of_the_cut(rows: list[tuple[str | None, int | None]], cuts: list[int]) -> None:
    """States of any pieces, merged, give what the aggregate of the whole gives."""
    ends = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    steps, finish = Steps((TOTAL,), 1, (1,), ("x",)), Finish((TOTAL,), 1)
    parts = [steps(_table(rows[start:end])) for start, end in pairwise(ends)] or [steps(_table([]))]
    found = {row["c0"]: row["c1"] for row in finish(pa.concat_tables(parts)).to_pylist()}
    groups = {key: [x for k, x in rows if k == key] for key, _ in rows}
    assert found == {key: len(values) * 1000 + sum(v or 0 for v in values) for key, values in groups.items()}


def test_no_keys_no_rows() -> None:
    states = pa.table({"c0": pa.array([], pa.binary())})
    assert Finish((TOTAL,), 0)(states).to_pylist() == [{"c0": 0}]


def test_pieces_are_mapped_one_by_one() -> None:
    takes, gives = pa.schema([("x", pa.int64())]), pa.schema([("n", pa.int64())])
    adapter = TableAdapter("sizes", lambda t: {"n": [t.num_rows]}, takes, gives, whole=False)
    pieces = pa.array([[{"c0": 1}, {"c0": None}], [], None, [{"c0": 5}]], pa.list_(pa.struct([("c0", pa.int64())])))
    assert adapter(pieces).to_pylist() == [[{"c0": 2}], [], [], [{"c0": 1}]]
    whole = TableAdapter("sizes", lambda t: {"n": [t.num_rows]}, takes, gives, whole=True)
    assert whole(pieces).to_pylist()[2] == [{"c0": 0}], "a function of all rows is called without rows, too"


def test_failures_name_the_function() -> None:
    adapter = ScalarAdapter("short", lambda _: [1, 2], pa.int64())
    with pytest.raises(FunctionFailed, match="Python function 'short' failed: ValueError: it gave 2 values for 3 rows"):
        adapter(pa.array([1, 2, 3]))
    found = function_failure("Invalid: Python function 'f' failed: ValueError: no\nmore")
    assert str(found) == "Python function 'f' failed: ValueError: no"
    assert function_failure("Out of memory") is None
