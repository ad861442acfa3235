"""Certain bounds: whatever the rows are, values lie in their ranges and aggregates in their bounds. DuckDB is the oracle."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal as Number
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nearly.errors import Unsupported
from nearly.estimate.certain_bounds import FUNCTIONS, Read, UnreadPart, bounds, part_of
from nearly.plan.dialects import native
from nearly.plan.expressions import AggregateCall, Column, Expression, Literal
from nearly.plan.functions.aggregates import aggregate
from nearly.plan.functions.casting import cast
from nearly.plan.functions.table import call
from nearly.plan.types import BOOLEAN, DATE, DOUBLE, FLOAT, FRACTIONS, INT, LONG, STRING, DataType, decimal, to_arrow
from nearly.plan.values.ranges import Extent, KnownColumn, UnreadBlock, exact, range_of
from nearly.plan.values.rounding import rounded

MONEY = decimal(9, 2)
COLUMNS = {"i": INT, "m": MONEY, "x": DOUBLE, "s": STRING, "t": DATE}
NUMBERS = ("i", "m", "x")

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-100, 100),
    "m": st.decimals(-1000, 1000, places=2),
    "x": st.floats(-1e3, 1e3) | st.sampled_from([0.0, -0.0, 1e300, -1e300, math.inf, -math.inf, math.nan]),
    "s": st.sampled_from(["", "a", "ab", "b", "ç", "日本"]),
    "t": st.dates(dt.date(2020, 1, 1), dt.date(2020, 12, 31)),
}


def column(name: str) -> Column:
    return Column(COLUMNS[name], name)


def literal(value: Any) -> Literal:
    match value:
        case bool():
            return Literal(BOOLEAN, value)
        case int():
            return Literal(INT, value)
        case float():
            return Literal(DOUBLE, value)
        case Number():
            return Literal(decimal(6, 2), value)
        case str():
            return Literal(STRING, value)
        case _:
            return Literal(DATE, value)


leaves = st.sampled_from(NUMBERS).map(column) | st.integers(-9, 9).map(literal) | st.sampled_from([0.5, -2.0]).map(literal)


def larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(st.sampled_from("+-*/"), pairs).map(lambda each: call(each[0], each[1])),
        st.tuples(st.sampled_from(["neg", "abs"]), inner).map(lambda each: call(each[0], [each[1]])),
        pairs.map(lambda each: call("coalesce", each)),
        pairs.map(lambda each: call("if", [call(">", [column("i"), literal(3)]), *each])),
        st.tuples(inner, st.sampled_from([DOUBLE, FLOAT, LONG, decimal(20, 1)])).map(lambda each: cast(*each)),
    )


numbers = st.recursive(leaves, larger, max_leaves=4)
comparisons = st.one_of(
    st.tuples(st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), numbers, numbers).map(lambda each: call(each[0], each[1:])),
    st.tuples(st.sampled_from(["<", ">=", "="]), VALUES["t"]).map(lambda each: call(each[0], [column("t"), literal(each[1])])),
    st.tuples(st.sampled_from(["<", ">", "<>"]), VALUES["s"]).map(lambda each: call(each[0], [column("s"), literal(each[1])])),
    st.lists(st.integers(-100, 100).map(literal), min_size=1, max_size=3).map(lambda each: call("in", [column("i"), *each])),
    st.sampled_from(list(COLUMNS)).map(lambda name: call("isnull", [column(name)])),
    st.sampled_from(list(COLUMNS)).map(lambda name: call("isnotnull", [column(name)])),
    st.sampled_from(["s"]).map(lambda name: call("like", [column(name), literal("a%")])),
)
predicates = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), inner, inner).map(lambda each: call(each[0], each[1:])),
        inner.map(lambda each: call("not", [each])),
    ),
    max_leaves=3,
)
block = st.integers(1, 4).flatmap(
    lambda rows: st.fixed_dictionaries(
        {name: st.lists(values | st.none(), min_size=rows, max_size=rows) for name, values in VALUES.items()}
    )
)
Block = dict[str, list[Any]]


def box(rows: Block) -> UnreadBlock:
    return UnreadBlock(len(rows["i"]), {name: known(values, COLUMNS[name]) for name, values in rows.items()})


def known(values: list[Any], type_: DataType) -> KnownColumn:
    """What a footer tells: NaN is left out of its ends, so a column of fractions has no upper one when it may hold NaN."""
    present = [value for value in values if value is not None]
    finite = [value for value in present if not (isinstance(value, float) and math.isnan(value))]
    low = min(finite, default=None)
    high = max(finite, default=None) if type_ not in FRACTIONS or len(finite) == len(present) else None
    return KnownColumn(low, high, len(values) - len(present))


def unread_bounds(
    function: str, argument: Expression | None, boxes: list[UnreadBlock], where: Expression | None = None, *, grouped: bool = False
) -> Extent:
    """The range of an aggregate over unread blocks alone."""
    parts = [part_of(argument, each, where, grouped=grouped) for each in boxes]
    return bounds(function, DOUBLE if argument is None else argument.type, parts)


CONNECTION = duckdb.connect(config={"threads": 1})


def evaluate(blocks: list[Block], *expressions: Expression) -> list[tuple[Any, ...]]:
    """Expressions or aggregates over the rows of the blocks in the native kernel; what it does not do is left out."""
    arrays = {name: pa.array([v for each in blocks for v in each[name]], to_arrow(type_)) for name, type_ in COLUMNS.items()}
    CONNECTION.register("input", pa.table(arrays))
    try:
        chosen = ", ".join(native.expression(each).sql(dialect="duckdb") for each in expressions)
        return CONNECTION.execute(f"SELECT {chosen} FROM input").fetchall()
    except (duckdb.Error, Unsupported):
        assume(False)
        raise


def within(value: Any, found: Extent, *, may_be_null: bool = True) -> bool:
    """Whether a value lies in a range in Spark's order, NaN on top."""
    if value is None:
        return may_be_null or found.nullable
    if isinstance(value, float) and math.isnan(value):
        return found.high is None
    if isinstance(value, float) and math.isinf(value):
        return (found.high if value > 0 else found.low) is None
    plain = exact(value)
    return (found.low is None or exact(found.low) <= plain) and (found.high is None or plain <= exact(found.high))


@settings(max_examples=60, deadline=None)
@given(rows=block, expression=numbers)
def test_oracle_every_value_lies_in_its_range(rows: Block, expression: Expression) -> None:
    found = range_of(expression, box(rows))
    for (value,) in evaluate([rows], expression):
        assert within(value, found, may_be_null=False), (value, found)


@settings(max_examples=60, deadline=None)
@given(rows=block, predicate=predicates)
def test_oracle_every_truth_value_is_in_the_range_of_the_predicate(rows: Block, predicate: Expression) -> None:
    found = range_of(predicate, box(rows))
    allowed = {True: found.high is not False, False: found.low is not True, None: found.nullable}
    for (value,) in evaluate([rows], predicate):
        assert allowed[value], (value, found)


def read_of(rows: list[Block], argument: Expression, where: Expression | None) -> Read:
    """The aggregates over what was read."""
    if not rows:
        return Read()
    calls = [aggregate(function, [argument], where=where) for function in ("count", "sum", "min", "max")]
    return Read(*evaluate(rows, *calls)[0])


@settings(max_examples=60, deadline=None)
@given(
    done=st.lists(block, max_size=2),
    unread=st.lists(block, max_size=3),
    argument=numbers,
    where=st.none() | predicates,
    function=st.sampled_from(FUNCTIONS),
)
def test_oracle_every_aggregate_ends_in_its_bounds(
    done: list[Block], unread: list[Block], argument: Expression, where: Expression | None, function: str
) -> None:
    assume(done or unread)
    made: AggregateCall = aggregate(function, [argument], where=where)
    truth = evaluate([*done, *unread], made)[0][0]
    read = read_of(done, argument, where)
    assume(not any(isinstance(each, float) and not math.isfinite(each) for each in (read.total, read.least, read.greatest)))
    parts = [part_of(argument, box(each), where) for each in unread]
    assert within(truth, bounds(function, argument.type, parts, read))
    loose = bounds(function, argument.type, [part_of(argument, box(each), where, grouped=True) for each in unread], read)
    assert within(truth, loose)


def test_bounds_are_tight_where_all_is_known() -> None:
    boxes = [UnreadBlock(10, {"i": KnownColumn(2, 4, 0)}), UnreadBlock(5, {"i": KnownColumn(-3, 1, 2)})]
    assert unread_bounds("count", None, boxes) == Extent(15, 15, False)
    assert unread_bounds("count", column("i"), boxes) == Extent(13, 13, False)
    assert unread_bounds("sum", column("i"), boxes) == Extent(20 - 9, 40 + 3, False)
    assert unread_bounds("min", column("i"), boxes) == Extent(-3, 1, False)
    assert unread_bounds("max", column("i"), boxes) == Extent(2, 4, False)
    average = unread_bounds("avg", column("i"), boxes)
    assert (float(average.low), float(average.high)) == (pytest.approx(11 / 13), pytest.approx(43 / 13))


def test_a_predicate_shuts_blocks_out_or_in() -> None:
    boxes = [
        UnreadBlock(10, {"i": KnownColumn(2, 4, 0)}),
        UnreadBlock(5, {"i": KnownColumn(7, 9, 0)}),
        UnreadBlock(3, {"i": KnownColumn(4, 8, 0)}),
    ]
    where = call(">", [column("i"), literal(5)])
    assert unread_bounds("count", None, boxes, where) == Extent(5, 8, False)
    assert unread_bounds("sum", column("i"), boxes, where) == Extent(35, 45 + 24, False)
    assert unread_bounds("count", None, boxes, where, grouped=True) == Extent(0, 8, False)


def test_sums_of_decimals_are_exact() -> None:
    found = unread_bounds("sum", column("m"), [UnreadBlock(3, {"m": KnownColumn(Number("0.10"), Number("0.30"), 0)})])
    assert (found.low, found.high) == (exact(Number("0.30")), exact(Number("0.90")))


def test_the_average_uses_the_rows_read() -> None:
    parts = [UnreadPart(0, 10, exact(0), exact(100))]
    found = bounds("avg", INT, parts, Read(90, 900))
    assert (float(found.low), float(found.high)) == (pytest.approx(9), pytest.approx(19))


def test_nothing_known_gives_no_bounds() -> None:
    empty = UnreadBlock(10, {})
    assert unread_bounds("count", None, [empty], call(">", [column("i"), literal(1)])) == Extent(0, 10, False)
    assert unread_bounds("sum", column("i"), [empty]) == Extent(None, None, True)
    assert unread_bounds("max", call("sqrt", [column("x")]), [UnreadBlock(1, {"x": KnownColumn(1.0, 4.0, 0)})]).high is None
    assert unread_bounds("sum", column("i"), []) == Extent(None, None, True)
    assert unread_bounds("sum", column("x"), [UnreadBlock(2, {"x": KnownColumn(1.0, None, 0)})]).high is None


def test_products_take_the_extremes_of_all_corners() -> None:
    left, right = KnownColumn(-3, 2, 0), KnownColumn(-5, 4, 0)
    found = range_of(call("*", [column("i"), Column(INT, "j")]), UnreadBlock(1, {"i": left, "j": right}))
    assert (found.low, found.high) == (-12, 15)


def test_a_fraction_that_may_be_nan_has_no_upper_end() -> None:
    unsure = UnreadBlock(2, {"x": KnownColumn(1.0, None, 0)})
    assert range_of(call("neg", [column("x")]), unsure) == Extent(None, None, False)
    assert range_of(call("+", [column("x"), literal(1.0)]), unsure) == Extent(exact(2), None, False)


def test_numbers_are_held_as_types_hold_them() -> None:
    assert rounded(exact(Number("0.125")), MONEY) == exact(Number("0.13"))
    assert rounded(exact(Number("-0.125")), MONEY) == exact(Number("-0.13"))
    assert rounded(exact(0.1), FLOAT) == exact(float(np.float32(0.1)))
    assert rounded(exact(10**400), DOUBLE) is None


def test_half_known_factors_have_half_known_products() -> None:
    """[0, ?] times [2, 3] starts at 0; what may be infinite times what may be 0 may be NaN, which is above all."""
    upwards, downwards = KnownColumn(0.0, None, 0), KnownColumn(None, 5.0, 0)
    product = call("*", [column("x"), Column(DOUBLE, "y")])
    ends = {(2.0, 3.0): [(0, None), (None, 15)], (0.0, 3.0): [(0, None), (None, None)], (-1.0, 3.0): [(None, None)] * 2}
    for (low, high), expected in ends.items():
        for each, (least, most) in zip((upwards, downwards), expected, strict=True):
            found = range_of(product, UnreadBlock(1, {"x": each, "y": KnownColumn(low, high, 0)}))
            assert (found.low, found.high) == (least, most)


def test_an_aggregate_without_bounds_is_refused() -> None:
    with pytest.raises(Unsupported, match="count, sum, avg, min, max"):
        unread_bounds("stddev", column("x"), [])
