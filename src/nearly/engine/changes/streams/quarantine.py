"""Records of streams that could not be used: written down beside the table, with the reason, for people to read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearly.engine.storage.catalog import QUARANTINE
from nearly.engine.storage.durable import write_durably, writing_in

SCHEMA = pa.schema([("stream", pa.string()), ("batch", pa.int64()), ("reason", pa.string()), ("record", pa.string())])


def put_aside(directory: Path, stream: str, number: int, records: Sequence[dict[str, Any]]) -> None:
    """Write down the records of one batch; the same batch again replaces them."""
    if not records:
        return
    place = directory / QUARANTINE
    with writing_in(place):
        place.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"stream": stream, "batch": number, **record}, default=str, ensure_ascii=False) for record in records]
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", stream)[:60]
    write_durably(place / f"{plain}-{number:012d}.jsonl", ("\n".join(lines) + "\n").encode())


def read_aside(directory: Path) -> pa.Table:
    """All records put aside, in order of streams and batches; a record is its JSON text."""
    found: list[dict[str, Any]] = []
    for file in sorted((directory / QUARANTINE).glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            read = json.loads(line)
            record = read["record"]
            found.append(
                read | {"record": record if isinstance(record, str) or record is None else json.dumps(record, ensure_ascii=False)}
            )
    return pa.Table.from_pylist(found, schema=SCHEMA)


def count_aside(directory: Path) -> int:
    """How many records were put aside."""
    return sum(file.read_bytes().count(b"\n") for file in (directory / QUARANTINE).glob("*.jsonl"))
