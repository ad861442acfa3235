"""Single operations: every aggregate against another engine, names in any spelling, and that bad input is refused at once."""

from __future__ import annotations

import duckdb
import pytest

import nearly
from tests.progressive.frames.comparison import differences

MEASURES = {
    "s": (nearly.sum("quantity"), "sum(quantity)"),
    "rows_": (nearly.count(), "count(*)"),
    "filled": (nearly.count("quantity"), "count(quantity)"),
    "mean": (nearly.avg("quantity"), "avg(quantity)"),
    "weighted": (nearly.weighted_avg("discount", "quantity"), "sum(discount * quantity) / sum(quantity)"),
    "least": (nearly.min("price"), "min(price)"),
    "most": (nearly.max("price"), "max(price)"),
    "variance": (nearly.var("quantity"), "var_samp(quantity)"),
    "deviation": (nearly.stddev("quantity * 2"), "stddev_samp(quantity * 2)"),
    "middle": (nearly.median("quantity"), "median(quantity)"),
    "high": (nearly.quantile("discount", 0.9), "quantile_cont(discount, 0.9)"),
    "different": (nearly.count_distinct("quantity"), "count(distinct quantity)"),
    "covariance": (nearly.cov("quantity", "discount"), "covar_samp(quantity, discount)"),
    "correlation": (nearly.corr("quantity", "discount"), "corr(quantity, discount)"),
}


def test_every_aggregate(frames: nearly.Session, oracle: duckdb.DuckDBPyConnection) -> None:
    frame = frames.table("lines").agg(by="größe", **{name: measure for name, (measure, _) in MEASURES.items()})
    items = ", ".join(f"{sql} as {name}" for name, (_, sql) in MEASURES.items())
    found = frame.get_final().table
    assert not differences(found, oracle.sql(f'select "größe", {items} from lines group by 1').to_arrow_table())


def test_weights_that_add_up_to_nothing(frames: nearly.Session) -> None:
    frame = frames.table("orders").limit(5).agg(w=nearly.weighted_avg("customer", "order_id - order_id"))
    assert frame.get_final().table.to_pylist() == [{"w": None}]


def test_names_in_any_case_and_script(frames: nearly.Session) -> None:
    lines = frames.table("lines")
    assert lines.select("ORDER_ID", "GRÖSSE".lower().replace("ss", "ß")).columns == ("order_id", "größe")
    spaced = lines.rename({"größe": "a b `c` 名"})
    assert spaced.columns[-1] == "a b `c` 名"
    assert spaced.agg(n=nearly.count(), by="a b `c` 名").get_final().table.num_rows == 4
    assert spaced.drop("a b `c` 名").columns == ("order_id", "quantity", "price", "discount")


def test_expressions_keep_their_meaning(frames: nearly.Session) -> None:
    """Text, escapes and casts survive being put together and taken apart again."""
    texts = {
        "quote": "'it''s'", "escape": r"'a\\d\n'", "raw": r"r'\d'", "date": "date '2024-02-29' + interval 1 day",
        "half": "7 / 2",
        "whole": "7 div 2", "cast": "cast('1.50' as decimal(5, 2))", "tried": "try_cast('x' as int)",
        "part": "substring('abcdef', 2, 3)",
        "in_": "2 in (1, 2)", "between": "3 between 1 and 2", "like_": "'ab' like 'a%'",
        "case_": "case 2 when 1 then 'a' else 'b' end",
    }  # fmt: skip
    frame = frames.table("customers").limit(1).map(**texts)
    query = frames.sql("select " + ", ".join(f"{text} as {name}" for name, text in texts.items()) + " from customers limit 1")
    found, expected = frame.get_final().table, query.exact().table
    assert found.to_pylist() == expected.to_pylist()
    assert found.schema.types == expected.schema.types


def test_union_puts_columns_in_order(frames: nearly.Session) -> None:
    orders = frames.table("orders")
    both = orders.union(orders.select("status", "customer", "order_id"))
    assert both.columns == orders.columns
    assert both.agg(n=nearly.count()).get_final().table.to_pylist() == [{"n": 200_000}]


def test_what_spark_alone_knows(frames: nearly.Session) -> None:
    """A function outside the verified set makes the frame Spark's; it is still a frame."""
    frame = frames.table("customers").map(parts="size(split(name, ' '))").agg(n=nearly.count(), by="parts")
    answer = frame.get_final()
    assert (answer.source, answer.table.to_pylist()) == ("spark", [{"parts": 3, "n": 2020}])
    assert frame.schema == {"parts": "int", "n": "bigint"}
    assert (frame.key, frame.clustering_key, frame.mutable) == (None, (), frozenset())


@pytest.mark.parametrize(("code", "kind", "message"), [
    ("db.table('line')", "UnknownName", "did you mean 'lines'?"),
    ("lines.map('quantty')", "UnknownName", "did you mean 'quantity'?"),
    ("lines.map(x='quantty + 1')", "UnknownName", "did you mean 'quantity'?"),
    ("lines.map('quantity + 1')", "SchemaError", "needs a name"),
    ("lines.map('quantity, price')", "ParseError", "not one SQL expression"),
    ("lines.map('quantity from lines')", "ParseError", "not one SQL expression"),
    ("lines.map('1) union select (2')", "ParseError", "not"),
    ("lines.map('')", "ParseError", "SQL text"),
    ("lines.map(7)", "SchemaError", "SQL texts"),
    ("lines.map()", "SchemaError", "at least one"),
    ("lines.map('quantity', quantity='price')", "SchemaError", "twice"),
    ("lines.map('quantity', Quantity='price')", "SchemaError", "twice"),
    ("lines.map(x='sum(')", "ParseError", ""),
    ("lines.filter('quantity')", "SchemaError", "boolean"),
    ("lines.filter('quantity > ')", "ParseError", ""),
    ("lines.filter('sum(quantity) > 1')", "SchemaError", ""),
    ("lines.filter(None)", "ParseError", "SQL text"),
    ("lines.select()", "SchemaError", "at least one"),
    ("lines.select('prize')", "UnknownName", "did you mean 'price'?"),
    ("lines.drop(*lines.columns)", "SchemaError", "no column"),
    ("lines.rename(price='quantity')", "SchemaError", "twice"),
    ("lines.rename(price=3)", "SchemaError", "text"),
    ("lines.rename(prize='x')", "UnknownName", "did you mean 'price'?"),
    ("lines.join(lines, on='order_id')", "SchemaError", "twice"),
    ("lines.join('orders', on='order_id')", "SchemaError", "db.table(name)"),
    ("lines.join(orders, on='order')", "UnknownName", "order_id"),
    ("lines.join(orders, on=())", "SchemaError", "at least one column"),
    ("lines.join(orders, on='order_id', how='outer')", "UnknownName", "kind of join"),
    ("lines.join(orders.drop('order_id'), on={'größe': 'customer'})", "EngineError", "CAST_INVALID_INPUT"),
    ("lines.agg()", "SchemaError", "needs an aggregate"),
    ("lines.agg(x='sum(quantity)')", "SchemaError", "nearly.sum"),
    ("lines.agg(x=nearly.sum('größe || 1'))", "EngineError", "CAST_INVALID_INPUT"),
    ("lines.agg(x=nearly.sum(3))", "SchemaError", "SQL text"),
    ("lines.agg(x=nearly.quantile('quantity', 1.5))", "SchemaError", "from 0 to 1"),
    ("lines.agg(x=nearly.sum('sum(quantity)'))", "SchemaError", "aggregate inside aggregate"),
    ("lines.agg(größe=nearly.count(), by='größe')", "SchemaError", "twice"),
    ("lines.agg(x=nearly.count_distinct())", "SchemaError", "at least one"),
    ("lines.sort()", "SchemaError", "at least one"),
    ("lines.sort('-prize')", "UnknownName", "did you mean 'price'?"),
    ("lines.limit(-1)", "SchemaError", "whole number"),
    ("lines.limit(1.5)", "SchemaError", "whole number"),
    ("lines.limit(10**20)", "SchemaError", "whole number"),
    ("lines.union(orders)", "SchemaError", "only in one"),
    ("db.table('lines', confidence=2)", "SchemaError", "between 0 and 1"),
    ("lines.map(x='(' * 200 + '1' + ')' * 200)", "ParseError", "nests"),
    ("lines.map(x='1' + '+ 1' * 400_000)", "ParseError", "characters"),
])  # fmt: skip
def test_bad_input_is_refused(frames: nearly.Session, code: str, kind: str, message: str) -> None:
    names = {"db": frames, "nearly": nearly, "lines": frames.table("lines"), "orders": frames.table("orders")}
    with pytest.raises(nearly.NearlyError) as caught:
        eval(f"{code}.get_final()", {}, names)
    assert type(caught.value).__name__ == kind, caught.value
    assert message in str(caught.value)
