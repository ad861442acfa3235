"""Plans as SQL: inner joins that follow each other are one FROM, so that an engine may choose their order."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from nearly.plan.nodes import Input, Scan
from nearly.plan.render import NATIVE, SPARK, Dialect, render
from tests.rewrite import shop

THREE = "from event e, visit v, other o where e.k = v.vk and o.ok = v.vk"
CHAINS = (
    f"select count(*) as n {THREE}",
    f"select e.v, v.w, o.z {THREE} and e.k + o.z > 10 order by 1, 3",
    f"select v.w, sum(e.v) as s {THREE} group by v.w having sum(e.v) > 1",
)


def _named(leaf: Scan | Input) -> exp.Expr:
    return exp.to_table(leaf.table if isinstance(leaf, Scan) else leaf.source)


@pytest.mark.parametrize("dialect", [NATIVE, SPARK], ids=lambda each: each.name)
@pytest.mark.parametrize("text", CHAINS)
def test_joins_that_follow_each_other_are_one_from(text: str, dialect: Dialect) -> None:
    tree = sqlglot.parse_one(render(shop.planned(text), dialect, _named), dialect=dialect.name)
    most = max(len(each.args.get("joins") or ()) for each in tree.find_all(exp.Select))
    assert most == 2, tree.sql(pretty=True)


def test_a_join_that_is_used_twice_is_computed_once() -> None:
    text = (
        "with j as (select e.k, e.v, v.w from event e join visit v on e.k = v.vk) "
        "select count(*) as n from (select w, sum(v) as s from j group by w) a join (select w, max(v) as m from j group by w) b "
        "on a.w = b.w join other o on o.z = a.w"
    )
    sql = render(shop.planned(text), NATIVE, _named)
    assert sql.count("event") == 1, sql
