"""Both kernels read exactly the registered files, whatever their names look like, and clocks show the session's zone."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.writing.sources import refuse_remote_delta
from nearly.errors import Unsupported
from tests.fixtures.agreement import difference
from tests.fixtures.quick_spark import quick_session

NAMES = [
    "a[1].parquet",
    "b{x,y}.parquet",
    "c*.parquet",
    "d?.parquet",
    "e f%20g.parquet",
    "ü#1.parquet",
    "h\\i.parquet",
    "it's.parquet",
]
DECOYS = ["a1.parquet", "bx.parquet", "by.parquet", "cc.parquet", "dd.parquet", "e f g.parquet", "hi.parquet"]


def test_names_are_no_patterns(spark: Any, tmp_path: Path) -> None:
    for place, name in enumerate(NAMES):
        pq.write_table(pa.table({"v": [10**place]}), tmp_path / name)
    for name in DECOYS:
        pq.write_table(pa.table({"v": [-1]}), tmp_path / name)
    with nearly.connect(quick_session(spark), path=tmp_path / "catalog") as db:
        for place, name in enumerate(NAMES):
            db.register("t", str(tmp_path / name))
            for kernel in ("native", "spark"):
                assert db.sql("select sum(v) as s from t", kernel=kernel).exact().table["s"].to_pylist() == [10**place], name
            assert db.sql("select v, soundex('x') as x from t").exact().table["v"].to_pylist() == [10**place], name


def test_partitions_below_several_odd_roots(spark: Any, tmp_path: Path) -> None:
    roots = [tmp_path / "one [1]", tmp_path / "two*"]
    for number, root in enumerate(roots):
        for part in (1, 2):
            (root / f"p={part}").mkdir(parents=True)
            pq.write_table(pa.table({"v": [number * 10 + part]}), root / f"p={part}" / "f.parquet")
    with nearly.connect(quick_session(spark), path=tmp_path / "catalog") as db:
        db.register("t", [str(root) for root in roots])
        found = [
            db.sql("select p, sum(v) as s from t group by p order by p", kernel=each).exact().table for each in ("native", "spark")
        ]
        assert [table.to_pylist() for table in found] == [[{"p": 1, "s": 12}, {"p": 2, "s": 14}]] * 2


ZONES = ("America/New_York", "Asia/Kolkata", "Pacific/Auckland")
MOMENTS = [
    dt.datetime(2024, month, day, hour, minute, 7, 123456, tzinfo=dt.UTC)
    for month, day in ((3, 10), (3, 31), (4, 6), (9, 28), (11, 3), (12, 31))
    for hour, minute in ((0, 0), (5, 30), (6, 30), (13, 59), (14, 1), (18, 31), (23, 59))
]
"""Around the changes of clocks in these zones, and the turn of days and years."""

CLOCKS = [
    "hour(ts)", "minute(ts)", "second(ts)", "year(ts)", "dayofmonth(ts)", "dayofweek(ts)", "weekofyear(ts)", "quarter(ts)",
    "extract(hour from ts)", "date_part('doy', ts)", "cast(ts as string)", "cast(ts as date)", "cast(ts as bigint)",
    "date_trunc('day', ts)", "date_trunc('month', ts)", "date_trunc('hour', ts)", "ts > timestamp '2024-06-01 00:00:00'",
    "cast(ts as date) = date '2024-03-31'", "ts >= cast(date '2024-09-28' as timestamp)", "to_date(ts)", "last_day(ts)",
    "cast(ts as timestamp_ntz)", "ts + interval 1 day", "ts + interval 90 minutes",
    "add_months(ts, 1)", "datediff(ts, date '2024-01-01')",
]  # fmt: skip


@pytest.mark.parametrize("zone", ZONES)
def test_clocks_show_the_zone_of_the_session(zone: str, spark: Any, tmp_path: Path) -> None:
    session = quick_session(spark)
    session.conf.set("spark.sql.session.timeZone", zone)
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"ts": pa.array(MOMENTS, pa.timestamp("us", "UTC"))}), path)
    session.read.parquet(path).createOrReplaceTempView("t")
    with nearly.connect(session, path=tmp_path / "catalog") as db:
        db.register("t", path)
        texts = [
            "select " + ", ".join(f"{each} as v{place}" for place, each in enumerate(CLOCKS)) + " from t",
            "select cast(ts as date) as d, max(hour(ts)) as h, count(*) as n from t group by cast(ts as date)",
            "select count(*) as n from t where hour(ts) < 6 or cast(ts as string) like '%-31 %'",
        ]
        for text in texts:
            assert difference(session.sql(text).toArrow(), db.sql(text).exact().table, text) is None
        native = [db.sql(f"select {each} as v from t").explain().startswith("kernel: native") for each in CLOCKS]
        assert sum(native) > len(CLOCKS) // 2
        (hours,) = [db.sql("select hour(ts) as v from t").exact()]
        assert hours.source == "native"


def test_a_delta_table_elsewhere_is_not_read_as_its_files(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    refuse_remote_delta(spark, f"file://{tmp_path}/plain")
    with pytest.raises(Unsupported, match="Delta table"):
        refuse_remote_delta(spark, f"file://{tmp_path}/delta/")
