"""E-S8 and E-S12: views of a log of video visits, and refreshing in the background with and without cleaning in between."""

from __future__ import annotations

import random
import statistics
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nearly
from benchmarks.report import Record
from benchmarks.stale_views.measure import (
    DRAWS,
    Errors,
    asked,
    cleaning_seconds,
    judged,
    ratio,
    refreshing_seconds,
    samples,
    seconds,
)
from nearly.answer import Answer

RESOURCES, USERS, DAYS = 2_000, 20_000, 30
VIEWS = {
    "v1": "select resource, day, error, count(*) as n from log group by resource, day, error",
    "v2": "select resource, day, sum(bytes) as n from log group by resource, day",
    "v3": "select substring(tag, 1, 3) as kind, usr, count(*) as n from log group by substring(tag, 1, 3), usr",
    "v4": "select region, provider, resource, avg(bytes) as n, count(*) as c from log join people on usr = person group by 1, 2, 3",
    "v5": "select region, provider, resource, count_if(error > 0) as n from log join people on usr = person group by 1, 2, 3",
    "v6": "select resource, sum(bytes) as n, count(*) as c from (select * from log where error = 0 union all "
          "select * from log where error > 2) group by resource",
    "v7": "select resource, usr % 50 as part, sum(bytes) as n, avg(latency) as l, max(latency) as m, count(*) as c from log "
          "group by resource, usr % 50",
    "v8": "select usr, day, count(*) as n, sum(bytes) as b, min(latency) as l from log group by usr, day",
}  # fmt: skip
SHARES = (0.03, 0.06, 0.1)
"""Sizes of samples that are cleaned between two refreshes."""
ATTRIBUTE = {"v3": "usr", "v8": "usr"}


def log(first: int, rows: int, seed: int) -> pa.Table:
    """Visits in order of arrival; a few videos and users have most of them."""
    make = np.random.default_rng(seed)
    resource = np.minimum((make.pareto(0.9, rows) * 5).astype(np.int64), RESOURCES - 1)
    return pa.table({
        "visit": pa.array(np.arange(first, first + rows)), "resource": pa.array(resource),
        "usr": pa.array((make.random(rows) ** 2 * USERS).astype(np.int64)),
        "day": pa.array((np.arange(first, first + rows) * DAYS // max(first + rows, 1)).astype(np.int64)),
        "error": pa.array(make.choice(4, rows, p=(0.9, 0.06, 0.03, 0.01)).astype(np.int64)),
        "bytes": pa.array(make.lognormal(8, 1.2, rows).astype(np.int64)),
        "latency": pa.array(make.gamma(2, 20, rows).astype(np.int64)),
        "tag": pa.array([f"t{each % 40:02d}" for each in resource]),
    })  # fmt: skip


def opened(directory: Path, rows: int) -> nearly.Session:
    directory.mkdir(parents=True, exist_ok=True)
    people = pa.table({
        "person": pa.array(range(USERS)), "region": pa.array([each % 12 for each in range(USERS)]),
        "provider": pa.array([each % 7 for each in range(USERS)]),
    })  # fmt: skip
    pq.write_table(log(0, rows, 0), directory / "log.parquet", row_group_size=122_880)
    pq.write_table(people, directory / "people.parquet")
    db = nearly.connect(path=directory / "catalog", lazy=True)
    db.register("log", str(directory / "log.parquet"), key=["visit"])
    db.register("people", str(directory / "people.parquet"), key=["person"])
    return db


def run(directory: Path, rows: int, queries: int) -> tuple[list[Record], Record]:
    """Every view: time and errors after a tenth of the visits came."""
    db = opened(directory, rows)
    found: list[Record] = []
    whole, mistakes, speedups = Errors(), list[float](), list[float]()
    try:
        for name, text in VIEWS.items():
            db.create_view(name, text, sample=0.1)
        db.insert("log", log(rows, rows // 10, 1))
        for name in VIEWS:
            cleaning = cleaning_seconds(db, name, 0.1)
            choose, view = random.Random(name), db.view(name)
            texts = [_question(name, choose) for _ in range(queries)]
            draws = samples(db, name, min(queries, DRAWS))
            questions = [asked(view, text, 0, 0.1) for number in draws for text in texts[number::DRAWS]]
            refreshing = refreshing_seconds(db, name)
            errors = Errors()
            for each in questions:
                errors.add(judged(each, db.sql(each.text).exact().table))
            whole.add(errors)
            mistakes += errors.of["auto"]
            speedups.append(ratio(refreshing, cleaning))
            row: dict[str, float | str] = {"what": f"log {name}", "seconds": cleaning, "refresh / clean": speedups[-1]}
            found.append(row | {f"{method} %": 100 * errors.median(method) for method in errors.of})
    finally:
        db.close()
    summary = {
        "log_speedup": statistics.median(speedups),
        "log_error": statistics.mean(mistakes),
        "log_coverage": whole.held / max(whole.given, 1),
    }
    return found, summary


def _question(view: str, choose: random.Random) -> str:
    attribute = ATTRIBUTE.get(view, "resource")
    most = USERS if attribute == "usr" else 400
    low = choose.randint(0, most // 2)
    function = choose.choice(("sum(n)", "avg(n)", "count(*)"))
    return f"select {function} as x from {view} where {attribute} between {low} and {low + most // 3}"


def background(directory: Path, rows: int, batches: int) -> tuple[list[Record], Record]:
    """Refreshing by batches of several sizes, alone and beside cleaning, and the largest error between two refreshes."""
    db = opened(directory, rows)
    found: list[Record] = []
    try:
        db.create_view("v2", VIEWS["v2"], sample=0.05, policy="incremental")  # batches of changes are what is measured
        first = rows
        for size in (rows // 200, rows // 50, rows // 10):
            alone, first = _throughput(db, first, size, batches, cleaning=False)
            beside, first = _throughput(db, first, size, batches, cleaning=True)
            found.append({"what": f"batches of {size:,}", "rows/s": alone, "rows/s beside cleaning": beside})
        wanted = alone / 2
        found.append({"what": f"{db.view('v2').batch_size(wanted):,} rows at a time keep up", "rows/s": wanted})
        stale, errors, took = _period(db, first, rows // 10)
        found += [
            {
                "what": f"largest error in a period, {m:.0%} clean",
                "stale %": 100 * stale,
                "auto %": 100 * errors[m],
                "seconds": took[m],
            }
            for m in SHARES
        ]
    finally:
        db.close()
    return found, {"period_gain": ratio(stale, min(errors.values()))}


def _throughput(db: nearly.Session, first: int, size: int, batches: int, cleaning: bool) -> tuple[float, int]:
    over = threading.Event()

    def clean() -> None:
        while not over.is_set():
            try:
                db.view("v2").query("select sum(n) as s from v2")
            except nearly.NearlyError:
                time.sleep(0.01)

    beside = threading.Thread(target=clean)
    if cleaning:
        beside.start()
    took = 0.0
    for number in range(batches):
        db.insert("log", log(first, size, 100 + number))
        first += size
        took += seconds(db.view("v2").refresh)
    over.set()
    if cleaning:
        beside.join()
    return size * batches / took, first


def _period(db: nearly.Session, first: int, size: int) -> tuple[float, dict[float, float], dict[float, float]]:
    """Visits come in ten parts between two refreshes: the largest errors of the stale view, and of answers corrected by samples of
    several sizes, and how long the samples of a size took in all.
    """
    text = "select sum(n) as s from v2 where resource < 50"
    view, stale = db.view("v2"), 0.0
    worst, took = (dict.fromkeys(SHARES, 0.0) for _ in range(2))
    for number in range(10):
        db.insert("log", log(first + number * (size // 10), size // 10, 200 + number))
        truth = float(db.sql(text.replace("from v2", f"from ({VIEWS['v2']}) v2")).exact().table.to_pylist()[0]["s"])
        stale = max(stale, abs(_value(view.query(text, method="stale")) - truth) / truth)
        for share in SHARES:
            took[share] += cleaning_seconds(db, "v2", share, 1)
            worst[share] = max(worst[share], abs(_value(view.query(text, sample=share)) - truth) / truth)
    return stale, worst, took


def _value(answer: Answer) -> float:
    return float(answer.table.to_pylist()[0]["s"])
