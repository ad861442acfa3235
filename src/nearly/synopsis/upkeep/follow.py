"""Following streams, effectively once: a batch is known by the name of its stream and its number, also after a restart.

A question that Kafka brings is a record such as
    {"id": "q1", "aggregate": "sum", "where": {"pickup": [10, 20], "city": "Paris"}, "by": null, "confidence": 0.95}
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nearly.engine.changes.quarantine import put_aside
from nearly.engine.spark.kafka_source import kafka_stream, send
from nearly.engine.spark.stream_follow import Following, follow_stream
from nearly.errors import NearlyError, SchemaError
from nearly.synopsis.upkeep.intake import Step
from nearly.synopsis.upkeep.records import DELETE, INSERT, Poison, SortedRecords, parsed, sorted_rows

if TYPE_CHECKING:
    from nearly.synopsis.synopsis import Synopsis

_KNOWN = {"id", "aggregate", "where", "by", "confidence"}


def follow(synopsis: Synopsis, stream: Any, name: str, op: str | None, checkpoint: Path | None, every: str) -> Following:
    """Take the rows of a streaming DataFrame as they come."""

    def take(table: pa.Table, number: int) -> None:
        def make() -> Sequence[Step]:
            found = sorted_rows(synopsis.intake, table, op)
            _quarantine(synopsis, found.poison, name, number)
            return found.changes

        synopsis.intake.apply(make, (name, number))
        synopsis.look_after()

    return follow_stream(stream, checkpoint or _checkpoint(synopsis, name), take, every)


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of a Kafka follower, as JanusAQP has them, and where answers go."""

    insert: str = "insert"
    delete: str = "delete"
    execute: str = "execute"
    reply: str = "reply"

    @property
    def read(self) -> tuple[str, ...]:
        """In the order in which their ends are looked up: data that came before a question is never left out."""
        return self.execute, self.insert, self.delete


def follow_kafka(
    synopsis: Synopsis, spark: Any, servers: str, topics: Topics, name: str, checkpoint: Path | None, every: str,
    settings: Mapping[str, str],
) -> Following:  # fmt: skip
    """Take inserts, deletes and questions from Kafka in the order of their times; answers are posted to the reply topic.

    An answer is posted at least once: after a crash it may come again, with the same text.
    """

    def take(table: pa.Table, number: int) -> None:
        def make() -> Sequence[Step]:
            steps, poison = _steps(synopsis, table, topics)
            _quarantine(synopsis, poison, name, number)
            return steps

        replies = synopsis.intake.apply(make, (name, number))
        synopsis.look_after()
        if replies:
            send(servers, topics.reply, [encoded(reply) for reply in replies], settings)

    stream = kafka_stream(spark, servers, topics.read, settings)
    return follow_stream(stream, checkpoint or _checkpoint(synopsis, name), take, every)


def _steps(synopsis: Synopsis, table: pa.Table, topics: Topics) -> tuple[list[Step], Poison]:
    """Runs of changes between questions, in order of time; at equal times changes come first."""
    ranked = table.append_column("question", pa.array([topic == topics.execute for topic in table.column("topic").to_pylist()]))
    ordered = ranked.sort_by(
        [("timestamp", "ascending"), ("question", "ascending"), ("partition", "ascending"), ("offset", "ascending")]
    )
    kinds, values = ordered.column("topic").to_pylist(), ordered.column("value").to_pylist()
    offsets = ordered.column("offset").to_pylist()
    steps: list[Step] = []
    poison: Poison = []
    for asks, places in itertools.groupby(range(len(kinds)), key=lambda place: kinds[place] == topics.execute):
        if asks:
            steps += [_question(synopsis, values[place], f"{topics.execute}:{offsets[place]}") for place in places]
        else:
            found = _changes(synopsis, [(kinds[place], values[place]) for place in places], topics)
            steps += found.changes
            poison += found.poison
    return steps, poison


def _question(synopsis: Synopsis, value: bytes | None, fallback_id: str) -> Step:
    return lambda: answered(synopsis, value, fallback_id)


def _changes(synopsis: Synopsis, records: list[tuple[str, bytes | None]], topics: Topics) -> SortedRecords:
    found = SortedRecords()
    for topic, kind in ((topics.insert, INSERT), (topics.delete, DELETE)):
        mine = [value for each, value in records if each == topic]
        if mine:
            table, poison = parsed(synopsis.schema, mine)
            found.poison += poison
            if table.num_rows:
                sorted_ = sorted_rows(synopsis.intake, table.append_column("_op", pa.array([kind] * table.num_rows)), "_op")
                found.changes += sorted_.changes
                found.poison += sorted_.poison
    return found


def answered(synopsis: Synopsis, value: bytes | None, fallback_id: str) -> Mapping[str, Any]:
    """The answer to one record; a question that cannot be answered says why."""
    try:
        question = json.loads(value or b"")
    except ValueError as trouble:
        return {"id": fallback_id, "error": str(trouble)}
    if not isinstance(question, dict) or "aggregate" not in question or set(question) - _KNOWN:
        return {"id": fallback_id, "error": f"a question is an object with {', '.join(sorted(_KNOWN))}; 'aggregate' is needed"}
    name = str(question.get("id", fallback_id))
    try:
        found = synopsis.query(
            question["aggregate"],
            by=question.get("by"),
            confidence=question.get("confidence", 0.95),
            **(question.get("where") or {}),
        )
    except (NearlyError, TypeError) as trouble:
        return {"id": name, "error": str(trouble)}
    bounds = {"low": found.low, "high": found.high, "hard_low": found.hard_low, "hard_high": found.hard_high}
    reply: dict[str, Any] = {"id": name, "exact": found.exact, "confidence": found.confidence, "source": found.source}
    reply["rows"] = found.table.to_pylist()
    for bound, table in bounds.items():
        reply[bound] = [[_finite(cell) for cell in row.values()] for row in table.to_pylist()]
    return reply


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def encoded(reply: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """A reply as key and value of a record."""
    return str(reply["id"]).encode(), json.dumps(reply, default=str, ensure_ascii=False).encode()


def _quarantine(synopsis: Synopsis, records: Poison, name: str, number: int) -> None:
    if synopsis.store is not None:
        put_aside(synopsis.store.directory, name, number, records)


def _checkpoint(synopsis: Synopsis, name: str) -> Path:
    if synopsis.store is None:
        raise SchemaError("a synopsis that is not stored needs checkpoint=... to follow a stream")
    return synopsis.store.directory / "checkpoints" / name
