"""E-S1 to E-S4: a view of lineitem joined with orders, what it costs to clean and to refresh it, and queries of TPC-H on it."""

from __future__ import annotations

import random
import statistics
from functools import partial
from pathlib import Path

from benchmarks.report import Record
from benchmarks.stale_views.data import Shop
from benchmarks.stale_views.measure import (
    DRAWS,
    Asked,
    Errors,
    asked,
    cleaning_seconds,
    judged,
    ratio,
    refreshing_seconds,
    samples,
    seconds,
)

VIEW = """select l_orderkey, l_linenumber, l_partkey, l_suppkey, l_quantity, l_extendedprice, l_discount, l_returnflag, l_shipdate,
    l_commitdate, l_receiptdate, l_shipmode, o_custkey, o_orderdate, o_orderpriority, o_orderstatus, o_shippriority
    from lineitem join orders on l_orderkey = o_orderkey"""
REVENUE = "sum(l_extendedprice * (1 - l_discount))"
SUPPLIERS = "joined join supplier on l_suppkey = s_suppkey join nation on s_nationkey = n_nationkey"
CUSTOMERS = "joined join customer on o_custkey = c_custkey"
QUERIES = {
    "q3": """select o_shippriority, {revenue} as r from joined
        where o_orderdate < date '{day}' and l_shipdate > date '{day}' group by 1""",
    "q4": """select o_orderpriority, count(*) as n from joined
        where o_orderdate >= date '{day}' and l_commitdate < l_receiptdate group by 1""",
    "q5": """select n_name, {revenue} as r from {customers} join nation on c_nationkey = n_nationkey
        where o_orderdate >= date '{day}' group by 1""",
    "q7": "select n_name, year(l_shipdate) as y, {revenue} as r from {suppliers} where l_shipdate > date '{day}' group by 1, 2",
    "q8": "select year(o_orderdate) as y, {revenue} as r from joined where o_orderdate > date '{day}' group by 1",
    "q9": """select n_name, sum(l_extendedprice * (1 - l_discount) - l_quantity) as p from {suppliers}
        where o_orderdate > date '{day}' group by 1""",
    "q10": """select c_nationkey, {revenue} as r from {customers}
        where l_returnflag = 'R' and o_orderdate > date '{day}' group by 1""",
    "q12": "select l_shipmode, count_if(o_orderpriority < '3') as high from joined where l_receiptdate > date '{day}' group by 1",
    "q14": """select sum(case when l_shipmode = 'AIR' then l_extendedprice * (1 - l_discount) else 0 end) as r from joined
        where l_shipdate > date '{day}'""",
    "q18": "select o_orderstatus, sum(l_quantity) as q from joined where l_quantity > {least} group by 1",
    "q19": "select {revenue} as r from joined where l_quantity between {least} and {least} + 20 and l_shipmode in ('AIR', 'MAIL')",
    "q21": """select n_name, count(*) as n from {suppliers}
        where l_receiptdate > l_commitdate and o_orderstatus = 'F' and o_orderdate > date '{day}' group by 1""",
}
KEYS = {"q7": 2, "q14": 0, "q19": 0}
SHARES = (0.05, 0.1, 0.2, 0.5)


def instance(name: str, choose: random.Random) -> str:
    """A query with random parameters."""
    day = f"199{choose.randint(3, 4)}-{choose.randint(1, 12):02d}-{choose.randint(1, 28):02d}"
    words = {"revenue": REVENUE, "suppliers": SUPPLIERS, "customers": CUSTOMERS, "day": day, "least": choose.randint(1, 25)}
    return QUERIES[name].format(**words)


def run(source: dict[str, Path], directory: Path, instances: int, updates: tuple[float, ...]) -> tuple[list[Record], Record]:
    """The maintenance of the view by share and by size of changes, and the errors of queries."""
    shop = Shop.open(source, directory, 2.0, ("lineitem", "orders", "customer", "supplier", "nation"))
    rows: list[Record] = []
    summary: dict[str, float] = {}
    try:
        shop.db.create_view("joined", VIEW, sample=0.1)
        for update in updates:
            shop.change(update)
            rows += _maintained(shop, update, instances, summary)
    finally:
        shop.close()
    return rows, summary


def _questions(shop: Shop, instances: int) -> list[tuple[str, Asked]]:
    """Answers to instances of every query, dealt out to several samples."""
    view, choose, found = shop.db.view("joined"), random.Random(0), []
    for number in samples(shop.db, "joined", min(instances, DRAWS)):
        for name in QUERIES:
            mine = range(number, instances, DRAWS)
            found += [(name, asked(view, instance(name, choose), KEYS.get(name, 1), 0.1)) for _ in mine]
    return found


def _sum_seconds(shop: Shop) -> dict[str, float]:
    """How long a sum takes by each method, of a tenth of the view that is clean."""
    view, text = shop.db.view("joined"), "select sum(l_quantity) as q from joined"
    for _ in samples(shop.db, "joined", 1):
        view.clean(0.1)
    return {method: statistics.median(seconds(partial(view.query, text, method)) for _ in range(3)) for method in ("corr", "aqp")}


def _maintained(shop: Shop, update: float, instances: int, summary: dict[str, float]) -> list[Record]:
    main = update == 0.1
    cleaning = {share: cleaning_seconds(shop.db, "joined", share) for share in (SHARES if main else (0.1,))}
    questions = _questions(shop, instances) if main else []
    sum_seconds = _sum_seconds(shop) if main else {}
    refreshing = refreshing_seconds(shop.db, "joined")
    found: list[Record] = [
        {"what": f"clean {share:.0%} at {update:.1%} changed", "seconds": took, "of refresh": ratio(refreshing, took)}
        for share, took in cleaning.items()
    ]
    found.append({"what": f"refresh at {update:.1%} changed", "seconds": refreshing})
    summary[f"speedup_at_{update * 100:g}"] = ratio(refreshing, cleaning[0.1])
    if not main:
        return found
    summary["speedup_10"] = ratio(refreshing, cleaning[0.1])
    found.append(
        {"what": "sum on the fresh view", "seconds": seconds(lambda: shop.exact("select sum(l_quantity) as q from joined"))}
    )
    found += [{"what": f"sum by {method}", "seconds": took} for method, took in sum_seconds.items()]
    whole = Errors()
    better: dict[str, list[float]] = {"stale": [], "aqp": []}
    for name in QUERIES:
        mine = Errors()
        for _, question in (each for each in questions if each[0] == name):
            mine.add(judged(question, shop.exact(question.text)))
        whole.add(mine)
        record: dict[str, float | str] = {"what": f"{name} on the view"}
        record |= {f"{method} %": 100 * mine.median(method) for method in mine.of}
        found.append(record)
        for other, ratios in better.items():
            ratios.append(ratio(mine.median(other), mine.median("corr")))
    summary["corr_vs_stale"], summary["corr_vs_aqp"] = (statistics.median(better[other]) for other in ("stale", "aqp"))
    summary["join_coverage"] = whole.held / max(whole.given, 1)
    summary["join_withheld"] = whole.withheld / max(whole.given + whole.withheld, 1)
    return found
