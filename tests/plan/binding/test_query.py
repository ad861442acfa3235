"""Syntax trees to plans: the forms that text alone does not show. What queries mean is checked by the corpus, against Spark."""

from __future__ import annotations

import pytest

from nearly.errors import NearlyError, SchemaError, UnknownName, Unsupported
from nearly.plan.binding.query import bind
from nearly.plan.explain import explain
from nearly.plan.nodes import BoundQuery, GroupBy, Join, Plan, Scan
from nearly.plan.syntax.parse import parse_query
from tests.fixtures import tables


def query(text: str) -> BoundQuery:
    return bind(parse_query(text), tables.schema)


def only(plan: Plan, kind: type[Plan]) -> Plan:
    (found,) = [node for node in plan.walk() if isinstance(node, kind)]
    return found


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("select * from pair", ("a", "b")),
        ("select A, b as B from pair", ("A", "B")),
        ("select a, a from pair", ("a", "a")),
        ("select a + 1, sum(b), count(*) from pair group by a", ("(a + 1)", "sum(b)", "count(1)")),
        ("select * except (a) from pair", ("b",)),
        ("select * from pair join full_pair using (a)", ("a", "b", "c")),
        ("select * from pair natural join full_pair", ("a", "b", "c")),
        ("select x from (select a from pair) as t(x)", ("x",)),
        ("values (1, 'a')", ("col1", "col2")),
        ("select a as l from pair union select c as r from full_pair", ("l",)),
    ],
)
def test_names_of_the_result(text: str, names: tuple[str, ...]) -> None:
    found = query(text)
    assert found.names == names
    assert not found.unnamed


@pytest.mark.parametrize(
    "text",
    [
        "select upper(v) from one",
        "select * from (select upper(v) from one) t",
        "with t as (select upper(v) from one) select * from t",
        "select upper(v) from one union all select v from empty",
    ],
)
def test_names_that_only_spark_knows_are_asked_for(text: str) -> None:
    assert query(text).unnamed


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("select a + 1, a / 2, a div 2, a * 1.5 from pair", ("int", "double", "bigint", "decimal(13,1)")),
        ("select sum(a), avg(a), count(*), max(a) from pair", ("bigint", "double", "bigint", "int")),
        ("select sum(salary), avg(salary) from people", ("decimal(19,2)", "decimal(13,6)")),
        ("select a from pair union all select c from full_pair", ("bigint",)),
        ("select coalesce(a, 1.5), case when a = 1 then 1 else 2.25 end from pair", ("decimal(11,1)", "decimal(12,2)")),
        ("select born + interval 1 day, born + interval 1 hour from people", ("date", "timestamp")),
        (
            "select rank() over (order by a), sum(a) over (), percent_rank() over (order by a) from pair",
            ("int", "bigint", "double"),
        ),
        ("select null, 1, 3000000000, 1.50, 1e0", ("void", "int", "bigint", "decimal(3,2)", "double")),
    ],
)
def test_types_of_the_result(text: str, types: tuple[str, ...]) -> None:
    assert tuple(str(type_) for type_ in query(text).types) == types


def test_column_names_are_unique_in_the_plan() -> None:
    plan = query("with t as (select a from pair) select x.a, y.a from t x join t y on x.a = y.a").plan
    join = only(plan, Join)
    assert isinstance(join, Join)
    assert not join.left.names & join.right.names


def test_repeated_aggregates_are_computed_once() -> None:
    node = only(query("select sum(a), sum(a) + 1 from pair having sum(a) > 0 order by sum(a)").plan, GroupBy)
    assert isinstance(node, GroupBy)
    assert len(node.aggregates) == 1


def test_scans_know_which_columns_hold_no_null() -> None:
    node = only(query("select * from full_pair").plan, Scan)
    assert isinstance(node, Scan)
    assert not any(field.nullable for field in node.fields)


def test_plain_group_keys_keep_their_names() -> None:
    """References from subqueries above the grouping still mean them."""
    text = "select dept from people p group by dept having exists (select 1 from dept d where d.dept = p.dept)"
    assert "Aggregate by [dept_3]" in explain(query(text).plan)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("select sum(a) over (w order by b) from pair window w as (partition by a)", Unsupported, "window with order"),
        ("select p.* from people p join dept using (dept)", Unsupported, "USING"),
        ("select a from pair order by rank() over (order by a)", Unsupported, "not selected"),
        ("select a from pair p order by (select count(*) from full_pair f where f.a = p.a)", Unsupported, "correlated"),
        ("select rank() over (partition by a) from pair", Unsupported, "without ORDER BY"),
        ("select grouping_id() from pair group by a, rollup (b)", Unsupported, "grouping_id"),
        ("select a from pair group by a, rollup (b), rollup (b)", Unsupported, "repeated grouping sets"),
        ("select a from pair tablesample (10 percent)", Unsupported, "sample"),
        ("select a from pair where null", Unsupported, "NULL"),
        ("select a from pair where b like any ('x', 'y')", Unsupported, "any"),
        ("select distinct a from pair order by b", Unsupported, "not selected"),
        ("select a from pair limit 1 + 1", Unsupported, "LIMIT"),
        ("select t.a.b from pair t", Unsupported, "db"),
        ("select first_value(a) ignore nulls over (order by b) from pair", Unsupported, "ignorenulls"),
        ("select a from pair sort by a", Unsupported, "sort"),
        ("select sum(a) from pair group by sum(a)", SchemaError, "grouping key"),
        ("select a.x from pair a", UnknownName, "unknown column 'x'"),
    ],
)
def test_what_is_not_planned_says_why(text: str, kind: type[NearlyError], message: str) -> None:
    with pytest.raises(kind, match=message):
        query(text)
