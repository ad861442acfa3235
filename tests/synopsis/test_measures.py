"""Several measures in one synopsis: each is answered as by a synopsis of its own, from one build."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from tests.fixtures.driver_only import driver_only

ROWS = 3_000
NAMES = ("both", "of_m", "of_v")
QUERIES = ("sum", "avg", "count", "min", "stddev")


def rows(first: int, count: int) -> pa.Table:
    rng = np.random.default_rng(first)
    money = [None if each % 17 == 0 else Decimal(int(each)) / 100 for each in rng.integers(0, 9_999, count)]
    columns = {"id": np.arange(first, first + count), "c": rng.random(count), "v": rng.lognormal(size=count)}
    return pa.table(columns).append_column("m", pa.array(money, pa.decimal128(10, 2)))


@pytest.fixture(params=[True, False], ids=["keyed", "keyless"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    pq.write_table(rows(0, ROWS), tmp_path / "t.parquet", row_group_size=500)
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", tmp_path / "t.parquet", key=["id"] if request.param else ())
        for name, measure in zip(NAMES, (["m", "v"], "m", ["v"]), strict=True):
            db.create_synopsis(name, "t", measure, ["c"], leaves=8, sample=0.1)
    return tmp_path


def told(answer: nearly.Answer) -> list[Any]:
    return [each.column(0).to_pylist() for each in (answer.table, answer.low, answer.high, answer.hard_low, answer.hard_high)]


def check(db: nearly.Session) -> None:
    """Law: an answer about one of several measures is that of a synopsis which has no other."""
    both = db.synopsis("both")
    for measure in ("m", "v"):
        alone = db.synopsis(f"of_{measure}")
        for low, high in ((None, None), (0.11, 0.72), (0.5, 0.51)):
            for name in QUERIES:
                assert told(both.query(f"{name}({measure})", c=(low, high))) == told(alone.query(name, c=(low, high))), name
    assert told(both.query("rows", c=(0.2, 0.9))) == told(db.synopsis("of_m").query("count(*)", c=(0.2, 0.9)))


def test_measures_are_answered_as_if_alone(home: Path) -> None:
    """After a build, inserts, deletes, updates and a restart."""
    with driver_only(home / "catalog") as db:
        check(db)
        both = db.synopsis("both")
        for name in NAMES:
            db.synopsis(name).auto_repartition = False
        both.insert(rows(10_000, 400))
        check(db)
        both.delete(rows(10_000, 400).slice(0, 150))
        check(db)
        old = rows(0, ROWS).slice(7, 20)
        new = old.set_column(old.column_names.index("v"), "v", pa.array(np.arange(20.0)))
        if not both.schema.key:  # without a key, a row that differs in the other measure only is the same to a synopsis of one
            new = new.set_column(new.column_names.index("m"), "m", pa.array([Decimal(777)] * 20, pa.decimal128(10, 2)))
        both.update(old, new)
        check(db)
        assert both.query("rows").table["rows"][0].as_py() == ROWS + 250
        assert {db.synopsis(name).version for name in NAMES} == {4}
    with driver_only(home / "catalog") as db:
        check(db)
        with pytest.raises(nearly.SchemaError, match="lacks"):
            db.synopsis("both").delete(rows(10_000, 1))


def test_one_query_about_both(home: Path) -> None:
    text = "select sum(m) a, avg(v) b, count(*) n from t where c between 0.2 and 0.6"
    with driver_only(home / "catalog") as db:
        query = db.sql(text, using="both")
        first = next(iter(query))
        assert first.source == "synopsis both"
        truth = db.sql(text).exact().table
        for name in ("a", "b", "n"):
            assert first.hard_low[name][0].as_py() <= truth[name][0].as_py() <= first.hard_high[name][0].as_py()
        with pytest.raises(nearly.Unsupported, match="'m' and 'v' only"):
            db.sql("select sum(id) x from t", using="both").run()


def test_the_measure_must_be_named(home: Path) -> None:
    with driver_only(home / "catalog") as db:
        both = db.synopsis("both")
        with pytest.raises(nearly.SchemaError, match=r"sum\(m\)"):
            both.query("sum")
        with pytest.raises(nearly.UnknownName, match="measure"):
            both.query("sum(w)")
        assert db.synopsis("of_m").query("SUM( M )").exact
        with pytest.raises(nearly.SchemaError, match="no column"):
            db.create_synopsis("none", "t", [], ["c"])
