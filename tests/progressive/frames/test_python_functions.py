"""Python functions in the data plane: over values, over pieces of a frame, and as aggregates."""

from __future__ import annotations

import math
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import cloudpickle

import nearly
from tests.progressive.frames.comparison import differences
from tests.progressive.frames.tables import lines

cloudpickle.register_pickle_by_value(sys.modules[__name__])
"""Workers cannot import the tests, so their functions travel whole, as those of a notebook do."""

SCORED = {"order_id": "bigint", "größe": "string", "score": "double"}


def score(table: pa.Table) -> pa.Table:
    """A row-wise function that drops rows and makes others."""
    kept = table.filter(pc.greater(table["quantity"], 10))
    scores = pc.multiply(kept["quantity"].cast(pa.float64()), kept["discount"])
    twice = kept.select(["order_id", "größe"]).append_column("score", scores)
    return pa.concat_tables([twice, twice.slice(0, 0)])


def moments() -> nearly.Aggregate:
    """The population variance, by count, sum and sum of squares."""
    return nearly.Aggregate(
        zero=lambda: (0, 0.0, 0.0),
        step=lambda s, t: (
            s[0] + len(t["x"].drop_null()), s[1] + (pc.sum(t["x"]).as_py() or 0),
            s[2] + (pc.sum(pc.multiply(t["x"], t["x"])).as_py() or 0),
        ),
        merge=lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)),
        finish=lambda s: None if not s[0] else s[2] / s[0] - (s[1] / s[0]) ** 2,
    )  # fmt: skip


def test_map_is_the_function_over_the_whole_table(frames: nearly.Session) -> None:
    frame = frames.table("lines").map(score, schema=SCORED)
    assert (frame.schema, frame.mutable, frame.key) == (SCORED, frozenset(), None)
    assert not differences(frame.get_final().table, score(lines()))


def test_map_evolves_and_is_closed(frames: nearly.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    frame = frames.table("lines").map(score, schema=SCORED).filter("score > 1").agg(s=nearly.sum("score"), by="größe").sort("größe")
    answers = list(frame)
    assert not answers[0].exact
    expected = oracle.sql("""
        select "größe", sum(quantity * discount) s from lines where quantity > 10 and quantity * discount > 1
        group by 1 order by 1 nulls first
    """).to_arrow_table()
    assert not differences(answers[-1].table, expected)
    exact = expected["s"].to_pylist()
    for estimate, low, high, value in zip(answers[0].table["s"], answers[0].low["s"], answers[0].high["s"], exact, strict=True):
        assert estimate.as_py() == pytest.approx(value, rel=0.1)
        assert low.as_py() < high.as_py()


def test_all_kernels_agree(frames: nearly.Session) -> None:
    """The exact engine and Spark itself give what the progressive run ends with."""
    spread = frames.table("lines").map(score, schema=SCORED).agg(v=moments()("score AS x"), n=nearly.count(), by="größe")
    expected = spread.get_final().table
    assert not differences(frames.sql(spread.sql).exact().table, expected)
    spark = frames.sql(spread.sql, kernel="spark").exact()
    assert spark.source == "spark"
    assert not differences(spark.table, expected)


def test_clustered_rows_come_together(frames: nearly.Session) -> None:
    """On a clustered table a function sees all rows of a key at once, also while it evolves."""

    def largest(table: pa.Table) -> pa.Table:
        grouped = table.group_by("order_id").aggregate([("quantity", "max"), ("quantity", "count")])
        return grouped.rename_columns(["order_id", "most", "n"])

    schema = {"order_id": "bigint", "most": "int", "n": "bigint"}
    frame = frames.table("lines").map(largest, schema=schema)
    first = next(iter(frame))
    assert not first.exact
    whole = largest(lines())
    seen = whole.filter(pc.is_in(whole["order_id"], first.table["order_id"]))
    assert not differences(first.table, seen), "no key is cut in two"


def test_function_over_estimates(frames: nearly.Session) -> None:
    """A function above an aggregate sees estimates in the aggregate's own types, and what it gives may change."""

    def label(table: pa.Table) -> pa.Table:
        assert table.schema.field("n").type == pa.int64()
        return table.append_column("many", pc.greater(table["n"], 1000))

    counts = frames.table("lines").agg(n=nearly.count(), by="größe")
    frame = counts.map(label, schema={"größe": "string", "many": "boolean"})
    assert frame.mutable == {"größe", "many"}
    assert {row["many"] for row in frame.get_final().table.to_pylist()} == {True}


def test_scalar_function_in_sql_and_frames(frames: nearly.Session) -> None:
    frames.function("damped", lambda x, y: pc.divide(x, pc.add(1.0, pc.abs(y))), returns="double")
    text = "select sum(damped(discount, quantity)) s from lines where damped(discount, 1.0) > 0.01"
    answers = list(frames.sql(text))
    expected = frames.sql("select sum(discount / (1 + abs(quantity))) s from lines where discount / 2 > 0.01").exact()
    assert not answers[0].exact
    assert not differences(answers[-1].table, expected.table)
    assert not differences(frames.sql(text, kernel="spark").exact().table, expected.table)
    frame = frames.table("lines").map(d="damped(discount, quantity)").agg(n=nearly.count("d"))
    assert frame.get_final().table.to_pylist() == [{"n": lines()["quantity"].drop_null().length()}], "nulls reach the function"
    assert frames.sql("select damped(1D, 1D) from customers limit 1").exact().table.column_names == ["damped(1.0, 1.0)"]


def test_a_function_may_be_replaced(frames: nearly.Session) -> None:
    for shift in (1, 2):
        frames.function("shifted", lambda x, shift=shift: pc.add(x, shift), returns="bigint")
        found = frames.sql("select max(shifted(customer)) m from customers").exact()
        assert found.table["m"].to_pylist() == [2019 + shift]


def test_user_aggregate_is_the_built_in_one(frames: nearly.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    variance = moments()
    rows = frames.table("lines").map("größe", x="cast(quantity as double)")
    frame = rows.agg(v=variance("x"), s=nearly.sum("x"), by="größe")
    assert (frame.mutable, frame.key) == ({"v", "s"}, ("größe",))
    answers = list(frame)
    assert not answers[0].exact
    assert answers[0].low["v"].null_count == 4, "an estimate without bounds says so"
    assert math.isinf(answers[0].error)
    expected = oracle.sql('select "größe", var_pop(quantity), sum(quantity) from lines group by 1').to_arrow_table()
    assert not differences(answers[-1].table, expected)


def test_user_aggregate_without_keys_and_rows(frames: nearly.Session) -> None:
    counter = nearly.Aggregate(0, lambda s, t: s + t.num_rows, lambda a, b: a + b, lambda s: s, returns="bigint")
    assert frames.table("empty").agg(n=counter("x")).get_final().table.to_pylist() == [{"n": 0}]
    assert frames.table("empty").agg(n=counter("x"), by="id").get_final().table.num_rows == 0
    total = frames.table("lines").agg(n=counter("order_id"), m=nearly.count())
    assert total.get_final().table.to_pylist() == [{"n": lines().num_rows, "m": lines().num_rows}]
    assert total.key == ()


def test_several_sites(spark: Any, frame_files: dict[str, Path], tmp_path: Path) -> None:
    """Functions over pieces run at every site; what needs all rows runs at one."""
    with nearly.connect(spark, path=tmp_path, executors=2, cores=1, eager=True) as session:
        session.register("lines", frame_files["lines"], clustered_by=["order_id"])
        frame = session.table("lines").map(score, schema=SCORED).agg(v=moments()("score AS x"), n=nearly.count(), by="größe")
        expected = frame.get_final().table
        assert not differences(session.sql(frame.sql).exact().table, expected)
        assert sum(expected["n"].to_pylist()) == score(lines()).num_rows


def _fails(table: Any) -> Any:
    raise ValueError(f"no luck with {len(table)} things")


def _forgets(table: pa.Table) -> pa.Table:
    return table.select(["order_id"])


@pytest.mark.parametrize(("code", "kind", "message"), [
    ("lines.map(fails, schema={'a': 'int'})", "EngineError", "Python function '_fails' failed: ValueError: no luck"),
    ("lines.map(forgets, schema={'a': 'int'})", "EngineError", "'_forgets' failed: ValueError: it gave no column a"),
    ("lines.map(lambda t: 3, schema={'a': 'int'})", "EngineError", "TypeError: it gave int, not an Arrow table"),
    ("lines.map(lambda t: {'a': ['x']}, schema={'a': 'int'})", "EngineError", "Python function '<lambda>' failed: ArrowInvalid"),
    ("lines.map(fails)", "SchemaError", "schema="),
    ("lines.map(fails, schema={})", "SchemaError", "schema="),
    ("lines.map(fails, schema={'a': 'number'})", "SchemaError", "'number' is no type"),
    ("lines.map(fails, schema={'a': 'int', 'A': 'int'})", "SchemaError", "twice"),
    ("lines.map(fails, schema={'a': 'int'}, b='quantity')", "SchemaError", "not both"),
    ("lines.map(fails, fails, schema={'a': 'int'})", "SchemaError", "one Python function"),
    ("lines.map('quantity', schema={'a': 'int'})", "SchemaError", "one Python function"),
    ("db.function('upper', len)", "SchemaError", "function of Spark SQL already"),
    ("db.function('sum', len)", "SchemaError", "function of Spark SQL already"),
    ("db.function('array_sort', len)", "SchemaError", "function of Spark SQL already"),
    ("db.function('a b', len)", "SchemaError", "no name for a function"),
    ("db.function('f', 3)", "SchemaError", "needs a Python function"),
    ("db.function('f', len, returns='array<int>')", "SchemaError", "is no type"),
    ("db.function('f', lock)", "SchemaError", "cannot be sent"),
    ("lines.map(x='broken(quantity)')", "EngineError", "Python function 'broken' failed: ZeroDivisionError"),
    ("lines.map(x='broken()')", "SchemaError", "at least one argument"),
    ("lines.map(x='short(quantity)')", "EngineError", "it gave 1 values for"),
    ("lines.agg(x=nearly.Aggregate(0, lambda s, t: 1 // s, max, abs)('quantity'))", "EngineError", "'agg(x)' failed: ZeroDivision"),
    ("lines.agg(x=nearly.Aggregate(0, 1, max, abs)('quantity'))", "SchemaError", "step must be a function"),
    ("lines.agg(x=nearly.Aggregate(0, len, max, abs)())", "SchemaError", "name the columns"),
    ("lines.agg(x=nearly.Aggregate(0, len, max, abs))", "SchemaError", "is no aggregate"),
])  # fmt: skip
def test_bad_functions(frames: nearly.Session, code: str, kind: str, message: str) -> None:
    frames.function("broken", lambda _: 1 / 0, returns="double")
    frames.function("short", lambda _: [1], returns="bigint")
    lock = threading.Lock()
    names = {"db": frames, "nearly": nearly, "lines": frames.table("lines"), "fails": _fails, "forgets": _forgets}
    names["lock"] = lambda _: lock
    with pytest.raises(nearly.NearlyError) as caught:
        eval(code if code.startswith("db.") else f"{code}.get_final()", {}, names)
    assert type(caught.value).__name__ == kind, caught.value
    assert message in str(caught.value)
