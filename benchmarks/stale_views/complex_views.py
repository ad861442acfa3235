"""E-S6 and E-S7: queries of TPC-H as views, random questions to them, and an index of outliers in skewed data."""

from __future__ import annotations

import random
import statistics
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.report import Record
from benchmarks.stale_views.data import Shop
from benchmarks.stale_views.measure import DRAWS, Asked, Errors, asked, cleaning_seconds, judged, ratio, refreshing_seconds, samples

REVENUE = "sum(l_extendedprice * (1 - l_discount))"
VIEWS = {
    "v3": f"""select l_orderkey, o_orderdate, o_shippriority, {REVENUE} as revenue
        from lineitem join orders on l_orderkey = o_orderkey join customer on o_custkey = c_custkey
        where c_mktsegment <> 'BUILDING' group by 1, 2, 3""",
    "v4": """select o_orderkey, o_orderpriority, count(*) as late from orders join lineitem on o_orderkey = l_orderkey
        where l_commitdate < l_receiptdate group by 1, 2""",
    "v5": f"""select s_suppkey, n_nationkey, {REVENUE} as revenue from lineitem join orders on l_orderkey = o_orderkey
        join supplier on l_suppkey = s_suppkey join nation on s_nationkey = n_nationkey group by 1, 2""",
    "v9": """select l_partkey, n_nationkey, sum(l_extendedprice * (1 - l_discount) - l_quantity) as profit from lineitem
        join supplier on l_suppkey = s_suppkey join nation on s_nationkey = n_nationkey group by 1, 2""",
    "v10": f"""select c_custkey, c_nationkey, {REVENUE} as revenue from lineitem join orders on l_orderkey = o_orderkey
        join customer on o_custkey = c_custkey where l_returnflag = 'R' group by 1, 2""",
    "v13": """select c_custkey, count(o_orderkey) as orders from customer left join orders on c_custkey = o_custkey
        and o_orderpriority <> '1-URGENT' group by 1""",
    "v15": f"select l_suppkey, {REVENUE} as revenue from lineitem where l_shipdate >= date '1995-01-01' group by 1",
    "v18": """select o_orderkey, o_custkey, sum(l_quantity) as quantity from orders join lineitem on o_orderkey = l_orderkey
        group by 1, 2""",
    "v21": """select s_suppkey, count(*) as waiting from supplier join lineitem on s_suppkey = l_suppkey
        join orders on o_orderkey = l_orderkey where l_receiptdate > l_commitdate and exists (select 1 from lineitem b
        where b.l_orderkey = lineitem.l_orderkey and b.l_suppkey <> lineitem.l_suppkey) group by 1""",
    "v22": """select substring(c_phone, 1, 2) as code, c_custkey % 997 as part, count(*) as customers, sum(c_acctbal) as balance
        from customer join orders on c_custkey = o_custkey group by substring(c_phone, 1, 2), c_custkey % 997""",
}
ASKED = {
    "v3": ("l_orderkey", "revenue"), "v4": ("o_orderkey", "late"), "v5": ("s_suppkey", "revenue"), "v9": ("l_partkey", "profit"),
    "v10": ("c_custkey", "revenue"), "v13": ("c_custkey", "orders"), "v15": ("l_suppkey", "revenue"),
    "v18": ("o_orderkey", "quantity"), "v21": ("s_suppkey", "waiting"), "v22": ("part", "balance"),
}  # fmt: skip
"""The attribute that questions select by, and the one they aggregate."""


def question(view: str, choose: random.Random, most: int) -> str:
    """A sum, average or count over a random part of the view."""
    attribute, value = ASKED[view]
    low = choose.randint(0, max(most * 2 // 3, 1))
    function = choose.choice((f"sum({value})", f"avg({value})", "count(*)"))
    return f"select {function} as x from {view} where {attribute} between {low} and {low + max(most // 3, 1)}"


def run(source: dict[str, Path], directory: Path, queries: int, update: float) -> tuple[list[Record], Record]:
    """Every view: time of refreshing and of cleaning, and errors."""
    shop = Shop.open(source, directory, 2.0)
    rows: list[Record] = []
    whole, speedups = Errors(), list[float]()
    try:
        for name, text in VIEWS.items():
            shop.db.create_view(name, text, sample=0.1)
        shop.change(update)
        for name in VIEWS:
            found, errors, speedup = _view(shop, name, queries)
            rows.append(found)
            speedups.append(speedup)
            whole.add(errors)
    finally:
        shop.close()
    summary = {
        "complex_speedup": statistics.median(speedups),
        "complex_coverage": whole.held / max(whole.given, 1),
        "complex_withheld": whole.withheld / max(whole.given + whole.withheld, 1),
    }
    return rows, summary


def _view(shop: Shop, name: str, queries: int) -> tuple[Record, Errors, float]:
    cleaning = cleaning_seconds(shop.db, name, 0.1)
    questions = _questions(shop, name, queries)
    refreshing = refreshing_seconds(shop.db, name)
    errors = Errors()
    for each in questions:
        errors.add(judged(each, shop.exact(each.text)))
    row: dict[str, float | str] = {"what": f"{name} as a view", "seconds": cleaning, "refresh / clean": ratio(refreshing, cleaning)}
    return row | {f"{method} %": 100 * errors.median(method) for method in errors.of}, errors, ratio(refreshing, cleaning)


def _questions(shop: Shop, name: str, queries: int) -> list[Asked]:
    choose = random.Random(name)
    (most,) = shop.exact(f"select max({ASKED[name][0]}) as m from {name}").to_pylist()
    texts = [question(name, choose, int(most["m"] or 1)) for _ in range(queries)]
    view, draws = shop.db.view(name), min(queries, DRAWS)
    return [asked(view, text, 0, 0.1) for number in samples(shop.db, name, draws) for text in texts[number::DRAWS]]


def outliers(source: dict[str, Path], directory: Path, queries: int, update: float) -> tuple[list[Record], Record]:
    """The error at the third quartile of questions to a view of revenues, without and with an index of a hundred prices."""
    rows: list[Record] = []
    gains = {}
    for z in (1.0, 2.0, 3.0, 4.0):
        shop = Shop.open(source, directory / f"z{z:g}", z, ("lineitem", "orders", "customer"))
        try:
            shop.db.create_view("v3", VIEWS["v3"], sample=0.1)
            shop.change(update)
            truths: dict[str, pa.Table] = {}
            without, plain = _third_quartile(shop, queries, None, truths)
            sizes = {size: _third_quartile(shop, queries, size, truths) for size in (10, 100, 1000)}
        finally:
            shop.close()
        gains[z] = ratio(without, sizes[100][0])
        row: dict[str, float | str] = {"what": f"outliers at z = {z:g}", "seconds": plain, "auto %": 100 * without}
        for size, (error, took) in sizes.items():
            row |= {f"{size} %": 100 * error, f"{size} s": took}
        rows.append(row)
    return rows, {"outlier_gain": gains[4.0]}


def _third_quartile(shop: Shop, queries: int, size: int | None, truths: dict[str, pa.Table]) -> tuple[float, float]:
    view = shop.db.view("v3")
    if size is None:
        shop.db._views.samples.index("v3", None)
    else:
        view.index_outliers("lineitem", "l_extendedprice", size)
    took = cleaning_seconds(shop.db, "v3", 0.1, 1)
    errors = []
    for each in _questions(shop, "v3", queries):
        if each.text not in truths:
            truths[each.text] = shop.exact(each.text.replace("from v3", f"from ({VIEWS['v3']}) v3"))
        errors += judged(each, truths[each.text]).of["auto"]
    return float(np.quantile(errors, 0.75)) if errors else 0.0, took
