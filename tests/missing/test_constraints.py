"""The language of constraints: what it takes, what it refuses, and files of it."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import nearly
from nearly import Constraint, ConstraintSet
from nearly.algebra.boxes import EVERYWHERE
from nearly.missing.programmes.cells import TimeLimit, decompose
from nearly.missing.programmes.conflicts import minimal_conflict, refuse_conflicts
from nearly.missing.programmes.problem import Problem
from nearly.missing.statements.bound_set import bind_constraint, bind_constraints, region_of
from nearly.missing.statements.conditions import gaps
from nearly.plan.schema import SchemaColumn, TableSchema
from nearly.plan.types import BOOLEAN, DATE, DOUBLE, FLOAT, INT, LONG, STRING, TIMESTAMP, decimal, from_name
from nearly.plan.values.regions import RowSpace

COLUMNS = {
    "utc": TIMESTAMP, "day": DATE, "branch": STRING, "price": decimal(10, 2), "x": DOUBLE, "f": FLOAT, "n": INT,
    "big": LONG, "ok": BOOLEAN,    "list": from_name("array<int>"), "größe": INT,
}  # fmt: skip
SPACE = RowSpace.of(TableSchema("sales", tuple(SchemaColumn(name, type_) for name, type_ in COLUMNS.items())), "UTC")


def values(predicate: str, column: str) -> tuple[Any, ...]:
    """The ranges of a column that a predicate allows, as values, ends included."""
    (box,) = region_of(predicate, SPACE)
    domain = SPACE.domains[column]
    return tuple((domain.value(first), domain.value(end - 1)) for first, end in box.sides[column].pieces)


@pytest.mark.parametrize(
    ("predicate", "column", "expected"),
    [
        ("n > 3 and n < 7", "n", ((4, 6),)),
        ("n >= 2.5 and n <= 6.5", "n", ((3, 6),)),
        ("n = 2.5 or n = 3", "n", ((3, 3),)),
        ("n in (1, 2, 5)", "n", ((1, 2), (5, 5))),
        ("n <> 0 and n between -1 and 1", "n", ((-1, -1), (1, 1))),
        ("not (n < 3 or n >= 5)", "n", ((3, 4),)),
        ("2 * n + 1 <= 7 and n > 1", "n", ((2, 3),)),
        ("-n < -4 and n < 6", "n", ((5, 5),)),
        ("price < 10 and price >= 9.985", "price", ((Decimal("9.99"), Decimal("9.99")),)),
        ("price in (1, 2.5)", "price", ((Decimal("1.00"), Decimal("1.00")), (Decimal("2.50"), Decimal("2.50")))),
        ("x > 0 and x < 5e-324 or x = 0.1", "x", ((0.1, 0.1),)),
        ("x >= 1 and x < 2", "x", ((1.0, math.nextafter(2.0, 0)),)),
        ("f > 0.1 and f <= 0.5", "f", ((0.10000000149011612, 0.5),)),
        ("day >= '2024-02-28' and day < date '2024-03-01'", "day", ((dt.date(2024, 2, 28), dt.date(2024, 2, 29)),)),
        ("ok", "ok", ((True, True),)),
        ("not ok", "ok", ((False, False),)),
        ("utc = timestamp '2024-02-29 12:00:00'", "utc", ((dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC),) * 2,)),
    ],
)
def test_predicates_are_regions(predicate: str, column: str, expected: tuple[Any, ...]) -> None:
    assert values(predicate, column) == expected


def test_nan_is_greater_than_everything_as_in_spark() -> None:
    assert math.isnan(values("x > 1", "x")[-1][1])
    assert values("x <= 1e308", "x")[-1][1] == 1e308


def test_texts_have_ranges_and_prefixes() -> None:
    assert region_of("branch like 'Ch%'", SPACE) == region_of("branch >= 'Ch' and branch < 'Ci'", SPACE)
    assert region_of("branch like 'Erie'", SPACE) == region_of("branch = 'Erie'", SPACE)
    assert region_of("branch = 'it''s \\\\ ö'", SPACE)[0].sides["branch"].first == "it's \\ ö"
    assert region_of("`größe` = 1 and 1 = 2", SPACE) == ()


@pytest.mark.parametrize(
    ("predicate", "error", "message"),
    [
        ("brnch = 'x'", nearly.UnknownName, "did you mean 'branch'"),
        ("n % 2 = 0", nearly.Unsupported, "cannot be decided"),
        ("upper(branch) = 'X'", nearly.Unsupported, "cannot be decided"),
        ("n = (select 1)", nearly.Unsupported, "subquery"),
        ("TRUE) or (1 = 1", nearly.ParseError, "not a query"),
        ("TRUE group by n", nearly.Unsupported, "not one condition"),
        ("TRUE; drop table x", nearly.ParseError, "one query at a time"),
        ("n", nearly.SchemaError, "boolean"),
        ("n >", nearly.ParseError, "not a query"),
    ],
)
def test_predicates_that_are_refused(predicate: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        bind_constraints([Constraint(predicate)], SPACE)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rows": (5, 2)}, nearly.ConstraintError, "at least 5 and at most 2"),
        ({"rows": (-1, 2)}, nearly.SchemaError, "-1"),
        ({"rows": 1.5}, nearly.SchemaError, "rows"),
        ({"rows": (0, True)}, nearly.SchemaError, "whole number"),
        ({"rows": "many"}, nearly.SchemaError, "rows"),
        ({"rows": (0, 2**80)}, nearly.SchemaError, "between 0"),
        ({"price": (0, float("nan"))}, nearly.SchemaError, "NaN"),
        ({"price": (1, 2, 3)}, nearly.SchemaError, "range of 'price'"),
        ({"price": {1}}, nearly.SchemaError, "range of 'price'"),
        ({"values": [1]}, nearly.SchemaError, "maps columns"),
        ({"name": 3}, nearly.SchemaError, "name"),
    ],
)
def test_constraints_that_are_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Constraint("n > 1", **arguments)


@pytest.mark.parametrize(
    ("ranges", "error", "message"),
    [
        ({"prise": (0, 1)}, nearly.UnknownName, "did you mean 'price'"),
        ({"n": ("a", 1)}, nearly.SchemaError, "holds numbers"),
        ({"n": (0.2, 0.8)}, nearly.ConstraintError, "no value of type int"),
        ({"n": (5, 4)}, nearly.ConstraintError, "holds no value"),
        ({"day": ("2024-02-30", None)}, nearly.SchemaError, "not a date"),
        ({"day": (3, None)}, nearly.SchemaError, "dates"),
        ({"branch": (1, 2)}, nearly.SchemaError, "text"),
        ({"list": (1, 2)}, nearly.Unsupported, "array<int>"),
        ({"ok": (0, 1)}, nearly.SchemaError, "true or false"),
    ],
)
def test_ranges_that_do_not_fit_the_column(ranges: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        bind_constraints([Constraint(values=ranges)], SPACE)


def test_ranges_allow_null_only_when_told() -> None:
    strict, loose = (bind_constraint(Constraint(n=given), SPACE).values[0].sides["n"] for given in ((1, 2), (1, 2, None)))
    assert (strict.null, loose.null, strict.pieces == loose.pieces) == (False, True, True)


def test_names_of_arguments_can_be_columns() -> None:
    constraint = Constraint(values={"rows": (1, 2), "name": ("a", "b")}, rows=3)
    assert (set(constraint.values), constraint.rows, constraint.predicate) == ({"rows", "name"}, (3, 3), "TRUE")


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_files_give_back_equal_constraints(tmp_path: Path, suffix: str) -> None:
    given = ConstraintSet.of([
        Constraint("branch = 'Zürich \"x\"'", price=(0, 149.99), day=("2024-01-01", None, None), rows=(0, 5), name="first"),
        Constraint(n=3, rows=(2, None)),
    ])  # fmt: skip
    path = tmp_path / f"constraints{suffix}"
    given.save(path)
    assert list(ConstraintSet.load(path)) == list(given)
    assert "constraints" in path.read_text(encoding="utf-8")


def test_dates_of_a_file_bind_like_dates(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "constraints:\n  - where: day >= '2024-01-01'\n    values: {day: [2024-01-01, 2024-02-01], price: 3}\n    rows: 4\n"
    )
    (loaded,) = ConstraintSet.load(path)
    assert bind_constraint(loaded, SPACE).values == bind_constraint(
        Constraint("TRUE", day=(dt.date(2024, 1, 1), dt.date(2024, 2, 1)), price=3), SPACE
    ).values  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mapping"), ("- a", "mapping"), ("constraints: 3", "mapping"), ("constraints: [3]", "constraint 1"),
        ("constraints: [{wher: TRUE}]", "keys"), ("constraints: [{rows: [3, 1]}]", "constraint 1"),
        ("version: 9\nconstraints: []", "version"),
        ("{", "neither"), ("constraints: [{where: !!python/object/apply:os.getcwd []}]", "neither"),
    ],
)  # fmt: skip
def test_files_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(nearly.NearlyError, match=message):
        ConstraintSet.load(path)
    with pytest.raises(nearly.SchemaError, match="cannot read"):
        ConstraintSet.load(tmp_path / "no.yaml")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(nearly.SchemaError, match="UTF-8"):
        ConstraintSet.load(tmp_path / "c.json")
    (tmp_path / "d.json").write_text(json.dumps({"constraints": []}))
    assert len(ConstraintSet.load(tmp_path / "d.json")) == 0


def test_gaps_name_the_region_and_a_row() -> None:
    """Two branches are stated: the others are not covered, nor is the null."""
    bound = bind_constraints([Constraint("branch = 'Chicago'"), Constraint("branch = 'New York'")], SPACE)
    (gap,) = gaps(bound)
    assert (
        gap.where
        == "(branch < 'Chicago' or branch >= 'Chicago\x00' and branch < 'New York' or branch >= 'New York\x00' or branch is null)"
    )
    assert gap.example["branch"] not in ("Chicago", "New York")
    assert gaps(bind_constraints([Constraint("n > 3"), Constraint("n <= 3 or n is null")], SPACE)) == []
    (gap,) = gaps(bind_constraints([Constraint("n > 3"), Constraint("n < 3")], SPACE), region_of("n is not null", SPACE))
    assert (gap.where, dict(gap.example)) == ("n = 3", {"n": 3})


def test_conflicts_name_a_minimal_subset() -> None:
    constraints = [
        Constraint("n >= 0 and n <= 9", rows=(0, 5), name="all"),
        Constraint("n = 1", rows=(3, 9), name="ones"),
        Constraint("n = 2", rows=(0, 9), name="innocent"),
        Constraint("n = 3", rows=(3, 9), name="threes"),
        Constraint("branch = 'x'", rows=(1, 2), name="elsewhere"),
    ]
    with pytest.raises(nearly.ConstraintError, match="these 3 constraints") as caught:
        refuse_conflicts(Problem(bind_constraints(constraints, SPACE)), TimeLimit())
    assert ["n <= 9" in str(caught.value), "n = 1" in str(caught.value), "n = 2" in str(caught.value)] == [True, True, False]


def test_a_value_range_against_the_predicate_is_a_conflict() -> None:
    with pytest.raises(nearly.ConstraintError, match="no rows can satisfy"):
        refuse_conflicts(Problem(bind_constraints([Constraint("n > 5", n=(0, 3), rows=(1, 2))], SPACE)), TimeLimit())
    refuse_conflicts(Problem(bind_constraints([Constraint("n > 5", n=(0, 3), rows=(0, 2))], SPACE)), TimeLimit())


@pytest.mark.parametrize("blamed", [{0}, {3}, {1, 6}, {0, 3, 7}, set(range(8))])
def test_law_minimal_conflict_is_the_conflict(blamed: set[int]) -> None:
    assert set(minimal_conflict(range(8), lambda chosen: blamed <= set(chosen))) == blamed


def test_columns_compared_with_each_other_need_the_solver() -> None:
    """Cells of n < big and n >= big: the half-spaces are exact, so the two exclude each other."""
    constraints = [Constraint("n < big"), Constraint("n + 1 >= big + 1"), Constraint("n between 0 and 2 and big between 1 and 1")]
    found = decompose(bind_constraints(constraints, SPACE).constraints, EVERYWHERE, SPACE.everything)
    assert sorted(cell.members for cell in found.cells) == [(0,), (0, 2), (1,), (1, 2)]
