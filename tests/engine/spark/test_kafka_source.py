"""Kafka's offsets: what the broker does not have any more is an error, never a jump.

The broker is the client's own, which speaks Kafka's protocol over TCP and keeps about 5 MB of a partition.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nearly.engine.spark.kafka_source import RESET, KafkaRange, KafkaReader, send
from nearly.errors import EngineError

LARGE = b"x" * 900_000


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    from confluent_kafka import Producer

    broker = Producer({"bootstrap.servers": "ignored", "test.mock.num.brokers": 1})
    listed = broker.list_topics(timeout=10)
    yield ",".join(f"{each.host}:{each.port}" for each in listed.brokers.values())
    del broker


def reader(servers: str, topic: str, **settings: str) -> KafkaReader:
    return KafkaReader({"servers": servers, "topics": topic, **{f"kafka.{name}": value for name, value in settings.items()}})


def offsets(found: KafkaReader, ranges: list[KafkaRange]) -> list[tuple[int, int]]:
    return [
        (partition, offset)
        for each in ranges
        for batch in found.read(each)
        for partition, offset in zip(batch["partition"].to_pylist(), batch["offset"].to_pylist(), strict=True)
    ]


def posted(servers: str, topic: str, count: int, value: bytes = b"1") -> None:
    for _ in range(count):  # one by one: the broker forgets whole messages
        send(servers, topic, [(b"one key, one partition", value)])


@pytest.fixture(scope="module")
def outlived(servers: str) -> dict[str, int]:
    """The offsets of a topic of which the broker has removed the first records since."""
    posted(servers, "outlived", 2)
    before = reader(servers, "outlived").initialOffset()
    posted(servers, "outlived", 9, LARGE)
    low = reader(servers, "outlived").initialOffset()
    assert any(low[place] > before[place] for place in low), "the broker must have removed something"
    return before


def test_law_every_record_between_two_offsets_is_read_once(servers: str) -> None:
    posted(servers, "whole", 5)
    found = reader(servers, "whole")
    start = found.initialOffset()
    middle = found.latestOffset(start, None)
    posted(servers, "whole", 3)
    end = found.latestOffset(middle, None)
    first, second = (offsets(found, [*found.partitions(a, b)]) for a, b in ((start, middle), (middle, end)))
    assert [offset for _, offset in first + second] == list(range(8))
    assert not found.partitions(end, end)


def test_records_that_retention_removed_are_an_error(servers: str, outlived: dict[str, int]) -> None:
    found = reader(servers, "outlived")
    with pytest.raises(EngineError, match=r"kept only from .* records are lost"):
        found.partitions(outlived, found.latestOffset(outlived, None))


def test_going_on_with_what_is_there_must_be_asked_for(servers: str, outlived: dict[str, int]) -> None:
    found = reader(servers, "outlived", **{RESET: "earliest"})
    low, high = found.initialOffset(), found.latestOffset(outlived, None)
    read = offsets(found, [*found.partitions(outlived, high)])
    assert [offset for _, offset in read] == [offset for place in low for offset in range(low[place], high[place])]


def test_a_new_partition_begins_where_the_broker_says(servers: str, outlived: dict[str, int]) -> None:
    found = reader(servers, "outlived")
    low, high = found.initialOffset(), found.latestOffset({}, None)
    assert {f"{each.topic}:{each.partition}": each.start for each in found.partitions({}, high)}.items() <= low.items()
    assert outlived


@pytest.mark.long
def test_a_range_that_is_gone_when_it_is_read_is_an_error(servers: str, outlived: dict[str, int]) -> None:
    found = reader(servers, "outlived")
    (gone,) = [place for place, low in found.initialOffset().items() if low]
    topic, partition = gone.rsplit(":", 1)
    with pytest.raises(EngineError, match="Kafka topic 'outlived'"):
        offsets(found, [KafkaRange(topic, int(partition), 0, 2)])


def test_a_topic_that_was_made_anew_is_an_error(servers: str) -> None:
    posted(servers, "anew", 2)
    found = reader(servers, "anew")
    end = found.latestOffset({}, None)
    later = {place: offset + 100 for place, offset in end.items()}
    with pytest.raises(EngineError, match="made anew"):
        found.partitions(later, end)
    with pytest.raises(EngineError, match="are gone"):
        found.partitions(end | {"anew:99": 5}, end)
