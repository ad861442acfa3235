"""Constraints and rows of the past: checked and derived with Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly import Constraint, ConstraintSet
from nearly.cli.main import main
from tests.fixtures.quick_spark import quick_session

HISTORY = pa.table({
    "branch": ["a", "a", "b", None, "it's"] * 20,
    "price": pa.array([Decimal(i % 17) for i in range(100)], pa.decimal128(8, 2)),
    "weight": pa.array([float("nan") if i % 10 == 0 else i / 7 for i in range(100)]),
    "n": pa.array([None if i % 9 == 0 else i for i in range(100)], pa.int32()),
    "day": pa.array([dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(100)]),
})  # fmt: skip


@pytest.fixture(scope="module")
def history(spark: Any) -> Any:
    return quick_session(spark).createDataFrame(HISTORY)


def test_violations_are_listed_with_an_example(history: Any) -> None:
    constraints = ConstraintSet.of([
        Constraint("branch = 'a'", price=(0, 15), rows=(0, 100), name="good rows, bad values"),
        Constraint("branch = 'b'", price=(0, 16), rows=(30, 100), name="too few"),
        Constraint("branch is null", n=(0, 99, None), rows=(20, 20), name="holds"),
        Constraint("branch is null", n=(0, 99), rows=(20, 20), name="null where none is allowed"),
    ])  # fmt: skip
    found = constraints.check(history)
    assert [(each.constraint.name if each.constraint else None, each.kind) for each in found] == [
        ("good rows, bad values", "values"), ("too few", "rows"), ("null where none is allowed", "values"), (None, "closure"),
    ]  # fmt: skip
    assert found[0].example is not None
    assert found[0].example["price"] == Decimal("16.00")
    assert found[-1].found == 20
    assert "it's" in str(found[-1])
    assert "20 rows, outside (30, 100)" in str(found[1])


def test_no_constraints_cover_nothing(history: Any) -> None:
    (only,) = ConstraintSet().check(history)
    assert (only.kind, only.found) == ("closure", 100)
    assert ConstraintSet().check(history.limit(0)) == []


@pytest.mark.parametrize(("scheme", "by"), [("partition", ["branch", "weight"]), ("overlapping", ["day", "price"])])
def test_law_history_satisfies_what_is_derived_from_it(history: Any, scheme: str, by: list[str]) -> None:
    """Nulls, NaN, quotes and dates included; and the constraints leave nothing uncovered."""
    found = nearly.constraints_from(history, by=by, n=12, scheme=scheme, rows="exactly")
    assert 8 <= len(found) <= 14
    assert found.check(history) == []
    total = sum(each.rows[1] or 0 for each in found)
    assert total == HISTORY.num_rows * (1 if scheme == "partition" else len(by))


@pytest.mark.parametrize("seed", range(3))
def test_nulls_that_a_sample_misses_are_covered(history: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From about ten rows drawn of a hundred: nulls go where the partition puts them, and are counted there."""
    monkeypatch.setattr("nearly.missing.derive.SAMPLE_ROWS", 10)
    found = nearly.constraints_from(history, by=["day", "n"], n=4, rows="exactly", seed=seed)
    assert found.check(history) == []


def test_timestamps_are_cut_in_the_time_zone_of_the_session(spark: Any) -> None:
    session = quick_session(spark)
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    moments = [dt.datetime(2024, 3, 10, hour, tzinfo=dt.UTC) for hour in range(24)]
    frame = session.createDataFrame(pa.table({"at": pa.array(moments, pa.timestamp("us", "UTC")), "x": list(range(24))}))
    found = nearly.constraints_from(frame, by="at", n=4, rows="exactly")
    assert [each.rows for each in found] == [(6, 6)] * 4
    assert found.check(frame) == []


def test_margin_widens_and_at_most_forgets_the_lower_bound(history: Any) -> None:
    (whole,) = nearly.constraints_from(history, by="day", n=1, values=["price"], margin=0.5)
    assert whole.rows == (0, 150)
    assert (float(whole.values["price"].low), float(whole.values["price"].high)) == (-8.0, 24.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"by": ["brnch"]}, nearly.UnknownName, "did you mean"),
        ({"by": []}, nearly.SchemaError, "no column"),
        ({"by": ["n", "n"]}, nearly.SchemaError, "twice"),
        ({"by": "n", "n": 0}, nearly.SchemaError, "n=0"),
        ({"by": "n", "n": 10**9}, nearly.SchemaError, "n="),
        ({"by": "n", "scheme": "other"}, nearly.UnknownName, "scheme"),
        ({"by": "n", "rows": "all"}, nearly.UnknownName, "bound rows"),
        ({"by": "n", "margin": -1}, nearly.SchemaError, "margin"),
    ],
)
def test_derivations_that_are_refused(history: Any, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        nearly.constraints_from(history, **arguments)


def test_history_of_no_known_kind() -> None:
    with pytest.raises(nearly.SchemaError, match="Spark"):
        ConstraintSet().check(3)


def test_command_line(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """suggest, check and range, one after the other; a violation is exit code 1 and a mistake exit code 2."""
    path, file = tmp_path / "history.parquet", tmp_path / "constraints.yaml"
    pq.write_table(HISTORY.drop_columns(["weight"]), path)
    assert main(["missing", "suggest", str(path), "--by", "day", "-n", "2", "-o", str(file)]) == 0
    assert main(["missing", "check", str(file), str(path)]) == 0
    assert "0 violations" in capsys.readouterr().out
    file.write_text("constraints: [{where: branch = 'a', values: {price: [0, 3]}, rows: [0, 10]}]")
    assert main(["missing", "check", str(file), str(path)]) == 1
    shown = capsys.readouterr().out
    assert "2 violations" not in shown
    assert "3 violations" in shown
    assert "not covered" in shown
    query = ["select sum(price) total from h", "--table", f"h={path}", "--constraints", f"h={file}", "--explain"]
    assert main(["missing", "range", *query]) == 0
    shown = capsys.readouterr().out
    assert "total = 785.00, with the missing rows 785.00 to 815.00" in shown
    assert "rows at most 10" in shown
    assert main(["missing", "range", "select 1 x", "--table", "h", "--constraints", "h=x"]) == 2
    assert "write NAME=PATH" in capsys.readouterr().err
