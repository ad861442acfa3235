"""Kafka as a Spark streaming source without extra jars, through PySpark's Python data sources and confluent-kafka.

    spark.dataSource.register(KafkaSource)
    spark.readStream.format("nearly_kafka").option("servers", "host:9092").option("topics", "a,b").load()

Offsets are Spark's: it plans ranges, tasks read them, and its checkpoint remembers them. Every other option whose name starts with
`kafka.` goes to the client without that prefix.

Records that the broker removed before they were read, and offsets that it no longer has, are an `EngineError`: going on elsewhere
would lose records without a word. Who wants that asks for it by the client's own option `kafka.auto.offset.reset=earliest`; the
stream then goes on with the oldest record there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from nearly.engine import pyspark_loaded  # noqa: F401  # isort: skip
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from nearly.errors import EngineError, SchemaError

FORMAT = "nearly_kafka"
SCHEMA = "topic string, partition int, offset bigint, timestamp bigint, key binary, value binary"
_ARROW = pa.schema([
    ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("timestamp", pa.int64()),
    ("key", pa.binary()), ("value", pa.binary()),
])  # fmt: skip
SECONDS = 30.0
MOST_PER_BATCH = 10_000
RESET = "auto.offset.reset"
EARLIEST = ("earliest", "smallest", "beginning")


class KafkaSource(DataSource):
    """The data source; its rows are records with the time in milliseconds."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> KafkaReader:  # noqa: ARG002, N802  (name and arguments are PySpark's)
        return KafkaReader(dict(self.options))


class KafkaRange(InputPartition):
    """Records [start, end) of one partition of a topic."""

    def __init__(self, topic: str, partition: int, start: int, end: int) -> None:
        super().__init__((topic, partition, start, end))
        self.topic, self.partition, self.start, self.end = topic, partition, start, end


class KafkaReader(DataSourceStreamReader):
    """Offsets are `topic:partition` -> next record."""

    def __init__(self, options: Mapping[str, str]) -> None:
        lowered = {name.lower(): value for name, value in options.items()}
        if "servers" not in lowered or "topics" not in lowered:
            raise SchemaError("a Kafka stream needs the options 'servers' (host:port,...) and 'topics' (a,b,...)")
        self._servers = lowered["servers"]
        self._topics = [topic.strip() for topic in lowered["topics"].split(",")]
        self._settings = {name.removeprefix("kafka."): value for name, value in lowered.items() if name.startswith("kafka.")}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {place: low for place, (low, _) in self._watermarks().items()}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: ARG002, N802
        return {place: high for place, (_, high) in self._watermarks().items()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[KafkaRange]:
        """What lies between two offsets; a partition that is new begins where the broker says that it begins."""
        if gone := start.keys() - end.keys():
            raise EngineError(f"Kafka partitions {', '.join(sorted(gone))} are gone; start anew with another checkpoint")
        marks = self._watermarks()
        found = []
        for place, stop in end.items():
            topic, partition = place.rsplit(":", 1)
            begin = self._begin(place, start.get(place), marks.get(place, (0, stop)))
            if stop > begin:
                found.append(KafkaRange(topic, int(partition), begin, stop))
        return found

    def _begin(self, place: str, known: int | None, marks: tuple[int, int]) -> int:
        """The first record to read of a partition; one that the broker does not have any more, or not again, is an error."""
        low, high = marks
        if known is None:
            return low
        if low <= known <= high:
            return known
        if str(self._settings.get(RESET, "")).lower() in EARLIEST:
            return low
        what = f"kept only from {low} on" if known < low else f"ends at {high}, so it was made anew"
        raise EngineError(
            f"Kafka {place} is wanted from offset {known} and {what}: records are lost. Start anew with another checkpoint, or go "
            f"on with what is there by settings={{'{RESET}': 'earliest'}}"
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a range. Offsets may have gaps (compaction, transactions), also before its end."""
        from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415  (an optional dependency, needed here only)

        if not isinstance(partition, KafkaRange):
            raise EngineError(f"a Kafka reader cannot read {partition!r}")
        consumer = Consumer(self._client() | {"enable.partition.eof": True, RESET: "error"})  # a range is planned, or an error
        try:
            consumer.assign([TopicPartition(partition.topic, partition.partition, partition.start)])
            yield from _records(consumer, partition)
        finally:
            consumer.close()

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to do: Spark's checkpoint holds the offsets."""

    def stop(self) -> None:
        """Nothing to do: a consumer lives only while a range is read."""

    def _client(self) -> dict[str, Any]:
        return {"bootstrap.servers": self._servers, "group.id": "nearly", "enable.auto.commit": False, **self._settings}

    def _watermarks(self) -> dict[str, tuple[int, int]]:
        from confluent_kafka import Consumer, KafkaException, TopicPartition  # noqa: PLC0415

        consumer = Consumer(self._client())
        try:
            return {
                f"{topic}:{partition}": consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=SECONDS)
                for topic in self._topics
                for partition in _partitions(consumer, topic)
            }
        except KafkaException as trouble:
            raise EngineError(f"Kafka at {self._servers} cannot be reached: {trouble}") from trouble
        finally:
            consumer.close()


def _partitions(consumer: Any, topic: str) -> list[int]:
    metadata = consumer.list_topics(topic, timeout=SECONDS).topics[topic]
    if metadata.error is not None:
        raise EngineError(f"Kafka topic {topic!r}: {metadata.error}")
    return list(metadata.partitions)


def _records(consumer: Any, wanted: KafkaRange) -> Iterator[pa.RecordBatch]:
    from confluent_kafka import KafkaError  # noqa: PLC0415

    position = wanted.start
    while position < wanted.end:
        messages = consumer.consume(min(MOST_PER_BATCH, wanted.end - position), timeout=SECONDS)
        if not messages:
            raise EngineError(f"Kafka topic {wanted.topic!r} gave no record at offset {position} within {SECONDS:g} s")
        batch = []
        for message in messages:
            if message.error() is None:
                position = message.offset() + 1
                if position <= wanted.end:
                    batch.append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                position = max(position, message.offset())  # before the end of the range, more will come, or nothing in time
            else:
                raise EngineError(f"Kafka topic {wanted.topic!r}: {message.error()}")
        if batch:
            yield _as_arrow(batch)


def _as_arrow(messages: Sequence[Any]) -> pa.RecordBatch:
    lines = [(m.topic(), m.partition(), m.offset(), m.timestamp()[1], m.key(), m.value()) for m in messages]
    columns = zip(*lines, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)], schema=_ARROW
    )


def send(servers: str, topic: str, messages: Sequence[tuple[bytes, bytes]], settings: Mapping[str, Any] | None = None) -> None:
    """Post (key, value) records and wait until the broker has them all."""
    from confluent_kafka import Producer  # noqa: PLC0415

    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, **(settings or {})})
    failures: list[str] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            failures.append(str(error))

    for key, value in messages:
        producer.produce(topic, value=value, key=key, on_delivery=delivered)
    left = producer.flush(SECONDS)
    if left or failures:
        raise EngineError(f"{left + len(failures)} records could not be posted to Kafka topic {topic!r}: {failures[:1]}")


def kafka_stream(spark: Any, servers: str, topics: Sequence[str], settings: Mapping[str, str] | None = None) -> Any:
    """A streaming DataFrame of records from Kafka."""
    spark.dataSource.register(KafkaSource)
    reader = spark.readStream.format(FORMAT).option("servers", servers).option("topics", ",".join(topics))
    for name, value in (settings or {}).items():
        reader = reader.option(f"kafka.{name}", value)
    return reader.load()
