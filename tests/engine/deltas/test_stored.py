"""Groups whose old rows are stored: kept up to date by merging, without reading a table; extremes that went are looked at again."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from nearly.engine.deltas.binding import bound_to_both
from nearly.engine.deltas.net_change import NetChange, net_change
from nearly.engine.deltas.reading import TableReader
from nearly.engine.engine import Engine
from nearly.engine.storage.registration import register_parquet
from nearly.plan.binding.scope import FreshNames
from nearly.plan.nodes import Field, Filter, GroupBy, Plan, Project, Scan, Sort
from nearly.rewrite.delta.partials import Partials, partials
from tests.engine.deltas.histories import Histories
from tests.engine.deltas.judging import Tables, bag, difference, rows_of, signed
from tests.fixtures.long import first_quick

MERGED = (
    "select a, count(*) c, count(b) n, sum(b) s, avg(b) m, sum(n) d, avg(n) e from r group by a",
    "select s, sum(n) filter (where b > 0) f, count_if(a > 1) i, count(*) filter (where a is null) w from r group by s",
    "select r.a, t.s, count(*) c, sum(r.n * t.b) x from r join t on r.b = t.b group by r.a, t.s",
    "select count(*) c, sum(b) s, avg(n) m from r",
    "select distinct a, b from r",
)
EXTREMES = (
    "select a, min(n) lo, max(n) hi, min(s) first, max(d) last from r group by a",
    "select min(b) lo, max(s) hi from r where a > 0",
    "select a % 2 p, bool_and(b > 0) every_one, bool_or(n > 1) some_one, sum(b) s from r group by a % 2",
)
OTHERS = ("select a, count(distinct s) k, max(b) m from r group by a", "select a, percentile(b, 0.5) p from r group by a")


def groups(plan: Plan) -> GroupBy:
    while isinstance(plan, Project | Filter | Sort):
        plan = plan.child
    assert isinstance(plan, GroupBy)
    return plan


def kept(plan: GroupBy) -> GroupBy:
    """What a view stores of a grouping."""
    found = partials(plan, FreshNames("view"))
    return plan if found is None else found.plan


def refreshed(engine: Engine, plan: GroupBy, before: Tables, after: Tables, path: Path) -> NetChange:
    """The change of groups whose old rows lie in a table, which must be what recomputation says."""
    old = rows_of(engine, plan, before)
    pq.write_table(old, path, store_decimal_as_integer=True)
    if "stored" in engine.catalog:
        engine.catalog.drop("stored")
    register_parquet(engine.catalog, "stored", str(path))
    scan = Scan("stored", tuple(Field(column.name, column.name, column.type) for column in plan.columns))
    found = net_change(engine, plan, before, after, {plan: scan})
    assert signed(found.rows) == difference(old, rows_of(engine, plan, after))
    return found


@pytest.mark.parametrize("text", [*MERGED, *EXTREMES, *OTHERS])
@pytest.mark.parametrize("seed", first_quick(range(3), 1))
def test_oracle_merged_is_recomputed(text: str, seed: int, tmp_path: Path) -> None:
    history = Histories(tmp_path, random.Random(seed).choice)
    engine, before = history.db._engine, history.tables
    for step in range(5):
        history.step()
        after = history.tables
        plan = kept(groups(bound_to_both(engine, text, before, after).plan))
        found = refreshed(engine, plan, before, after, tmp_path / f"stored{step}.parquet")
        assert found.reason is None
        before = after
    history.db.close()


@pytest.mark.parametrize("text", [*MERGED, *EXTREMES])
def test_law_partials_of_partials_are_the_same(text: str, tmp_path: Path) -> None:
    history = Histories(tmp_path, random.Random(1).choice)
    engine = history.db._engine
    plan = groups(engine.planner.bound(text).plan)
    found = partials(plan, FreshNames("view"))
    assert found is not None
    again = partials(found.plan, FreshNames("again"))
    assert isinstance(again, Partials)
    assert again.plan == found.plan
    assert bag(rows_of(engine, found.finished(found.plan), {})) == bag(rows_of(engine, plan, {}))
    history.db.close()


def test_merging_reads_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = Histories(tmp_path, random.Random(3).choice)
    engine = history.db._engine
    before = history.tables
    new = [(1, 5, "x", Decimal(1), None), (2, None, "y", Decimal(2), None)]
    history.db.insert("r", [dict(zip("absnd", row, strict=True)) for row in new])
    after = history.tables
    plan = kept(groups(bound_to_both(engine, MERGED[0], before, after).plan))
    shown: list[str] = []
    query = TableReader.query
    monkeypatch.setattr(TableReader, "query", lambda self, name: shown.append(name) or query(self, name))
    refreshed(engine, plan, before, after, tmp_path / "stored.parquet")
    assert Counter(shown) == Counter({"stored": 1})
    history.db.close()
