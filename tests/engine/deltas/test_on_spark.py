"""Deltas where Spark is needed: stages on several sites, and queries that the native kernel does not take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.deltas import net_change as net_change_module
from nearly.engine.deltas import sites
from nearly.engine.deltas.binding import bound_to_both
from nearly.engine.deltas.net_change import net_change
from nearly.engine.storage.layouts import Table
from tests.engine.deltas.judging import difference, judged, signed
from tests.fixtures.long import first_quick
from tests.fixtures.quick_spark import quick_session

TEXTS = (
    "select g, count(*) c, sum(v) s, min(v) m from left_rows join right_rows on k = j group by g",
    "select k, v from left_rows where not exists (select 1 from right_rows where j = k)",
    "select k, g from left_rows left join right_rows on k = j and v > 2",
    "select g, rank() over (partition by g order by j) r from right_rows union all select v, k from left_rows",
    "select count(*) c, sum(v) s from left_rows where v > (select avg(g) from right_rows)",
)
SPARK_ONLY = "select k, sum(v) over (order by k range between 1 preceding and current row) s from left_rows"


def rows(first: int, last: int, names: tuple[str, str]) -> pa.Table:
    columns = ([place % size for place in range(first, last)] for size in (17, 5))
    return pa.table({name: pa.array(column, pa.int64()) for name, column in zip(names, columns, strict=True)})


@pytest.fixture(scope="module")
def quick(spark: Any) -> Any:
    return quick_session(spark)


@pytest.fixture(scope="module")
def db(quick: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    with nearly.connect(quick, path=tmp_path_factory.mktemp("sites"), executors=3, cores=1) as session:
        yield session


@pytest.fixture(scope="module")
def versions(db: nearly.Session, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Table], dict[str, Table]]:
    path: Path = tmp_path_factory.mktemp("files")
    for name, columns in (("left_rows", ("k", "v")), ("right_rows", ("j", "g"))):
        pq.write_table(rows(0, 60, columns), path / f"{name}.parquet", row_group_size=8)
        db.register(name, str(path / f"{name}.parquet"))
    before = {name: db.table(name).info for name in db.tables}
    db.insert("left_rows", rows(60, 70, ("k", "v")))
    db.delete("right_rows", where="j < 3 and g > 2")
    db.update("left_rows", {"v": "v + 1"}, "k = 5")
    return before, {name: db.table(name).info for name in db.tables}


@pytest.mark.parametrize("text", first_quick(TEXTS, 1))
def test_stages_on_several_sites(
    text: str, db: nearly.Session, versions: tuple[dict[str, Table], dict[str, Table]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sites, net_change_module):
        monkeypatch.setattr(module, "STATIC_ROWS", 0)
    found = judged(db._engine, text, *versions)
    assert (found.source, found.reason) == ("native", None)


def test_what_only_spark_runs(db: nearly.Session, versions: tuple[dict[str, Table], dict[str, Table]]) -> None:
    engine = db._engine
    plan = bound_to_both(engine, SPARK_ONLY, *versions).plan
    found = net_change(engine, plan, *versions)
    assert found.source == "spark"
    assert found.reason is not None
    assert "RANGE" in found.reason
    numbers = (each["left_rows"].version for each in versions)
    old, new = (db.sql(f"{SPARK_ONLY} version as of {number}").exact().table for number in numbers)
    assert signed(found.rows) == difference(old, new)
