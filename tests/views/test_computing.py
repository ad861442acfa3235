"""Computing a view anew: what its rows and its values have in common is computed once, and nothing differs for it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.plan.nodes import Input
from nearly.rewrite.delta.with_partials import values_of
from nearly.views import computing
from nearly.views.computing import shared
from nearly.views.kept_values import values_now
from tests.fixtures.driver_only import driver_only

BEST = """with totals as (select shop, sum(price) as total from sales group by shop)
          select shop, total from totals where total = (select max(total) from totals)"""
SALES = pa.table({"id": range(60), "shop": [each % 7 for each in range(60)], "price": [each * 3 % 50 for each in range(60)]})


def opened(directory: Path) -> nearly.Session:
    pq.write_table(SALES, directory / "sales.parquet")
    db = driver_only(directory / "catalog")
    db.register("sales", str(directory / "sales.parquet"), key=["id"])
    return db


def test_a_grouping_that_occurs_twice_is_taken_out(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        plan = db._engine.planner.prepare(BEST).query.plan  # type: ignore[union-attr]
        found = shared([plan], db._engine.catalog.schema)
        ((name, part),) = found.parts
        inputs = [node for node in found.plans[0].walk() if isinstance(node, Input)]
        assert [each.source for each in inputs] == [name, name]
        native = db._engine.native
        rows = native.run_here(found.plans[0], {name: native.run_here(part)})
        assert rows == native.run_here(plan)


def test_what_occurs_once_or_is_too_large_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as db:
        plans = [db._engine.planner.prepare(text).query.plan for text in (BEST, "select count(*) as n from sales")]  # type: ignore[union-attr]
        assert shared(plans[1:], db._engine.catalog.schema).parts == ()
        monkeypatch.setattr(computing, "MOST_SHARED", 0)
        assert shared(plans, db._engine.catalog.schema).plans == tuple(plans)


def test_a_view_computed_anew_has_the_rows_of_its_query_and_keeps_its_values(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        view = db.create_view("best", BEST)
        db.delete("sales", where="id % 2 = 0")
        view.refresh()
        assert view.history[0].strategy == "whole"
        assert view.table.rows == 1
        assert db.sql("select * from best").exact().table == db.sql(BEST, kernel="native").exact().table
        planned = db._views.maintenance.plans.of(db._engine, "best", view.text, [db._engine.catalog.table("sales")], ())
        assert planned.stored is not None
        assert values_of(planned.stored.kept)
        assert view.state.values == values_now(db._engine, planned.stored.kept, planned.inputs, {})
