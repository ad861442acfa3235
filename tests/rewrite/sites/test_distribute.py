"""Plans for several sites: rows move only where they must, and several sites give the same answer as one."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.rewrite.passes import for_sites
from tests.fixtures.queries import QueryCase
from tests.rewrite import shop
from tests.rewrite.golden_plans import cases, check, shown
from tests.rewrite.running import SITES, on_sites, rows_differ, run

NAME = "sites/distribute"


@pytest.mark.parametrize("case", cases(NAME), ids=str)
def test_law_several_sites_give_the_rows_of_one(case: QueryCase) -> None:
    plan = shop.planned(case.text)
    placed = for_sites(plan, shop.schema, SITES)
    check(NAME, case, shown(placed))
    assert rows_differ(run(plan), on_sites(placed), case.text) is None


ROWS = 30_000


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`event` and `visit` are clustered by key; `other` is not; `kind` is small. Keys repeat and some values are null."""
    directory = tmp_path_factory.mktemp("tables")
    keys = [i // 3 for i in range(ROWS)]
    event = {
        "k": pa.array(keys, pa.int64()),
        "kind": pa.array([None if i % 11 == 0 else i % 4 for i in range(ROWS)], pa.int32()),
        "v": pa.array([Decimal((i * 7919) % 1000) / 10 for i in range(ROWS)], pa.decimal128(8, 1)),
        "x": pa.array([float((i * 31) % 97) for i in range(ROWS)]),
    }
    visit = {"vk": pa.array(range(0, ROWS, 2), pa.int64()), "w": pa.array([i % 13 for i in range(0, ROWS, 2)], pa.int64())}
    other = {"ok": pa.array([(i * 7919) % ROWS for i in range(ROWS)], pa.int64()), "z": pa.array([i % 17 for i in range(ROWS)])}
    kind = {"id": pa.array([0, 1, 2, 9], pa.int32()), "label": ["zero", "one", "two", "nine"]}
    for name, columns in {"event": event, "visit": visit, "other": other, "kind": kind}.items():
        pq.write_table(pa.table(columns), directory / f"{name}.parquet", row_group_size=2_000)
    return directory


@pytest.fixture(scope="module")
def sessions(spark: Any, tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, nearly.Session]]:
    opened = {}
    for sites in (1, 3):
        db = nearly.connect(spark, path=tmp_path_factory.mktemp(f"sites-{sites}"), executors=sites, cores=1)
        for file in tables.glob("*.parquet"):
            db.register(file.stem, file)
        opened[sites] = db
    yield opened
    for db in opened.values():
        db.close()


QUERIES = {
    "local grouping by the clustering column": "select k, sum(v) s from event group by k order by s desc, k limit 7",
    "block-local join": "select count(*) c, sum(v * w) s from event join visit on k = vk where w > 3",
    "block-local left join": "select count(*) c, count(w) m from event left join visit on k = vk",
    "small table everywhere": "select label, count(*) c from event join kind on event.kind = id group by label order by label",
    "small table outer": "select label, count(k) c from kind left join event on event.kind = id group by label order by label",
    "full join": "select count(*) c, count(k) a, count(ok) b from event full join other on k = ok",
    "shuffled join": "select z, count(*) c, avg(v) a, min(x) lo, max(x) hi from event join other on k = ok group by z order by z",
    "semi": "select count(*) c from event where k in (select ok from other where z = 3)",
    "anti with nulls": "select count(*) c from event where kind not in (select id from kind)",
    "anti": "select count(*) c from other where not exists (select 1 from event where k = ok)",
    "distinct": "select count(distinct kind) d, count(distinct x) e, sum(distinct v) s from event",
    "distinct by key": "select z, count(distinct ok) d from other group by z order by z",
    "statistics": "select z, stddev(ok) s, corr(ok, z + ok) r, percentile(ok, 0.5) p from other group by z order by z",
    "grouping sets": """
        select kind, z, count(*) c, grouping_id() g from event join other on k = ok group by cube(kind, z) order by g, kind, z
    """,
    "scalar": "select count(*) c from event where v > (select avg(v) from event)",
    "correlated": "select count(*) c from other o where z > (select avg(w) from visit where vk = o.ok)",
    "window by key": "select sum(r) s from (select row_number() over (partition by z order by ok, z) r from other)",
    "window over all": "select max(r) m from (select rank() over (order by k) r from event)",
    "union": """
        select sum(a) s, count(*) c from (select k a from event union all select ok from other union all select id from kind)
    """,
    "union distinct": "select count(*) c from (select kind a from event union select id from kind)",
    "intersect": "select count(*) c, sum(a) s from (select k a from event intersect select ok from other)",
    "except": "select count(*) c, sum(a) s from (select ok a from other except all select k from event)",
    "limit of everything": "select count(*) c from (select k from event limit 10) a join kind on true",
    "values": "select count(*) c from event join (values (1), (2)) t(q) on kind = q",
    "ungrouped over nothing": "select count(*) c, sum(v) s, avg(x) a from event where k < 0",
    "every row": "select k, kind, v from event order by v, k, kind limit 50 offset 20",
}


@pytest.mark.parametrize("name", QUERIES)
def test_several_sites_equal_one(name: str, sessions: dict[int, nearly.Session]) -> None:
    one, several = (sessions[sites].sql(QUERIES[name], kernel="native").exact().table for sites in (1, 3))
    assert one.schema == several.schema
    for left, right in zip(one.to_pylist(), several.to_pylist(), strict=True):
        for key in left:
            same = left[key] == right[key]
            assert same or left[key] == pytest.approx(right[key], rel=1e-9), (key, left, right)


@pytest.mark.parametrize(
    ("name", "shuffles", "note"),
    [
        ("local grouping by the clustering column", 0, "each site reads its range of k"),
        ("block-local join", 0, "block-local on k_"),
        ("block-local left join", 0, "block-local on k_"),
        ("small table everywhere", 0, "all 4 rows are read here"),
        ("shuffled join", 2, "shuffled by a hash of"),
    ],
)
def test_rows_move_only_where_they_must(name: str, shuffles: int, note: str, sessions: dict[int, nearly.Session]) -> None:
    text = sessions[3].sql(QUERIES[name]).explain()
    assert text.count("shuffled by a hash") >= shuffles if shuffles else "shuffled by a hash" not in text
    assert note in text


def test_prepared_layouts_make_a_join_local(sessions: dict[int, nearly.Session]) -> None:
    """Bucket counts that divide each other line up."""
    db = sessions[3]
    text = "select count(*) c, sum(v) s from event join other on k = ok"
    expected = sessions[1].sql(text).exact().table
    assert "bucket-local" not in db.sql(text).explain()
    db.prepare("event", by="k", buckets=4)
    db.prepare("other", by="ok", buckets=8)
    assert "bucket-local" in db.sql(text).explain()
    assert "shuffled by a hash" not in db.sql(text).explain()
    assert db.sql(text, kernel="native").exact().table.equals(expected)
    grouped = "select ok, count(*) c from other group by ok order by c desc, ok limit 3"
    assert "buckets of layout" in db.sql(grouped).explain()
    assert db.sql(grouped).exact().table.equals(sessions[1].sql(grouped).exact().table)
