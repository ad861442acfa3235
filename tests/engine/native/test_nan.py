"""NaN in files: their statistics leave it out, and an engine that believes them passes over it."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan, nan

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.jobs.native_kernel import STATIC_ROWS
from tests.fixtures.driver_only import driver_only

ROWS = STATIC_ROWS + 20_000
EVERY = 50_000
"""Every so many-th value is NaN."""
FOUND = -(-ROWS // EVERY)


@pytest.fixture(scope="module", params=["float", "double"])
def db(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    path = tmp_path_factory.mktemp("nan")
    values = np.arange(ROWS) / 2
    values[::EVERY] = nan
    table = pa.table({"id": range(ROWS), "x": pa.array(values).cast(request.param)})
    pq.write_table(table, path / "many.parquet", row_group_size=10_000)
    pq.write_table(pa.table({"x": pa.array([0.5, 7.0, nan]).cast(request.param)}), path / "few.parquet")
    with driver_only(path / "catalog") as session:
        session.register("many", str(path / "many.parquet"), key=["id"])
        session.register("few", str(path / "few.parquet"))
        yield session


COUNTED = {
    "from many where isnan(x)": FOUND,
    "from many where x > 1e300": FOUND,
    "from many where not x between 0 and 1e300": FOUND,
    "from many join few on many.x = few.x": FOUND + 2,
    "from many where x in (select x from few where isnan(x))": FOUND,
    "from many where exists (select 1 from few where few.x = many.x and few.x > 7)": FOUND,
    "from many where x <=> (select max(x) from few)": FOUND,
    "from many where x = (select max(x) from many)": FOUND,
}


@pytest.mark.parametrize("text", COUNTED)
def test_rows_with_nan_are_found(db: nearly.Session, text: str) -> None:
    answer = db.sql(f"select count(*) as n {text}").exact()
    assert answer.source == "native"
    assert answer.table["n"][0].as_py() == COUNTED[text]


def test_nan_is_the_greatest_value(db: nearly.Session) -> None:
    assert isnan(db.sql("select max(x) as m from many").exact().table["m"][0].as_py())
    assert db.sql("select min(x) as m from many").exact().table["m"][0].as_py() == 0.5


def test_views_see_nan_come_and_go(db: nearly.Session) -> None:
    text = "select few.x, count(*) as n from few join many on few.x = many.x group by few.x"
    view = db.create_view("nans", text, policy="incremental")
    for change in (
        lambda: db.insert("many", [{"id": ROWS, "x": nan}]),
        lambda: db.insert("few", [{"x": nan}]),
        lambda: db.delete("many", where="id = 0"),
    ):
        change()
        view.refresh()
        shown = db.sql("select n from nans order by n").exact().table
        assert shown.equals(db.sql(f"select n from ({text}) order by n", kernel="native").exact().table)
    db.drop_view("nans")
