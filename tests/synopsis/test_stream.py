"""Streams over the real thing: files and Kafka (its protocol over TCP) through Spark Structured Streaming."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.changes.questions import Topics
from nearly.engine.spark.kafka_source import send
from nearly.synopsis.synopsis import Synopsis
from tests.processes import HUNG

TYPES = "op string, id bigint, day double, city string, fare double, old_day double, old_city string, old_fare double"


@pytest.fixture
def db(spark: Any, tmp_path: Path) -> Iterator[nearly.Session]:
    rng = np.random.default_rng(0)
    table = pa.table({
        "id": np.arange(2_000), "day": np.round(rng.random(2_000) * 30, 1), "city": rng.choice(["Köln", "Rom"], 2_000),
        "fare": np.round(rng.random(2_000) * 50, 2),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "rides.parquet")
    with nearly.connect(spark, path=tmp_path / "catalog") as session:
        session.register("rides", tmp_path / "rides.parquet", key=["id"])
        yield session


def synopsis(db: nearly.Session, name: str) -> Synopsis:
    return db.create_synopsis(name, "rides", "fare", [["day", "city"]], leaves=16, sample=0.2)


def rows_in(found: Synopsis, **conditions: Any) -> float:
    return float(found.query("rows", **conditions).table["rows"][0].as_py())


def total(found: Synopsis) -> float:
    return float(found.query("sum").table["sum"][0].as_py())


def test_files_with_inserts_deletes_updates_and_poison(db: nearly.Session, spark: Any, tmp_path: Path) -> None:
    found = synopsis(db, "by_files")
    before = total(found)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    stream = spark.readStream.schema(TYPES).json(str(inbox))
    following = found.follow(stream, name="inbox")
    lines: list[dict[str, Any]] = [
        {"op": "insert", "id": 5_000, "day": 3.0, "city": "Oslo", "fare": 10.0},
        {"op": "insert", "id": 5_001, "day": 4.0, "city": "Rom", "fare": 20.0},
        {"op": "insert", "id": 5_002, "day": 4.0, "city": "Rom", "fare": None},
        {"op": "bogus", "id": 5_003, "day": 4.0, "city": "Rom", "fare": 1.0},
    ]
    _drop(inbox, "one.json", lines)
    following.drain()
    assert (rows_in(found), total(found)) == (2_003, pytest.approx(before + 30.0))
    assert found.query("count").table["count"][0].as_py() == 2_002, "a null fare is a row without a value"
    _drop(inbox, "two.json", [
        {"op": "delete", "id": 5_000, "day": 3.0, "city": "Oslo", "fare": 10.0},
        {"op": "update", "id": 5_001, "day": 5.0, "city": "Rom", "fare": 25.0, "old_day": 4.0, "old_city": "Rom", "old_fare": 20.0},
    ])  # fmt: skip
    following.drain()
    following.stop()
    assert (rows_in(found), total(found)) == (2_002, pytest.approx(before + 25.0))
    assert found.stats()["quarantined"] == db.quarantine("rides").num_rows == 1
    assert db.sql("select count(*) as n from rides").exact().table["n"].to_pylist() == [2_002]


def _drop(inbox: Path, name: str, lines: list[dict[str, Any]]) -> None:
    draft = inbox.parent / name
    draft.write_text("\n".join(map(json.dumps, lines)))
    draft.rename(inbox / name)


def test_a_restarted_follower_takes_no_batch_twice(db: nearly.Session, spark: Any, tmp_path: Path) -> None:
    """The checkpoint is set back by one batch, as a crash before Spark's own commit would; the table remembers."""
    found = synopsis(db, "restarted")
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    stream = spark.readStream.schema(TYPES).json(str(inbox))
    for number in range(2):
        following = found.follow(stream, name="inbox")
        _drop(inbox, f"{number}.json", [{"op": "insert", "id": 6_000 + number, "day": 1.0, "city": "Rom", "fare": 1.0}])
        following.drain()
        following.stop()
        commits = db._engine.catalog.directory("rides") / "checkpoints" / "inbox" / "commits"
        last = max(commits.glob("[0-9]*"), key=lambda path: int(path.name))
        last.unlink()
        (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    following = found.follow(stream, name="inbox")
    following.drain()
    following.stop()
    assert rows_in(found) == 2_002


def test_the_rate_source_and_wrong_streams(db: nearly.Session, spark: Any) -> None:
    found = synopsis(db, "rated")
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 50).load()
    rows = rate.selectExpr("value + 9000 as id", "cast(value % 30 as double) as day", "'Rom' as city", "1.0D as fare")
    following = found.follow(rows, name="rate")
    deadline = time.monotonic() + HUNG
    while rows_in(found) < 2_100 and time.monotonic() < deadline:
        time.sleep(0.05)
    following.stop()
    assert rows_in(found) >= 2_100
    assert (rows_in(found) - 2_000) % 50 == 0
    with pytest.raises(nearly.SchemaError, match="streaming DataFrame"):
        found.follow(spark.range(3))


@pytest.fixture
def servers() -> Iterator[str]:
    """A broker that speaks Kafka's protocol on a TCP port of this machine."""
    from confluent_kafka import Producer

    broker = Producer({"bootstrap.servers": "ignored", "test.mock.num.brokers": 1})
    listed = broker.list_topics(timeout=HUNG)
    yield ",".join(f"{each.host}:{each.port}" for each in listed.brokers.values())
    del broker


def post(servers: str, topic: str, records: list[Any]) -> None:
    send(servers, topic, [(b"", each if isinstance(each, bytes) else json.dumps(each).encode()) for each in records])
    time.sleep(0.01)


def replies(servers: str, topic: str, count: int) -> list[dict[str, Any]]:
    from confluent_kafka import Consumer

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + HUNG
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found.append(json.loads(message.value()))
    consumer.close()
    return found


def test_kafka_inserts_deletes_and_questions_in_order(db: nearly.Session, servers: str) -> None:
    found = synopsis(db, "by_kafka")
    before = total(found)
    for topic in ("insert", "delete", "execute", "reply"):
        post(servers, topic, [])
    ride = {"id": 7_000, "day": 2.0, "city": "Rom", "fare": 100.0}
    post(servers, "execute", [{"id": "first", "aggregate": "sum"}])
    post(servers, "insert", [ride, {**ride, "id": 7_001}])
    post(servers, "execute", [{"id": "second", "aggregate": "sum"}])
    post(servers, "delete", [ride])
    post(servers, "insert", [b"{not json", b'{"id": 1}', b'{"id": 1, "day": "x", "city": "Rom", "fare": 1.0}', None or b"",
                             b'{"id": 1, "day": 1.0, "city": "Rom", "fare": NaN}', {**ride, "colour": "red"}])  # fmt: skip
    post(servers, "execute", [{"id": "third", "aggregate": "sum"}, {"id": "fourth", "aggregate": "median"},
                              {"id": "fifth", "aggregate": "rows", "where": {"day": [0, 10]}, "by": "city"}])  # fmt: skip
    following = found.follow_kafka(servers, topics=Topics())
    following.drain()
    answers = {each["id"]: each for each in replies(servers, "reply", 5)}
    following.stop()
    sums = [answers[name]["rows"][0]["sum"] for name in ("first", "second", "third")]
    assert sums == [pytest.approx(before), pytest.approx(before + 200.0), pytest.approx(before + 100.0)]
    assert "unknown aggregate" in answers["fourth"]["error"]
    assert {row["city"] for row in answers["fifth"]["rows"]} == {"Köln", "Rom"}
    assert found.stats()["quarantined"] == 6
    assert rows_in(found) == 2_001
