"""A synopsis on disk: a snapshot and a log of the batches applied since.

    <directory>/synopsis.json           definition and the number of the snapshot; replacing this file is the commit
    <directory>/snapshot-<number>/      one file per tree
    <directory>/log/<number>.npz        one file per batch, whole or absent
    <directory>/quarantine/<batch>      records that could not be used, one file per batch

Law: opening again replays exactly the batches after the snapshot, in order, so none is lost and none is applied twice. What a
killed writer left half-written is removed when the synopsis is next opened or written to.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
import zipfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from nearly.engine.storage.catalog import QUARANTINE
from nearly.engine.storage.durable import write_durably, writing_in
from nearly.engine.storage.locks import exclusive, is_free
from nearly.errors import EngineError
from nearly.synopsis.build.definition import Definition
from nearly.synopsis.build.packing import from_bytes, pack_state, to_bytes, unpack_state
from nearly.synopsis.structure.state import TreeState
from nearly.synopsis.upkeep.log import ChangeLog

DESCRIPTION = "synopsis.json"
LOG = "log"
OWNER = "owner"


class Store:
    """The files of one synopsis. The first write takes the right to write; another writer is an error, readers are not."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = ChangeLog(directory / LOG)
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

    @property
    def quarantined(self) -> int:
        """How many records were put aside."""
        return sum(path.read_bytes().count(b"\n") for path in (self.directory / QUARANTINE).glob("*.jsonl"))
