"""Ranges over joins against all instances: pairs of constraints, groups, filters and averages of small tables, enumerated."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly import Constraint
from nearly.missing.contingency import Contingency
from tests.fixtures.driver_only import driver_only

Row = tuple[int, ...]
CERTAIN: dict[str, list[Row]] = {"r": [(1, 1, 2), (2, 3, -1), (5, 4, 1)], "s": [(1, 7), (3, 7), (6, 8)]}
NAMES = {"r": ("a", "b", "w"), "s": ("b", "c")}
JOIN = "from r join s on r.b = s.b"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    home: Path = tmp_path_factory.mktemp("joins")
    with driver_only(home / "catalog") as session:
        for name, rows in CERTAIN.items():
            columns = {
                column: pa.array(values, pa.int32()) for column, values in zip(NAMES[name], zip(*rows, strict=True), strict=True)
            }
            pq.write_table(pa.table(columns), home / f"{name}.parquet")
            session.register(name, home / f"{name}.parquet")
        yield session


@dataclass(frozen=True)
class Statement:
    """At most so many missing rows, each of them one of `rows`."""

    given: Constraint
    rows: tuple[Row, ...]
    most: int


def about_r(draw: random.Random, a: int) -> Statement:
    b, low = draw.randrange(1, 5), draw.randrange(-2, 3)
    wide, high, most = draw.random() < 0.5, low + draw.randrange(2), draw.randrange(1, 3)
    where = f"a = {a} and b >= {b} and b <= {b + wide}"
    rows = tuple((a, each, w) for each in range(b, b + wide + 1) for w in range(low, high + 1))
    return Statement(Constraint(where, w=(low, high), rows=(0, most)), rows, most)


def about_s(draw: random.Random, c: int) -> Statement:
    b, most = draw.randrange(1, 5), draw.randrange(1, 3)
    return Statement(Constraint(f"b = {b} and c = {c}", rows=(0, most)), ((b, c),), most)


def instances(statements: Sequence[Statement]) -> list[tuple[Row, ...]]:
    """All sets of missing rows of one table; the statements' predicates exclude each other."""
    each = [
        [rows for size in range(one.most + 1) for rows in itertools.combinations_with_replacement(one.rows, size)]
        for one in statements
    ]
    return [tuple(itertools.chain(*chosen)) for chosen in itertools.product(*each)]


def worlds(r: Sequence[Statement], s: Sequence[Statement]) -> Iterator[list[Row]]:
    """The rows (a, b, w, c) of the join in every instance."""
    right = instances(s)
    for left in instances(r):
        for other in right:
            by_key: dict[int, list[int]] = {}
            for b, c in (*CERTAIN["s"], *other):
                by_key.setdefault(b, []).append(c)
            yield [(a, b, w, c) for a, b, w in (*CERTAIN["r"], *left) for c in by_key.get(b, ())]


def aggregates(rows: Sequence[Row]) -> tuple[Any, ...]:
    """count, sum, avg, min and max of w, and the count where a is 1; an empty sum counts as 0."""
    values = [row[2] for row in rows]
    average = Fraction(sum(values), len(values)) if values else None
    chosen = sum(1 for row in rows if row[0] == 1)
    return len(rows), sum(values), average, min(values, default=None), max(values, default=None), chosen


AGGREGATES = "count(*) n, sum(r.w) t, avg(r.w) m, min(r.w) l, max(r.w) h, count(*) filter (where r.a = 1) f"


def inside(value: Any, low: Any, high: Any) -> bool:
    return value is None or ((low is None or Fraction(low) <= value) and (high is None or value <= Fraction(high)))


def stated(db: nearly.Session, draw: random.Random) -> tuple[list[Statement], list[Statement]]:
    r, s = [about_r(draw, a) for a in (1, 3)], [about_s(draw, c) for c in (7, 9)]
    db.missing("r", [each.given for each in r])
    db.missing("s", [each.given for each in s])
    return r, s


@pytest.mark.parametrize("seed", range(6))
def test_oracle_every_instance_lies_in_the_range_of_a_join(db: nearly.Session, seed: int) -> None:
    r, s = stated(db, random.Random(seed))
    answer = db.sql(f"select {AGGREGATES} {JOIN}").range()
    ends = list(zip(*(next(zip(*table.columns, strict=True)) for table in (answer.hard_low, answer.hard_high)), strict=True))
    for rows in worlds(r, s):
        for value, (low, high) in zip(aggregates(rows), ends, strict=True):
            assert inside(value, low.as_py(), high.as_py()), (rows, value, low, high)


@pytest.mark.parametrize("seed", range(6, 11))
def test_oracle_every_group_of_every_instance_is_listed(db: nearly.Session, seed: int) -> None:
    draw = random.Random(seed)
    r, s = stated(db, draw)
    by, place = draw.choice([("r.a", 0), ("s.c", 3), ("r.b", 1), ("s.b", 1)])
    answer = db.sql(f"select {by} k, {AGGREGATES} {JOIN} group by {by}").range()
    assert "other_groups" not in answer.stats
    keys = answer.table["k"].to_pylist()
    assert len(keys) == len(set(keys))
    ends = {
        key: list(zip(low[1:], high[1:], strict=True))
        for key, low, high in zip(keys, _rows(answer.hard_low), _rows(answer.hard_high), strict=True)
    }
    present = {row[place] for row in next(iter(worlds([], [])))}
    assert set(keys[: len(present)]) == present
    for rows in worlds(r, s):
        for key in {row[place] for row in rows} | set(keys):
            mine = [row for row in rows if row[place] == key]
            for value, (low, high) in zip(aggregates(mine), ends[key], strict=True):
                assert inside(value, low, high), (key, rows, value, low, high)


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_pairs_of_constraints_that_exclude_each_other_add_nothing(db: nearly.Session) -> None:
    """Missing rows of r have b = 11 or 12, those of s too: 3 x 4 + 5 x 2 pairs, not 8 x 6; and 8 x 3 + 3 x 6 with certain rows."""
    db.missing("r", [Constraint("b = 11", w=(2, 3), rows=(0, 3)), Constraint("b = 12", w=(-4, 7), rows=(0, 5))])
    db.missing("s", [Constraint("b = 11", rows=(0, 4)), Constraint("b = 12", rows=(0, 2))])
    answer = db.sql(f"select count(*) n, sum(r.w) t {JOIN}").range()
    others = 8 * 3 + 3 * 6
    assert (answer.hard_low["n"][0].as_py(), answer.hard_high["n"][0].as_py()) == (2, 2 + 22 + others)
    above = (3 * 3 + 5 * 7) * 3 + 3 * 6  # missing rows of r with certain ones of s, certain values above zero with missing ones
    assert answer.hard_high["t"][0].as_py() == 1 + (3 * 3 * 4 + 5 * 7 * 2) + above


def test_an_average_moves_only_as_far_as_the_added_rows_draw_it(db: nearly.Session) -> None:
    """Two certain pairs of 2 and -1; one row of 0 to 100 may meet at most three: no average comes near 100, or near -1."""
    db.missing("r", [Constraint("b = 1", w=(0, 100), rows=(0, 1))])
    db.missing("s", None)
    answer = db.sql(f"select avg(r.w) m {JOIN}").range()
    assert answer.hard_high["m"][0].as_py() == pytest.approx((1 + 3 * 100) / 5)
    assert answer.hard_low["m"][0].as_py() == pytest.approx((1 + 3 * 0) / 5)


def test_groups_that_cannot_be_listed_are_told(db: nearly.Session) -> None:
    db.missing("r", [Constraint("b = 1", w=(0, 5), rows=(0, 2))])
    db.missing("s", None)
    answer = db.sql(f"select r.a, count(*) n, sum(r.w) t {JOIN} group by r.a").range()
    assert answer.stats["other_groups"] == {1: (0, 6), 2: (0, 30)}
    assert (answer.complete, answer.exact) == (False, False)


def test_null_is_a_group_of_its_own(db: nearly.Session) -> None:
    db.missing("r", [Constraint("a is null and b = 1", w=(0, 5), rows=(0, 2))])
    db.missing("s", None)
    answer = db.sql(f"select r.a, count(*) n, sum(r.w) t {JOIN} group by r.a order by r.a").range()
    assert answer.table["a"].to_pylist() == [1, 2, None]
    assert [answer.hard_high[name].to_pylist() for name in ("n", "t")] == [[1, 1, 6], [2, -1, 30]]
    assert answer.tentative is not None
    assert answer.tentative.to_pylist() == [False, False, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"select r.a + 1 x, count(*) n {JOIN} group by r.a + 1", "by an expression"),
        (f"select count(*) n {JOIN} group by r.a", "grouping columns"),
    ],
)
def test_groups_that_are_refused(db: nearly.Session, text: str, message: str) -> None:
    db.missing("r", [Constraint(rows=(0, 5))])
    with pytest.raises(nearly.Unsupported, match=message):
        db.sql(text).range()


def test_groups_that_were_not_read_yet_are_not_empty(db: nearly.Session) -> None:
    """Early, a group of missing rows may have certain rows that were not read: nothing is known of it until all groups are."""
    stated = db.missing("r", [Constraint("a = 5 and b = 1", w=(1, 3), rows=(0, 2)), Constraint("a > 5", rows=(0, 1))])
    assert stated is not None
    early = pa.table({"a": pa.array([1], pa.int32()), "n": pa.array([1], pa.int64()), "t": pa.array([2], pa.int64())})
    text = "select a, count(*) n, sum(w) t from r group by a"
    for complete, expected in ((False, [None, None]), (True, [2, 6])):
        given = nearly.Answer(early, *[early] * 4, 0.5, False, 0.95, 0.1, "progressive", complete=complete)
        (answer,) = Contingency(stated.engine, {"r": stated}).ranges(text, lambda _, given=given: iter([given]))  # type: ignore[misc]
        assert answer.table["a"].to_pylist() == [1, 5]
        assert [answer.hard_high[name][1].as_py() for name in ("n", "t")] == expected
        assert (answer.stats["other_groups"][1] == (None, None)) == (not complete)
