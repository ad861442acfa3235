"""Ranges through the session: the seed's examples, groups, witnesses, explanations, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import nearly
from nearly import Constraint
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
