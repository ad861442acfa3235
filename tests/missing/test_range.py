"""Ranges through the session: the seed's examples, groups, witnesses, explanations, and what is refused."""

from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import nearly
from nearly import Constraint
from nearly.missing.contingency import Contingency
from tests.missing.conftest import SALES

NOVEMBER_11 = "utc >= '2024-11-11' and utc < '2024-11-12'"
NOVEMBER_12 = "utc >= '2024-11-12' and utc < '2024-11-13'"
BOTH_DAYS = "utc >= '2024-11-11' and utc < '2024-11-13'"
TOTAL = f"select sum(price) total from sales where {BOTH_DAYS}"


def ends(answer: nearly.Answer, column: int = 0, row: int = 0) -> tuple[Any, Any]:
    return tuple(table.column(column)[row].as_py() for table in (answer.hard_low, answer.hard_high))


def test_disjoint_example_of_the_seed(db: nearly.Session) -> None:
    db.missing("sales", [
        Constraint(NOVEMBER_11, price=(0.99, 129.99), rows=(50, 100)),
        Constraint(NOVEMBER_12, price=(0.99, 149.99), rows=(50, 100)),
    ])  # fmt: skip
    assert ends(db.sql(TOTAL).range()) == (Decimal("99.00"), Decimal("27998.00"))


def test_overlapping_example_of_the_seed(db: nearly.Session) -> None:
    db.missing("sales", [
        Constraint(NOVEMBER_11, price=(0.99, 129.99), rows=(50, 100)),
        Constraint(BOTH_DAYS, price=(0.99, 149.99), rows=(75, 125)),
    ])  # fmt: skip
    answer = db.sql(TOTAL).range()
    assert ends(answer) == (Decimal("74.25"), Decimal("17748.75"))
    assert (answer.stats["tight"], answer.source, answer.exact) == (True, "missing", False)


def test_all_aggregates_with_certain_rows(db: nearly.Session) -> None:
    db.missing("sales", [Constraint("branch = 'Chicago'", price=(0, 149.99), rows=(0, 5))])
    text = "select sum(price), count(*), count(quantity), avg(price), min(price), max(price) from sales"
    answer = db.sql(text).range()
    assert [ends(answer, column) for column in range(6)] == [
        (Decimal("38.99"), Decimal("788.94")),
        (4, 9),
        (3, 8),
        (Decimal("4.332222"), Decimal("87.660000")),
        (Decimal("0.00"), Decimal("3.02")),
        (Decimal("18.99"), Decimal("149.99")),
    ]
    assert answer.table.to_pylist() == db.sql(text).exact().table.to_pylist()
    assert answer.table.schema == answer.hard_low.schema == answer.high.schema


def test_groups_of_certain_and_of_missing_rows(db: nearly.Session) -> None:
    db.missing("sales", [
        Constraint("branch = 'Chicago'", price=(1, 10), rows=(1, 5)),
        Constraint("branch in ('Boston', 'Erie')", price=(2, 3), rows=(0, 2)),
        Constraint("branch = 'Nowhere'", price=(2, 3), rows=(0, 0)),
    ])  # fmt: skip
    answer = db.sql("select branch, count(*) n, sum(price) s from sales group by branch order by branch").range()
    found = {
        branch: (low, high, total)
        for branch, low, high, total in zip(
            *(table.column(name).to_pylist() for table, name in (
                (answer.table, "branch"), (answer.hard_low, "n"), (answer.hard_high, "n"), (answer.hard_high, "s")
            )), strict=True,
        )
    }  # fmt: skip
    assert found == {
        "Chicago": (3, 7, Decimal("66.98")), "New York": (1, 1, Decimal("3.02")), "Trenton": (1, 1, Decimal("18.99")),
        "Boston": (0, 2, Decimal("6.00")), "Erie": (0, 2, Decimal("6.00")),
    }  # fmt: skip
    assert answer.table.column("n").to_pylist()[-2:] == [None, None]
    assert "other_groups" not in answer.stats


def test_groups_that_cannot_be_listed_are_told(db: nearly.Session) -> None:
    db.missing("sales", [Constraint("branch <> 'Chicago'", price=(0, 10), rows=(0, 5))])
    answer = db.sql("select branch, sum(price) s from sales group by branch").range()
    assert answer.stats["other_groups"] == {1: (Decimal("0.00"), Decimal("50.00"))}
    assert not answer.exact


def asked(text: str, tables: dict[str, pa.Table]) -> Any:
    """One value of a query over Arrow tables."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.execute(text).fetchall()[0][0]


AGGREGATES = ("sum(price)", "avg(price)", "count(quantity)", "max(price)", "min(day)", "sum(quantity * price)")


def test_witnesses_reach_the_ends(db: nearly.Session) -> None:
    """The rows of a witness, added to the table, give exactly the end of the range; and they satisfy the constraints."""
    constraints = [
        Constraint("branch = 'Chicago'", price=(1, 9.5), quantity=(0, 3), rows=(2, 5)),
        Constraint("day >= '2024-11-03' and day <= '2024-11-20'", quantity=(1, 4), price=(-2, 12), rows=(1, 4)),
        Constraint("quantity > 2 and day >= '2024-11-01' and day <= '2024-12-24'", price=(0, 20), rows=(0, 2)),
    ]
    db.missing("sales", constraints)
    answer = db.sql(f"select {', '.join(AGGREGATES)} from sales where branch <> 'Erie'").range()
    for column, aggregate in enumerate(AGGREGATES):
        for end in ("low", "high"):
            witness = answer.witness(end, column=column).cast(SALES.schema)
            whole = {"everything": pa.concat_tables([SALES, witness]), "witness": witness}
            reached = asked(f"select {aggregate} from everything where branch <> 'Erie'", whole)
            expected = ends(answer, column)[end == "high"]
            assert reached == (pytest.approx(float(expected)) if aggregate.startswith("avg") else expected)
            for constraint in constraints:
                count = asked(f"select count(*) from witness where {constraint.predicate}", whole)
                assert constraint.rows[0] <= count <= constraint.rows[1]
            counted = answer.witness(end, column=column, counted=True)
            assert sum(counted["rows"].to_pylist()) == witness.num_rows


def test_explanation_tells_what_to_find_out(db: nearly.Session) -> None:
    db.missing("sales", [
        Constraint(NOVEMBER_11, price=(0.99, 129.99), rows=(50, 100), name="first"),
        Constraint(BOTH_DAYS, price=(0.99, 149.99), rows=(75, 125), name="both"),
    ])  # fmt: skip
    explanation = db.sql(TOTAL).range().explain()
    prices = {(each.constraint, each.part, each.end): each.shrink for each in explanation.bindings}
    assert prices["both", "rows at most 125", "high"] == pytest.approx(149.99)
    assert prices["first", "rows at least 50", "high"] == pytest.approx(20)
    assert prices["both", "price at most 149.99", "high"] == pytest.approx(75)
    assert prices["both", "rows at least 75", "low"] == pytest.approx(0.99)
    assert "149.99 per row" in str(explanation)


def test_forgetting_and_what_exact_says(db: nearly.Session) -> None:
    db.missing("sales", [Constraint(price=(0, 1), rows=(0, 5))])
    assert db.sql("select count(*) n from sales").exact().table["n"][0].as_py() == 4
    assert ends(db.sql("select count(*) n from sales").range()) == (4, 9)
    assert db.missing("sales", []) is None
    with pytest.raises(nearly.ConstraintError, match="nothing is stated"):
        db.sql("select count(*) n from sales").range()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("select price from sales", nearly.Unsupported, "only aggregates"),
        ("select median(price) from sales", nearly.Unsupported, "range of"),
        ("select count(distinct branch) from sales", nearly.Unsupported, "DISTINCT"),
        ("select sum(price) / count(*) from sales", nearly.Unsupported, "expression over aggregates"),
        ("select sum(price / 2) from sales", nearly.Unsupported, "range of"),
        ("select max(upper(branch)) from sales", nearly.Unsupported, "range of"),
        ("select branch, sum(price) from sales group by branch having sum(price) > 3", nearly.Unsupported, "HAVING"),
        ("select branch, sum(price) from sales group by branch limit 1", nearly.Unsupported, "LIMIT"),
        ("select branch, sum(price) from sales group by rollup (branch)", nearly.Unsupported, "ROLLUP"),
        ("select sum(price) from sales group by branch", nearly.Unsupported, "grouping columns"),
        ("select upper(branch) u, sum(price) from sales group by upper(branch)", nearly.Unsupported, "expression"),
        ("select sum(price) from sales where price % 2 = 1", nearly.Unsupported, "cannot be decided"),
        ("select sum(price) from sales where price > (select 1)", nearly.Unsupported, "subquery"),
        ("select sum(price) from sales union select 1", nearly.Unsupported, "only aggregates"),
        ("select sum(prise) from sales", nearly.UnknownName, "price"),
        ("select sum(price) from", nearly.ParseError, ""),
    ],
)
def test_queries_without_a_range_say_why(db: nearly.Session, text: str, error: type[Exception], message: str) -> None:
    db.missing("sales", [Constraint(price=(0, 1), rows=(0, 5))])
    with pytest.raises(error, match=message or "query"):
        db.sql(text).range()


def test_empty_table_and_no_limits(db: nearly.Session) -> None:
    """Nothing is there: sums start at 0, and averages and extremes are those of the missing rows, if any."""
    text = "select sum(price), count(*), avg(price), min(day), max(weight), sum(weight) from nothing"
    db.missing("nothing", [Constraint(price=(2, 5), day=("2024-01-01", "2024-01-31"), rows=(0, 3))])
    assert [ends(db.sql(text).range(), column) for column in range(4)] == [
        (Decimal("0.00"), Decimal("15.00")), (0, 3), (Decimal("2.000000"), Decimal("5.000000")),
        (dt.date(2024, 1, 1), dt.date(2024, 1, 31)),
    ]  # fmt: skip
    assert [ends(db.sql(text).range(), column) for column in (4, 5)] == [(None, None), (None, None)], "no limit is stated"
    db.missing("nothing", [Constraint(price=(2, 5))])
    assert [ends(db.sql(text).range(), column) for column in (0, 1)] == [(Decimal("0.00"), None), (0, None)]
    db.missing("nothing", [Constraint(rows=0)])
    answer = db.sql(text).range()
    assert [ends(answer, column) for column in range(4)] == [(Decimal("0.00"), Decimal("0.00")), (0, 0), (None, None), (None, None)]


def test_nulls_count_as_in_sql(db: nearly.Session) -> None:
    """A nullable range: such a row may add nothing to a sum or an average."""
    db.missing("sales", [Constraint(quantity=(2, 5, None), rows=(2, 2))])
    answer = db.sql("select sum(quantity) s, count(quantity) c, avg(quantity) a, count(*) n from sales").range()
    assert [ends(answer, column) for column in range(4)] == [
        (7, 17),
        (3, 5),
        (pytest.approx(11 / 5), pytest.approx(17 / 5)),
        (6, 6),
    ]


def test_filters_subqueries_in_from_and_case_of_names(db: nearly.Session) -> None:
    db.missing(
        "SALES", [Constraint("BRANCH = 'Chicago'", Price=(0, 10), rows=(0, 4)), Constraint("branch = 'Erie'", price=5, rows=1)]
    )
    text = """
        with s as (select price * 2 as double_price, branch b from sales where branch <> 'Trenton')
        select sum(double_price) s, count(*) filter (where b = 'Erie') e, max(double_price) filter (where b <> 'Erie') m from s
    """
    answer = db.sql(text).range()
    assert [ends(answer, column) for column in range(3)] == [(Decimal("50.00"), Decimal("130.00")), (1, 1), (Decimal("20.54"),) * 2]


def test_a_set_without_solution_is_refused_and_the_old_one_stays(db: nearly.Session) -> None:
    db.missing("sales", [Constraint(price=(0, 1), rows=(0, 5))])
    with pytest.raises(nearly.ConstraintError, match="these 2 constraints"):
        db.missing("sales", [Constraint(rows=(0, 5)), Constraint("branch = 'x'", rows=(6, 9))])
    assert ends(db.sql("select count(*) from sales").range()) == (4, 9)


@pytest.mark.parametrize("given", [3, {"a": 1}, ["branch = 'x'"], [None]])
def test_what_is_no_constraint(db: nearly.Session, given: Any) -> None:
    with pytest.raises(nearly.SchemaError, match="onstraint"):
        db.missing("sales", given)


def test_unknown_table_and_wrong_arguments(db: nearly.Session) -> None:
    with pytest.raises(nearly.UnknownName, match="sales"):
        db.missing("sale", [])
    db.missing("sales", [Constraint(price=(0, 1), rows=(0, 5))])
    answer = db.sql("select branch, sum(price) s from sales group by branch").range()
    for arguments, error in (
        ({"end": "middle"}, nearly.SchemaError), ({"row": 99}, nearly.SchemaError), ({"column": "branch"}, nearly.SchemaError),
        ({"column": "t"}, nearly.UnknownName), ({"column": 7}, nearly.UnknownName),
    ):  # fmt: skip
        with pytest.raises(error):
            answer.witness(**arguments)  # type: ignore[arg-type]
    with pytest.raises(nearly.SchemaError, match="seconds"):
        db.sql("select sum(price) from sales").range(seconds=-1)
    with pytest.raises(nearly.Unsupported, match="range"):
        db.sql("select sum(price) from sales").exact().witness("high")


def test_gaps_and_history_of_a_registered_table(db: nearly.Session) -> None:
    stated = db.missing("sales", [Constraint("branch = 'Chicago'", price=(0, 8), rows=(0, 2))])
    assert stated is not None
    assert [each.kind for each in stated.check("sales")] == ["values", "closure"]
    assert [each.kind for each in stated.constraints.check(db.table("sales"))] == ["values", "closure"]
    (gap,) = stated.gaps("branch in ('Chicago', 'Erie')")
    assert (gap.where, dict(gap.example)) == ("branch = 'Erie'", {"branch": "Erie"})


def test_ranges_at_the_same_time(db: nearly.Session) -> None:
    db.missing("sales", [Constraint("branch = 'Chicago'", price=(0, 10), rows=(0, 4)), Constraint("price < 5", rows=(1, 9))])
    texts = [f"select sum(price) s from sales where price >= {low}" for low in range(-3, 5)]
    alone = [ends(db.sql(text).range()) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda text: ends(db.sql(text).range()), texts))
    assert together == alone


def test_progressive_bounds_of_both_kinds_are_combined(db: nearly.Session) -> None:
    """An early answer with an interval and hard bounds for the rows that are there: missing rows widen each of them."""
    stated = db.missing("sales", [Constraint(price=(1, 10), rows=(1, 2))])
    assert stated is not None
    names = ["s", "a", "nearly_piece_2", "nearly_piece_3"]

    def early(*values: Any) -> pa.Table:
        types = [pa.decimal128(20, 2), pa.decimal128(14, 6), pa.decimal128(20, 2), pa.int64()]
        return pa.table([pa.array([value], type_) for value, type_ in zip(values, types, strict=True)], names=names)

    known = early(Decimal(40), Decimal(10), Decimal(40), 4)
    certain = nearly.Answer(
        known, early(Decimal(30), Decimal(8), Decimal(30), 3), early(Decimal(50), Decimal(12), Decimal(50), 5),
        early(None, None, None, 1), early(Decimal(90), None, Decimal(90), 9), 0.5, False, 0.95, 0.25, "progressive",
    )  # fmt: skip
    text = "select sum(price) s, avg(price) a from sales"
    (answer,) = Contingency(stated.engine, {"sales": stated}).ranges(text, lambda _: iter([certain]))
    assert (answer.low["s"][0].as_py(), answer.high["s"][0].as_py()) == (Decimal("31.00"), Decimal("70.00"))
    assert (answer.hard_low["s"][0].as_py(), answer.hard_high["s"][0].as_py()) == (None, Decimal("110.00"))
    assert float(answer.low["a"][0].as_py()) == pytest.approx(32 / 7)
    assert float(answer.high["a"][0].as_py()) == pytest.approx(60 / 4)
    assert answer.hard_low["a"][0].as_py() is None
    assert (answer.progress, answer.exact, answer.confidence) == (0.5, False, 0.95)


def test_an_extreme_that_is_not_known_yet_is_no_bound(db: nearly.Session) -> None:
    """Early, the greatest price of the rows that are there may have no hard bound: then the range has no upper end."""
    stated = db.missing("sales", [Constraint(price=(1, 10), rows=(1, 2))])
    assert stated is not None
    value, unknown = (pa.table({"m": pa.array([each], pa.decimal128(10, 2))}) for each in (Decimal(7), None))
    early = nearly.Answer(value, value, value, unknown, unknown, 0.5, False, 0.95, 0.1, "progressive")
    contingency = Contingency(stated.engine, {"sales": stated})
    (answer,) = contingency.ranges("select max(price) m from sales", lambda _: iter([early]))
    assert (answer.high["m"][0].as_py(), ends(answer)) == (Decimal("10.00"), (Decimal("1.00"), None))
    (answer,) = contingency.ranges("select min(price) m from sales", lambda _: iter([early]))
    assert (answer.low["m"][0].as_py(), ends(answer)) == (Decimal("1.00"), (None, Decimal("10.00")))
