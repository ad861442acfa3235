"""Random chains of operations, each step beside the SQL text that means the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

import nearly
from nearly.progressive.frame import Frame


@dataclass(frozen=True)
class Chain:
    """A frame and the query that must have the same rows; the columns are always g (text), n (bigint) and x (double)."""

    frame: Frame
    sql: str


Step = Callable[[nearly.Session, Chain], Chain]


def start(db: nearly.Session) -> Chain:
    frame = db.table("lines").map(g="größe", n="order_id", x="discount * quantity")
    return Chain(frame, 'select "größe" as g, order_id as n, discount * quantity as x from lines')


def filtered(predicate: str) -> Step:
    return lambda _db, c: Chain(c.frame.filter(predicate), f"select * from ({c.sql}) where {predicate}")


def mapped(n: str, x: str) -> Step:
    return lambda _db, c: Chain(c.frame.map("g", n=n, x=x), f"select g, {n} as n, {x} as x from ({c.sql})")


def aggregated(by: str, x: str, measure: Callable[[str], nearly.progressive.measures.Measure]) -> Step:
    """By g or n; the key that is gone comes back as a constant, so that chains stay of one shape."""
    other = {"g": "n", "n": "g"}[by]
    filler = {"g": "'all'", "n": "cast(7 as bigint)"}[other]
    return lambda _db, c: Chain(
        c.frame.agg(x=measure("x"), by=by).map("x", **{by: by, other: filler}).map("g", "n", x="cast(x as double)"),
        f"select {'g' if by == 'g' else filler} as g, {'n' if by == 'n' else filler} as n, cast(x as double) as x "
        f"from (select {by}, {x} as x from ({c.sql}) group by {by})",
    )


def joined(how: str) -> Step:
    """With the orders that are done, by n."""
    condition = "select order_id as n, customer from orders where status = 'done'"
    words = {"inner": "join", "left": "left join", "semi": "semi join", "anti": "anti join"}[how]
    kept = "n" if how in ("semi", "anti") else "coalesce(customer, -1)"

    def step(db: nearly.Session, c: Chain) -> Chain:
        done = db.table("orders").filter("status = 'done'").map("customer", n="order_id")
        frame = c.frame.join(done, on="n", how=how).map("g", "x", n=kept).select("g", "n", "x")
        return Chain(frame, f"select g, {kept} as n, x from ({c.sql}) l {words} ({condition}) r using (n)")

    return step


def united() -> Step:
    return lambda _db, c: Chain(
        c.frame.union(c.frame.filter("x > 2").select("x", "n", "g")),
        f"select * from ({c.sql}) union all select * from ({c.sql}) where x > 2",
    )


def topmost(count: int) -> Step:
    """A limit after an order that leaves no ties between different rows."""
    order = "order by x desc nulls last, n asc nulls first, g asc nulls first"
    return lambda _db, c: Chain(c.frame.sort("-x", "n", "g").limit(count), f"select * from ({c.sql}) {order} limit {count}")


STEPS = st.one_of(
    st.sampled_from(["x > 1.5", "n % 3 = 0", "g is not null and x < 2", "g = 'groß' or n < 500"]).map(filtered),
    st.sampled_from([("n", "x * 2"), ("n % 1000", "x"), ("n + 1", "case when g = 'klein' then x end")]).map(lambda p: mapped(*p)),
    st.sampled_from([
        ("g", "sum(x)", nearly.sum), ("n", "sum(x)", nearly.sum), ("g", "count(x)", nearly.count), ("n", "max(x)", nearly.max),
        ("g", "avg(x)", nearly.avg), ("g", "count(distinct x)", nearly.count_distinct), ("g", "median(x)", nearly.median),
        ("n", "min(x)", nearly.min), ("g", "stddev(x)", nearly.stddev), ("g", "var_samp(x)", nearly.var),
    ]).map(lambda p: aggregated(*p)),
    st.sampled_from(["inner", "left", "semi", "anti"]).map(joined),
    st.builds(united),
    st.integers(0, 40).map(topmost),
)  # fmt: skip
