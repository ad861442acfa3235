"""A synopsis on disk: a snapshot and a log of the batches applied since.

    <directory>/synopsis.json           definition and the number of the snapshot; replacing this file is the commit
    <directory>/snapshot-<number>/      one file per tree
    <directory>/log/<number>.npz        one file per batch, whole or absent
    <directory>/quarantine/<batch>      records that could not be used, one file per batch

Law: a batch is acknowledged when its file is in place; opening again replays exactly the batches after the snapshot, in order, so
none is lost and none is applied twice. Old log files stay: together with the table they are the archive.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nearly.engine.locks import exclusive, is_free
from nearly.errors import EngineError
from nearly.synopsis.build.definition import Definition
from nearly.synopsis.build.packing import from_bytes, pack_rows, pack_state, to_bytes, unpack_rows, unpack_state
from nearly.synopsis.structure.state import State
from nearly.synopsis.upkeep.changes import Change, Changes

DESCRIPTION = "synopsis.json"
LOG = "log"
QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes with what else must survive with them: where they came from, new texts, and answers given on the way."""

    changes: Changes
    stream: str | None = None
    number: int | None = None
    texts: Mapping[str, list[str]] = field(default_factory=dict)
    replies: tuple[Mapping[str, Any], ...] = ()


class Store:
    """The files of one synopsis. The first write takes the right to write; another writer is an error, readers are not."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._owned = ExitStack()
        self._writing = False

    def close(self) -> None:
        self._owned.close()
        self._writing = False

    def own(self) -> None:
        """Become the only writer."""
        if self._writing:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        lock = self.directory / "owner"
        if not is_free(lock):
            raise EngineError(f"the synopsis in {self.directory} is being changed by another session; close that one first")
        self._owned.enter_context(exclusive(lock))
        self._writing = True

    def save(self, definition: Definition, states: list[State], number: int, streams: Mapping[str, int]) -> None:
        """Commit a snapshot of the states after batch `number`."""
        self.own()
        name = f"snapshot-{number}-{uuid.uuid4().hex[:8]}"
        folder = self.directory / name
        folder.mkdir(parents=True)
        for place, state in enumerate(states):
            write_durably(folder / f"tree-{place}.npz", to_bytes(pack_state(state)))
        description = definition.to_json() | {"snapshot": name, "number": number, "streams": dict(streams)}
        write_durably(self.directory / DESCRIPTION, json.dumps(description, ensure_ascii=False).encode())
        for old in self.directory.glob("snapshot-*"):
            if old.name != name:
                shutil.rmtree(old, ignore_errors=True)

    def load(self) -> tuple[Definition, list[State], int, dict[str, int]]:
        """The definition, the states of the snapshot, its number, and the last batch of each stream."""
        try:
            text = (self.directory / DESCRIPTION).read_text(encoding="utf-8")
            definition, found = Definition.from_json(text), json.loads(text)
            folder = self.directory / found["snapshot"]
            states = [
                unpack_state(from_bytes((folder / f"tree-{place}.npz").read_bytes())) for place in range(len(definition.shapes))
            ]
        except (OSError, KeyError, ValueError) as trouble:
            raise EngineError(
                f"the synopsis in {self.directory} cannot be read: {trouble}; drop it and build it again"
            ) from trouble
        return definition, states, int(found["number"]), dict(found["streams"])

    def append(self, number: int, batch: Batch) -> None:
        """Acknowledge a batch."""
        self.own()
        meta = {"stream": batch.stream, "number": batch.number, "texts": dict(batch.texts), "replies": list(batch.replies),
                "inserts": [change.insert for change in batch.changes]}  # fmt: skip
        arrays: dict[str, Any] = {"meta": np.frombuffer(json.dumps(meta, ensure_ascii=False).encode(), np.uint8)}
        for place, change in enumerate(batch.changes):
            arrays |= pack_rows(change.rows, f"{place}_")
        (self.directory / LOG).mkdir(exist_ok=True)
        write_durably(self._file(number), to_bytes(arrays))

    def read(self, number: int) -> Batch:
        arrays = from_bytes(self._file(number).read_bytes())
        meta = json.loads(arrays["meta"].tobytes())
        changes = tuple(Change(insert, unpack_rows(arrays, f"{place}_")) for place, insert in enumerate(meta["inserts"]))
        return Batch(changes, meta["stream"], meta["number"], meta["texts"], tuple(meta["replies"]))

    def after(self, number: int, upto: int | None = None) -> Iterator[tuple[int, Batch]]:
        """The batches after a number, in order."""
        while (upto is None or number < upto) and self._file(number + 1).exists():
            number += 1
            yield number, self.read(number)

    def quarantine(self, records: list[dict[str, Any]], stream: str, number: int) -> None:
        """Put aside what of a batch could not be used, one line each; the same batch again replaces its own."""
        folder = self.directory / QUARANTINE
        folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(record, ensure_ascii=False, default=str) for record in records]
        write_durably(folder / f"{stream}-{number:012d}.jsonl", ("\n".join(lines) + "\n").encode())

    @property
    def quarantined(self) -> int:
        """How many records were put aside."""
        return sum(path.read_bytes().count(b"\n") for path in (self.directory / QUARANTINE).glob("*.jsonl"))

    def _file(self, number: int) -> Path:
        return self.directory / LOG / f"{number:012d}.npz"


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file so that a crash leaves the old one or the new one."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise EngineError(f"cannot write {path}: {error.strerror}; the old state is kept") from error
