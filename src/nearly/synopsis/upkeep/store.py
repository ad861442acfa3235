"""A synopsis on disk: a snapshot and a log of the batches applied since.

    <directory>/synopsis.json           definition and the number of the snapshot; replacing this file is the commit
    <directory>/snapshot-<number>/      one file per tree
    <directory>/log/<number>.npz        one file per batch, whole or absent
    <directory>/quarantine/<batch>      records that could not be used, one file per batch

Law: a batch is acknowledged when its file is in place; opening again replays exactly the batches after the snapshot, in order, so
none is lost and none is applied twice. Old log files stay: together with the table they are the archive. A file of the log is
never replaced. What a killed writer left half-written is removed when the synopsis is next opened or written to.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nearly.engine.storage.durable import write_durably, writing_in
from nearly.engine.storage.locks import exclusive, is_free
from nearly.errors import EngineError
from nearly.synopsis.build.definition import Definition
from nearly.synopsis.build.packing import from_bytes, pack_rows, pack_state, to_bytes, unpack_rows, unpack_state
from nearly.synopsis.structure.state import TreeState
from nearly.synopsis.upkeep.archive import Change, Changes

DESCRIPTION = "synopsis.json"
LOG = "log"
OWNER = "owner"
QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True)
class LoggedBatch:
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

    @property
    def writing(self) -> bool:
        """Whether this is the writer."""
        return self._writing

    def own(self, identity: str | None = None) -> None:
        """Become the only writer; `identity` is that of the synopsis that was opened, which must still be the one that is here."""
        if self._writing:
            return
        with writing_in(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
        lock = self.directory / OWNER
        if not is_free(lock):
            raise EngineError(f"the synopsis in {self.directory} is being changed by another session; close that one first")
        self._owned.enter_context(exclusive(lock))
        self._writing = True
        if identity is not None and self._identity() != identity:
            self.close()
            raise EngineError(
                f"the synopsis in {self.directory} was dropped by another session; ask db.synopsis() in a new session"
            )
        self._sweep()

    def _identity(self) -> str | None:
        try:
            return str(json.loads((self.directory / DESCRIPTION).read_text(encoding="utf-8"))["identity"])
        except (OSError, KeyError, ValueError):
            return None

    def clear(self) -> None:
        """Remove what a synopsis of this name, dropped by someone who was killed, left behind."""
        self.own()
        with writing_in(self.directory):
            for each in self.directory.iterdir():
                if each.is_dir():
                    shutil.rmtree(each)
                elif each.name != OWNER:
                    each.unlink()

    def tidy(self) -> None:
        """Remove what a killed writer left half-written, unless somebody is writing or nothing may be written here."""
        lock = self.directory / OWNER
        with contextlib.suppress(EngineError, OSError):
            if not self._writing and self._leftovers() and is_free(lock):
                with exclusive(lock):
                    self._sweep()

    def _leftovers(self) -> list[Path]:
        """Drafts of files, and snapshots that the description does not name."""
        try:
            present = json.loads((self.directory / DESCRIPTION).read_text(encoding="utf-8"))["snapshot"]
        except (OSError, KeyError, ValueError):
            return []
        drafts = [path for folder in ("", LOG, QUARANTINE, present) for path in (self.directory / folder).glob(".*.*")]
        return drafts + [path for path in self.directory.glob("snapshot-*") if path.name != present]

    def _sweep(self) -> None:
        """Remove what is left over; what cannot be removed does no harm and waits for the next time."""
        for path in self._leftovers():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()

    def save(self, definition: Definition, states: list[TreeState], number: int, streams: Mapping[str, int]) -> None:
        """Commit a snapshot of the states after batch `number`."""
        self.own()
        name = f"snapshot-{number}-{uuid.uuid4().hex[:8]}"
        folder = self.directory / name
        with writing_in(self.directory):
            folder.mkdir(parents=True)
        for place, state in enumerate(states):
            write_durably(folder / f"tree-{place}.npz", to_bytes(pack_state(state)))
        description = definition.to_json() | {"snapshot": name, "number": number, "streams": dict(streams)}
        write_durably(self.directory / DESCRIPTION, json.dumps(description, ensure_ascii=False).encode())
        self._sweep()

    def load(self) -> tuple[Definition, list[TreeState], int, dict[str, int]]:
        """The definition, the states of the snapshot, its number, and the last batch of each stream."""
        try:
            text = (self.directory / DESCRIPTION).read_text(encoding="utf-8")
            definition, found = Definition.from_json(text), json.loads(text)
            folder = self.directory / found["snapshot"]
            states = [
                unpack_state(from_bytes((folder / f"tree-{place}.npz").read_bytes())) for place in range(len(definition.shapes))
            ]
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as trouble:
            raise EngineError(
                f"the synopsis in {self.directory} cannot be read: {trouble}; drop it and build it again"
            ) from trouble
        return definition, states, int(found["number"]), dict(found["streams"])

    def append(self, number: int, batch: LoggedBatch) -> None:
        """Acknowledge a batch. One that is there already belongs to somebody else, and is not replaced."""
        self.own()
        if self._file(number).exists():
            raise EngineError(f"batch {number} of the synopsis in {self.directory} was written by another session; open it again")
        meta = {"stream": batch.stream, "number": batch.number, "texts": dict(batch.texts), "replies": list(batch.replies),
                "inserts": [change.insert for change in batch.changes]}  # fmt: skip
        arrays: dict[str, Any] = {"meta": np.frombuffer(json.dumps(meta, ensure_ascii=False).encode(), np.uint8)}
        for place, change in enumerate(batch.changes):
            arrays |= pack_rows(change.rows, f"{place}_")
        with writing_in(self.directory):
            (self.directory / LOG).mkdir(exist_ok=True)
        write_durably(self._file(number), to_bytes(arrays))

    def read(self, number: int) -> LoggedBatch:
        arrays = from_bytes(self._file(number).read_bytes())
        meta = json.loads(arrays["meta"].tobytes())
        changes = tuple(Change(insert, unpack_rows(arrays, f"{place}_")) for place, insert in enumerate(meta["inserts"]))
        return LoggedBatch(changes, meta["stream"], meta["number"], meta["texts"], tuple(meta["replies"]))

    def after(self, number: int, upto: int | None = None) -> Iterator[tuple[int, LoggedBatch]]:
        """The batches after a number, in order; with `upto`, all of them up to that one. One that is missing is an error."""
        last = self.last if upto is None else upto
        for each in range(number + 1, last + 1):
            try:
                batch = self.read(each)
            except (OSError, KeyError, ValueError, zipfile.BadZipFile) as trouble:
                raise EngineError(
                    f"batch {each} of the synopsis in {self.directory} cannot be read: {trouble}; drop it and build it again"
                ) from trouble
            yield each, batch

    @property
    def last(self) -> int:
        """The number of the last batch in the log."""
        return max((int(path.stem) for path in (self.directory / LOG).glob("*.npz") if path.stem.isdigit()), default=0)

    def quarantine(self, records: list[dict[str, Any]], stream: str, number: int) -> None:
        """Put aside what of a batch could not be used, one line each; the same batch again replaces its own."""
        folder = self.directory / QUARANTINE
        with writing_in(self.directory):
            folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(record, ensure_ascii=False, default=str) for record in records]
        write_durably(folder / f"{stream}-{number:012d}.jsonl", ("\n".join(lines) + "\n").encode())

    @property
    def quarantined(self) -> int:
        """How many records were put aside."""
        return sum(path.read_bytes().count(b"\n") for path in (self.directory / QUARANTINE).glob("*.jsonl"))

    def _file(self, number: int) -> Path:
        return self.directory / LOG / f"{number:012d}.npz"
