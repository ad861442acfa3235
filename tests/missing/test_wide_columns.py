"""Comparisons between columns of wide types, at the ends of these types: ranges equal enumeration, through the public API."""

from __future__ import annotations

import datetime as dt
import itertools
import operator
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from tests.fixtures.driver_only import driver_only

WINDOW = 4
"""So many values of each column may be missing."""
COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "<>": operator.ne}


@dataclass(frozen=True)
class Kind:
    """A type, its value number n in a window, and the text of a value in SQL."""

    type: pa.DataType
    value: Callable[[int], Any]
    text: Callable[[Any], str] = str
    offset: bool = True


KINDS = {
    "bigint_top": Kind(pa.int64(), lambda n: 2**63 - 1 - n, offset=False),
    "bigint_bottom": Kind(pa.int64(), lambda n: -(2**63) + 1 + n, offset=False),
    "bigint_middle": Kind(pa.int64(), lambda n: 2**53 + n),
    "wide_decimal": Kind(pa.decimal128(38, 0), lambda n: Decimal(10**37 + n), offset=False),
    "cents": Kind(pa.decimal128(18, 2), lambda n: Decimal(10**17 + n).scaleb(-2)),
    "date": Kind(
        pa.date32(), lambda n: dt.date(9999, 12, 20) + dt.timedelta(days=n), lambda value: f"date '{value}'", offset=False
    ),
    "timestamp": Kind(
        pa.timestamp("us", "UTC"),
        lambda n: dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=n),
        lambda value: f"timestamp '{value:%Y-%m-%d %H:%M:%S.%f}'",
        offset=False,
    ),
}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    home: Path = tmp_path_factory.mktemp("wide")
    with driver_only(home / "catalog") as session:
        for name, kind in KINDS.items():
            row = [kind.value(1)]
            pq.write_table(pa.table({column: pa.array(row, kind.type) for column in "abc"}), home / f"{name}.parquet")
            session.register(name, home / f"{name}.parquet")
        yield session


def comparison(draw: random.Random, kind: Kind) -> tuple[str, Callable[[dict[str, Any]], bool]]:
    """A comparison of two columns, perhaps shifted by a few units, or of a column and a value."""
    name = draw.choice(list(COMPARE))
    holds = COMPARE[name]
    left, right = draw.sample("abc", 2)
    if draw.random() < 0.3:
        value = kind.value(draw.randrange(WINDOW))
        return f"{left} {name} {kind.text(value)}", lambda row: holds(row[left], value)
    if kind.offset and draw.random() < 0.4:
        shift = draw.randrange(-2, 3)
        return f"{left} {name} {right} + {shift}", lambda row: holds(row[left], row[right] + shift)
    return f"{left} {name} {right}", lambda row: holds(row[left], row[right])


@pytest.mark.parametrize("name", list(KINDS))
def test_oracle_ranges_of_rows_near_the_ends_of_a_type(db: nearly.Session, name: str) -> None:
    """Up to five rows of a small window may be missing: counts and extremes are those of the rows that satisfy both conditions."""
    kind, draw, answered = KINDS[name], random.Random(name), 0
    values = sorted(kind.value(n) for n in range(WINDOW))
    window = " and ".join(f"{column} >= {kind.text(values[0])} and {column} <= {kind.text(values[-1])}" for column in "abc")
    rows = [dict(zip("abc", each, strict=True)) for each in itertools.product(values, repeat=3)]
    present = dict.fromkeys("abc", kind.value(1))
    for _ in range(12):
        (given, allows), (asked, wanted) = comparison(draw, kind), comparison(draw, kind)
        possible = [row for row in rows if allows(row) and wanted(row)]
        try:
            db.missing(name, [nearly.Constraint(f"{given} and {window}", rows=(0, 5))])
            found = db.sql(f"select count(*) as n, max(a) as top, min(a) as bottom from {name} where {asked}").range()
        except nearly.Unsupported:
            continue
        except nearly.ConstraintError:
            assert not [row for row in rows if allows(row)]
            continue
        answered += 1
        known = [present] if wanted(present) else []
        shown = f"{name}: {given}, where {asked}: {found.hard_low.to_pylist()} to {found.hard_high.to_pylist()}"
        assert found.hard_low["n"][0].as_py() == len(known), shown
        assert found.hard_high["n"][0].as_py() == len(known) + (5 if possible else 0), shown
        if possible or known:
            ends = [row["a"] for row in possible + known]
            assert found.hard_high["top"][0].as_py() == max(ends), shown
            assert found.hard_low["bottom"][0].as_py() == min(ends), shown
    assert answered >= (1 if name == "timestamp" else 4), "times are not compared with each other"
