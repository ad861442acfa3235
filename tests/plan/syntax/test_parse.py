"""Text to syntax trees: what is kept as written, and what the parser of another dialect would have changed."""

from __future__ import annotations

import sys

import pytest
from sqlglot import exp

from nearly.errors import ParseError, Unsupported
from nearly.plan.syntax.parse import MAX_CHARACTERS, check_query, parse_query
from nearly.plan.syntax.words import MAX_DEPTH


def only_item(text: str) -> exp.Expression:
    (item,) = parse_query(f"select {text} from t").expressions
    return item


@pytest.mark.parametrize(
    "name",
    ["sum", "nvl", "percentile", "initcap", "chr", "decode", "max_by", "date_add", "datediff", "log", "concat", "if_such_existed"],
)
def test_functions_keep_their_names(name: str) -> None:
    item = only_item(f"{name}(a, b)")
    assert isinstance(item, exp.Anonymous)
    assert item.this == name
    assert len(item.expressions) == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it''s'", "it's"),
        ('"say ""so"""', 'say "so"'),
        (r"'tab\tend'", "tab\tend"),
        (r"'it\'s'", "it's"),
        (r"'a\%b'", r"a\%b"),
        (r"'\\'", "\\"),
        (r"'\u0041\101'", "AA"),
        ("''", ""),
    ],
)
def test_strings_as_spark_reads_them(text: str, value: str) -> None:
    assert only_item(text).this == value


def test_adjacent_strings_are_one() -> None:
    assert isinstance(only_item("'a' 'b'"), exp.Concat)


def test_raw_strings_keep_backslashes() -> None:
    item = only_item(r"r'a\tb'")
    assert isinstance(item, exp.RawString)
    assert item.this == r"a\tb"


def test_hints_are_dropped_with_the_names_in_them() -> None:
    tree = parse_query("select /*+ BROADCAST(d), REPARTITION(3) */ p.a from pair p join dept d on true")
    assert tree.args.get("hint") is None
    assert {table.name for table in tree.find_all(exp.Table)} == {"pair", "dept"}


@pytest.mark.parametrize("text", ["select 1;", " select 1 ; ", "-- first\nselect 1 -- last", "/* a /* b */ c */ select 1"])
def test_comments_and_a_last_semicolon_are_no_statements(text: str) -> None:
    assert isinstance(parse_query(text), exp.Select)


def test_nesting_up_to_the_limit() -> None:
    deep = MAX_DEPTH
    assert isinstance(parse_query("select " + "(" * deep + "1" + ")" * deep), exp.Select)


@pytest.mark.parametrize("text", ["x" * (MAX_CHARACTERS + 1), "select " + "(" * 2000, "select " + "case when a then " * 3000])
def test_monsters_are_refused_quickly(text: str) -> None:
    with pytest.raises(ParseError):
        parse_query(text)


@pytest.mark.parametrize(
    "text",
    [
        "select `reflect`('a', 'b')",
        "select system.builtin.reflect('a', 'b')",
        "select transform(array('x'), v -> reflect('a', v))",
        "from t |> select reflect('a', 'b')",
        "select a from t order by java_method('a', 'b')",
        "select * from identifier('json.`/etc/passwd`')",
        "select * from t, lateral (select * from text.`/etc/passwd`)",
        "select * from (select transform(a) using 'sh' from t)",
    ],
)
def test_ways_around_the_catalog_are_refused(text: str) -> None:
    with pytest.raises(Unsupported, match="refused"):
        parse_query(text)


@pytest.mark.parametrize(
    "text",
    ["with x as (insert into t values (1)) select * from x", "from t insert into u select a", "begin select 1; end"],
)
def test_statements_inside_queries_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_query(text)


def test_the_recursion_limit_is_given_back() -> None:
    before = sys.getrecursionlimit()
    parse_query("select " + "(" * 100 + "1" + ")" * 100)
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize(
    "text",
    ["select , a from t", "select a from t order by , a", "as select 1", "with as t (select 1) select 1",
     "select count(* as) from t", "select as + 1 from t", "select a as from t", "select a, from t",
     "select a from t join u on order by a"],
)  # fmt: skip
def test_a_comma_or_an_as_stands_between_two_things(text: str) -> None:
    with pytest.raises(ParseError, match=r"nothing stands (before|after) the (comma|AS|ON)"):
        parse_query(text)


@pytest.mark.parametrize(
    "text",
    ["select case when a null else 1 end from t", "select a from t where a between 1 2", "select a from .. t",
     "select p.a1.5BD from t p"],
)  # fmt: skip
def test_what_the_parser_passes_over_is_left_to_spark(text: str) -> None:
    assert check_query(text).doubt is not None


@pytest.mark.parametrize(
    "text",
    ["select +1, -a + 2, .5, 1. from t", "select a, b from t, u where a between 1 and 2 and b",
     "select sum(a) over (rows 2 preceding) from t",
     "select case a when 1 then 2 end, t.a, substr(b, 1, 2) from s.t union all select 1, 2, 3"],
)  # fmt: skip
def test_other_ways_of_writing_are_not_in_doubt(text: str) -> None:
    assert check_query(text).doubt is None


def test_a_plus_sign_stands_before_a_value() -> None:
    assert parse_query("select +a, + + 1, +(select 1) from t") is not None
    for text in ("select + from t", "select a from t where a = + union all select 1"):
        with pytest.raises(ParseError, match="expected a value after"):
            parse_query(text)


@pytest.mark.parametrize("text", ["select a as limit from t", "select limit, a from t"])
def test_a_column_may_be_named_like_a_clause(text: str) -> None:
    assert check_query(text).doubt is None


def test_group_by_all_takes_no_keys() -> None:
    assert parse_query("select a, count(*) from t group by all") is not None
    with pytest.raises(ParseError, match="GROUP BY ALL"):
        parse_query("select a, count(*) from t group by all all")
