"""Tables that follow streams: files through Spark Structured Streaming, and Kafka, its protocol over TCP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.changes.questions import QuestionTaker, Topics
from nearly.engine.changes.streams.following import Also, Follower
from nearly.engine.changes.streams.records import parsed
from nearly.errors import SchemaError
from tests.fixtures.driver_only import driver_only

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.float64()), ("s", pa.string())])


def registered(db: nearly.Session, home: Path, key: list[str]) -> nearly.Session:
    rows = {"k": list(range(10)), "v": [float(n) for n in range(10)], "s": ["old"] * 10}
    pq.write_table(pa.table(rows, schema=SCHEMA), home / "t.parquet")
    db.register("t", home / "t.parquet", key=key)
    return db


@pytest.fixture
def db(tmp_path: Path) -> Iterator[nearly.Session]:
    with registered(driver_only(tmp_path / "catalog"), tmp_path, ["k"]) as session:
        yield session


def rows_of(db: nearly.Session) -> dict[int, tuple[Any, ...]]:
    return {row["k"]: (row["v"], row["s"]) for row in db.sql("select * from t order by k").exact().table.to_pylist()}


def batch(*rows: tuple[Any, ...]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(
        dict(zip(("k", "v", "s", "op"), map(list, columns), strict=True)), schema=SCHEMA.append(pa.field("op", pa.string()))
    )


def test_a_batch_of_all_kinds_is_one_version_and_the_rest_is_put_aside(db: nearly.Session) -> None:
    follower = Follower(db._engine, "t", "orders", "op")
    follower.take(
        batch(
            (100, 1.0, "new", "insert"), (3, 3.5, "up", "upsert"), (4, None, None, "delete"), (5, 9.0, "twice", "upsert"),
            (5, None, None, "DELETE"), (6, 1.0, "there", "insert"), (77, None, None, "delete"), (None, 1.0, "no key", "insert"),
            (8, 1.0, "odd", "explode"),
        ),
        0,
    )  # fmt: skip
    assert db.table("t").info.version == 2
    found = rows_of(db)
    assert (found[100], found[3], found[6]) == ((1.0, "new"), (3.5, "up"), (6.0, "old"))
    assert 4 not in found
    assert 5 not in found
    aside = db.quarantine("t").to_pylist()
    assert [(row["stream"], row["batch"]) for row in aside] == [("orders", 0)] * 4
    assert sorted(row["reason"].split(" ")[0] for row in aside) == ["a", "a", "the", "there"]
    changes = db.changes("t", 1).to_pylist()
    kinds = {(row["_change_type"], row["k"]) for row in changes}
    assert kinds == {("insert", 100), ("update_preimage", 3), ("update_postimage", 3), ("delete", 4), ("delete", 5)}


def test_a_batch_is_taken_once_also_in_another_session(db: nearly.Session, tmp_path: Path) -> None:
    rows = batch((100, 1.0, "new", "insert"))
    for _ in range(2):
        Follower(db._engine, "t", "orders", "op").take(rows, 5)
    with driver_only(tmp_path / "catalog") as again:
        Follower(again._engine, "t", "orders", "op").take(rows, 5)
        Follower(again._engine, "t", "orders", "op").take(rows, 4)
        Follower(again._engine, "t", "others", "op").take(batch((101, 1.0, "new", "insert")), 0)
        assert again.table("t").info.version == 3
    assert len(rows_of(db)) == 12


def test_rows_of_a_table_without_a_key_are_a_bag(tmp_path: Path) -> None:
    with registered(driver_only(tmp_path / "catalog"), tmp_path, []) as db:
        follower = Follower(db._engine, "t", "orders", "op")
        for _ in range(2):
            follower.take(batch((1, 1.0, "old", "insert"), (1, 1.0, "old", "insert"), (2, 2.0, "old", "upsert")), 0)
        follower.take(batch((1, 1.0, "old", "delete"), (1, 1.0, "old", "delete"), (2, 0.0, "old", "delete")), 1)
        assert db.sql("select count(*) as n from t where k = 1").exact().table["n"].to_pylist() == [1]
        assert [row["reason"][:5] for row in db.quarantine("t").to_pylist()] == ["table", "there"]


def test_of_several_rows_with_a_key_the_last_one_counts_and_none_is_called_bad(db: nearly.Session) -> None:
    Follower(db._engine, "t", "orders", "op").take(
        batch(
            (1, None, None, "delete"), (1, 1.5, "again", "insert"), (50, 1.0, "gone", "insert"), (50, None, None, "delete"),
            (51, 1.0, "first", "insert"), (51, 2.0, "second", "upsert"), (2, 3.0, "there", "insert"),
        ),
        0,
    )  # fmt: skip
    found = rows_of(db)
    assert (found[1], found[51], found[2]) == ((1.5, "again"), (2.0, "second"), (2.0, "old"))
    assert 50 not in found
    assert [row["reason"] for row in db.quarantine("t").to_pylist()] == ["a row with this key is there already"]


@pytest.mark.parametrize("key", [["k"], []])
def test_updates_may_tell_what_was_there(tmp_path: Path, key: list[str]) -> None:
    """With a key, a former one that differs goes; without, a row as it was."""
    with registered(driver_only(tmp_path / "catalog"), tmp_path, key) as db:
        former = {"old_k": [3, None, 5], "old_v": [3.0, 4.0, 5.0], "old_s": ["old", "old", "old"]}
        rows = {"k": [30, 4, 5], "v": [9.0, 8.0, None], "s": ["a", "b", "c"], "op": ["update"] * 3} | former
        if not key:
            rows["old_k"] = [3, 4, 5]
        Follower(db._engine, "t", "orders", "op").take(pa.table(rows), 0)
        found = rows_of(db)
        assert (found[30], found[4], found[5], len(found)) == ((9.0, "a"), (8.0, "b"), (None, "c"), 10)
        assert db.quarantine("t").num_rows == 0


def test_a_row_may_come_and_go_in_one_batch_of_a_bag(tmp_path: Path) -> None:
    with registered(driver_only(tmp_path / "catalog"), tmp_path, []) as db:
        passing = [(70, 1.0, "new", kind) for kind in ("insert", "insert", "delete")]
        Follower(db._engine, "t", "orders", "op").take(batch(*passing, (71, 1.0, "new", "delete"), (1, 1.0, "old", "delete")), 0)
        assert db.sql("select k from t where k in (1, 70, 71)").exact().table["k"].to_pylist() == [70]
        assert [row["reason"] for row in db.quarantine("t").to_pylist()] == ["there is no such row to delete"]


def test_rows_that_somebody_else_cannot_take_are_put_aside(db: nearly.Session) -> None:
    done: list[int] = []
    also = Also(lambda rows: [(pc.greater(rows["v"], 5.0), "too much")], lambda: done.append(db.table("t").info.version))
    Follower(db._engine, "t", "orders", "op", also).take(
        batch((100, 9.0, "no", "insert"), (101, 1.0, "yes", "insert"), (7, 7.0, "old", "delete")), 0
    )
    assert set(rows_of(db)) == {*range(10), 101} - {7}
    assert [row["reason"] for row in db.quarantine("t").to_pylist()] == ["too much"]
    assert done == [2]


def test_good_records_are_read_at_once_as_one_by_one(db: nearly.Session) -> None:
    table = db.table("t").info
    good = [json.dumps({"k": number, "v": number / 7, "s": "größe"}).encode() for number in range(100)]
    for values, bad in (([], 0), (good, 0), ([*good, b"[]", b"", b'{"k": 1, "v": true, "s": "x"}', b"{}\n{}"], 4)):
        rows, poison = parsed(table, [None] * len(values), values)
        assert (rows.num_rows, len(poison)) == (len(values) - bad, bad)
        assert rows.slice(0, 100).drop_columns(["nearly_op"]).to_pylist() == [json.loads(each) for each in values[:100]]
    rows, poison = parsed(table, [None], [b'{"k": 1, "v": 9007199254740993, "s": "x"}'])
    assert (rows.num_rows, len(poison)) == (0, 1)  # no double is that number
    assert parsed(table, [b"7", b"8"], [None, None], None, ["delete", "insert"])[1] == [
        {"reason": "the record has no value", "record": "8"}
    ]


def test_questions_are_answered_between_the_changes_around_them(
    db: nearly.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the process ends in the midst of a batch, which then comes again."""

    def ask(aggregate: str, **_: Any) -> nearly.Answer:
        asked.append(aggregate)
        return db.sql(f"select {aggregate} as n from t").exact()

    def post(_servers: str, _topic: str, messages: list[tuple[bytes, bytes]], _settings: Any) -> None:
        if len(sent) < 1:
            sent.append(())
            raise ConnectionError
        sent.append(tuple(json.loads(value)["rows"][0]["n"] for _, value in messages))

    asked: list[str] = []
    sent: list[tuple[int, ...]] = []
    monkeypatch.setattr("nearly.engine.changes.questions.send", post)
    taker = QuestionTaker(Follower(db._engine, "t", "kafka", None), ask, tmp_path / "replies.json", "", Topics(), {})
    question = {"aggregate": "count(*)"}
    brought = [
        ("insert", {"k": 50, "v": 1.0, "s": "x"}), ("execute", question), ("execute", question), ("delete", {"k": 1}),
        ("execute", question), ("insert", {"k": 51, "v": 1.0, "s": "x"}), ("insert", {"k": 50, "v": 2.0, "s": "x"}),
    ]  # fmt: skip
    came = records(*((None, value) for _, value in brought)).set_column(0, "topic", pa.array([topic for topic, _ in brought]))
    with pytest.raises(ConnectionError):
        taker.take(came, 3)
    taker.take(came, 3)
    assert sent == [(), (11, 11, 10)]
    assert len(asked) == 3
    assert db.table("t").info.rows == 11
    assert db.quarantine("t")["reason"].to_pylist() == ["a row with this key is there already"]


def records(*pairs: tuple[Any, Any]) -> pa.Table:
    """Records of Kafka, the n-th at time n."""
    keys = [None if key is None else json.dumps(key).encode() for key, _ in pairs]
    values = [value if value is None or isinstance(value, bytes) else json.dumps(value).encode() for _, value in pairs]
    count = len(pairs)
    return pa.table({
        "topic": ["t"] * count, "partition": pa.array([0] * count, pa.int32()), "offset": list(range(count)),
        "timestamp": list(range(count)), "key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary()),
    })  # fmt: skip


def test_records_are_upserts_and_one_without_a_value_deletes(db: nearly.Session) -> None:
    follower = Follower(db._engine, "t", "kafka", None)
    follower.take_records(
        records(
            (3, {"k": 3, "v": 1, "S": "up"}), (None, {"k": 50, "v": None, "s": "größe"}), (4, None), ({"k": 5}, None),
            (None, b"{broken"), (None, {"k": 1}), (None, {"k": "1", "v": 1.0, "s": "x"}), (None, [1, 2]),
            (None, {"k": 2, "v": 1.0, "s": "x", "y": 1}),
            (None, {"k": 1.5, "v": 1.0, "s": "x"}), (None, {"k": 6, "v": True, "s": "x"}),
        ),
        0,
    )  # fmt: skip
    found = rows_of(db)
    assert (found[3], found[50]) == ((1.0, "up"), (None, "größe"))
    assert not {4, 5} & found.keys()
    assert db.quarantine("t").num_rows == 7
    assert {key: found[key] for key in (1, 2, 6)} == {key: (float(key), "old") for key in (1, 2, 6)}


def test_a_stream_needs_a_name_and_a_table(db: nearly.Session) -> None:
    with pytest.raises(SchemaError, match="names the stream"):
        db.follow("t", None, source="../x")
    with pytest.raises(SchemaError, match="streaming DataFrame"):
        db.follow("t", None)


def test_files_that_appear_are_followed_and_go_on_after_a_restart(spark: Any, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()

    def post(name: str, *rows: dict[str, Any]) -> None:
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)) + "\n")
        (tmp_path / name).rename(inbox / f"{name}.json")

    with registered(nearly.connect(spark, path=tmp_path / "catalog"), tmp_path, ["k"]) as db:
        stream = spark.readStream.schema("k bigint, v double, s string, op string").json(f"file://{inbox}")
        post("1", {"k": 100, "v": 1.0, "s": "a", "op": "insert"}, {"k": 1, "v": 5.0, "s": "b", "op": "upsert"})
        following = db.follow("t", stream, op="op")
        following.drain()
        following.stop()
        assert rows_of(db)[1] == (5.0, "b")
        post("2", {"k": 100, "op": "delete"}, {"k": 200, "v": 2.0, "s": "c", "op": "insert"})
        following = db.follow("t", stream, op="op")
        following.drain()
        following.stop()
        assert set(rows_of(db)) == {*range(10), 200}
        assert db.table("t").info.version == 3


def test_kafka(spark: Any, tmp_path: Path) -> None:
    from confluent_kafka import Producer

    broker = Producer({"bootstrap.servers": "ignored", "test.mock.num.brokers": 1})
    servers = next(iter(broker.list_topics(timeout=10).brokers.values()))
    address = f"{servers.host}:{servers.port}"
    with registered(nearly.connect(spark, path=tmp_path / "catalog"), tmp_path, ["k"]) as db:
        posting = Producer({"bootstrap.servers": address})
        for key, value in ((b"7", b'{"k": 7, "v": 0.5, "s": "kafka"}'), (b"8", None), (b"9", b"nonsense")):
            posting.produce("changes", value=value, key=key)
        posting.flush(10)
        following = db.follow_kafka("t", address, ["changes"])
        following.drain()
        following.stop()
        found = rows_of(db)
        assert found[7] == (0.5, "kafka")
        assert 8 not in found
        assert [row["record"] for row in db.quarantine("t").to_pylist()] == ["nonsense"]


def test_nothing_of_a_stream_outlives_its_table(db: nearly.Session, tmp_path: Path) -> None:
    """A table of the same name would go on with the old one's checkpoint, and lack what came before."""
    follower = Follower(db._engine, "t", "orders", "op")
    follower.take(batch((None, 1.0, "no key", "insert")), 0)
    follower.checkpoint.mkdir(parents=True)
    home = db._engine.catalog.directory("t")
    db.drop("t")
    assert not home.exists()
    registered(db, tmp_path, ["k"])
    assert db.quarantine("t").num_rows == 0
    follower.take(batch((100, 1.0, "new", "insert")), 0)
    assert 100 in rows_of(db)
