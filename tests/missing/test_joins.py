"""Ranges over inner joins, through the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly import Constraint

TRIANGLE = "select count(*) n from r join s on r.b = s.b join t on s.c = t.c and t.a = r.a"


@pytest.fixture(scope="module")
def graph(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    home: Path = tmp_path_factory.mktemp("graph")
    with nearly.connect(spark, path=home / "catalog") as session:
        for name, columns in {"r": ("a", "b"), "s": ("b", "c"), "t": ("c", "a")}.items():
            table = pa.table({column: pa.array([1, 2], pa.int32()) for column in columns} | {"w": pa.array([1.5, -2.0])})
            pq.write_table(table, home / f"{name}.parquet")
            session.register(name, home / f"{name}.parquet", key=columns)
        yield session


def ends(answer: nearly.Answer) -> list[tuple[Any, Any]]:
    return [(low[0].as_py(), high[0].as_py()) for low, high in zip(answer.hard_low.columns, answer.hard_high.columns, strict=True)]


def test_triangle_is_bounded_by_theory(graph: nearly.Session) -> None:
    """Two certain rows and up to 98 missing ones in each table: at most 100 ** 1.5 triangles, not 100 ** 3."""
    for name in "rst":
        graph.missing(name, [Constraint(w=(-1, 1), rows=(0, 98))])
    answer = graph.sql(TRIANGLE).range()
    assert ends(answer) == [(2, 1000)]
    assert (answer.stats["naive_rows"], round(answer.stats["cover_rows"])) == (1e6, 1000)
    assert (answer.exact, answer.stats["tight"]) == (False, False)


def test_sums_and_extremes_of_a_join(graph: nearly.Session) -> None:
    graph.missing("r", [Constraint("a = 1", w=(-3, 4), rows=(0, 2))])
    for name in "st":
        graph.missing(name, None)
    text = TRIANGLE.replace("count(*) n", "count(*) n, sum(r.w) s, max(r.w) m, min(r.w) l, avg(r.w) a")
    found = ends(graph.sql(text).range())
    assert found[0] == (2, 4)
    assert found[1] == (pytest.approx(-0.5 - 2 * 6), pytest.approx(-0.5 + 2 * 8)), "two rows of r, each with both rows of s"
    assert found[2:4] == [(1.5, 4.0), (-3.0, -2.0)]
    assert found[4] == (pytest.approx((-0.5 - 2 * 3) / 4), pytest.approx((-0.5 + 2 * 4) / 4)), "two rows more at most"


def test_missing_rows_that_cannot_meet_add_nothing(graph: nearly.Session) -> None:
    """Missing rows of r have b below 10, those of s above: only joins with certain rows are left."""
    graph.missing("r", [Constraint("b < 10", rows=(0, 50))])
    graph.missing("s", [Constraint("b > 20", rows=(0, 50))])
    assert ends(graph.sql("select count(*) n from r join s on r.b = s.b").range()) == [(2, 2 + 50 * 2 + 2 * 50)]


def test_conditions_on_one_table_bound_its_missing_rows(graph: nearly.Session) -> None:
    graph.missing("r", [Constraint("a = 5", rows=(0, 50)), Constraint("a = 6", rows=(0, 3))])
    graph.missing("s", None)
    assert ends(graph.sql("select count(*) n from r join s on r.b = s.b where r.a >= 6").range()) == [(0, 3 * 2)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select count(*) n from r left join s on r.b = s.b", "left join"),
        ("select sum(r.w + s.w) x from r join s on r.b = s.b", "several tables"),
    ],
)
def test_joins_that_are_refused(graph: nearly.Session, text: str, message: str) -> None:
    graph.missing("r", [Constraint(rows=(0, 5))])
    with pytest.raises(nearly.Unsupported, match=message):
        graph.sql(text).range()
