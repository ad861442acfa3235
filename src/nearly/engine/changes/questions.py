"""Kafka as JanusAQP uses it: topics of inserts and deletes for the table, and one of questions, answered in order of their times.

A question is a record such as
    {"id": "q1", "aggregate": "sum", "where": {"pickup": [10, 20], "city": "Paris"}, "by": null, "confidence": 0.95}
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearly.answer import Answer
from nearly.engine.changes.streams.following import Follower
from nearly.engine.changes.streams.stream_rows import DELETE, INSERT
from nearly.engine.spark.kafka_source import kafka_stream, send
from nearly.engine.spark.stream_follow import Following, follow_stream
from nearly.engine.storage.durable import write_durably
from nearly.errors import NearlyError

RUNS = 1 << 24
"""A micro-batch is taken as so many batches of the table at most: one for each run of changes between questions."""
_KNOWN = {"id", "aggregate", "where", "by", "confidence"}
Reply = Mapping[str, Any]


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


@dataclass(frozen=True, slots=True)
class QuestionTaker:
    """Takes changes into the table, and posts answers to the reply topic.

    Law: a question is answered from the table after the changes before it and before those after it, also when the process was
    killed between them, since answers are written down before the changes that follow are taken. An answer is posted at least once:
    after a crash it may come again, with the same text.
    """

    follower: Follower
    ask: Callable[..., Answer]
    replies: Path
    servers: str
    topics: Topics
    settings: Mapping[str, str]

    def follow(self, spark: Any, checkpoint: Path | None, every: str) -> Following:
        stream = kafka_stream(spark, self.servers, self.topics.read, self.settings)
        return follow_stream(stream, checkpoint or self.follower.checkpoint, self.take, every)

    def take(self, records: pa.Table, number: int) -> None:
        """One micro-batch."""
        given = self._given(number)
        asked = 0
        for run, (questions, places, ordered) in enumerate(self._runs(records)):
            values = ordered["value"].to_pylist()
            if not questions:
                kinds = [DELETE if topic == self.topics.delete else INSERT for topic in ordered["topic"].to_pylist()]
                self.follower.take_values([None] * len(values), values, number * RUNS + run, kinds)
                continue
            asked += len(values)
            if asked > len(given):
                given += [
                    answered(self.ask, value, f"{self.topics.execute}:{place}") for place, value in zip(places, values, strict=True)
                ]
                write_durably(self.replies, json.dumps({"batch": number, "replies": given}, default=str).encode())
        if given:
            send(self.servers, self.topics.reply, [encoded(reply) for reply in given], self.settings)

    def _given(self, number: int) -> list[Reply]:
        """Answers that were given before this micro-batch was broken off."""
        try:
            known = json.loads(self.replies.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return list(known["replies"]) if known["batch"] == number else []

    def _runs(self, records: pa.Table) -> Iterator[tuple[bool, Sequence[int], pa.Table]]:
        """Runs of changes and of questions in order of time, with the offsets; at equal times changes come first."""
        ranked = records.append_column(
            "question", pa.array([topic == self.topics.execute for topic in records["topic"].to_pylist()])
        )
        ordered = ranked.sort_by(
            [("timestamp", "ascending"), ("question", "ascending"), ("partition", "ascending"), ("offset", "ascending")]
        )
        for questions, places in itertools.groupby(enumerate(ordered["question"].to_pylist()), key=lambda each: each[1]):
            chosen = [place for place, _ in places]
            run = ordered.slice(chosen[0], len(chosen))
            yield questions, run["offset"].to_pylist(), run


def answered(ask: Callable[..., Answer], value: bytes | None, fallback_id: str) -> Reply:
    """The answer to one record; a question that cannot be answered says why."""
    try:
        question = json.loads(value or b"")
    except ValueError as trouble:
        return {"id": fallback_id, "error": str(trouble)}
    if not isinstance(question, dict) or "aggregate" not in question or set(question) - _KNOWN:
        return {"id": fallback_id, "error": f"a question is an object with {', '.join(sorted(_KNOWN))}; 'aggregate' is needed"}
    name = str(question.get("id", fallback_id))
    try:
        found = ask(
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


def encoded(reply: Reply) -> tuple[bytes, bytes]:
    """A reply as key and value of a record."""
    return str(reply["id"]).encode(), json.dumps(reply, default=str, ensure_ascii=False).encode()
