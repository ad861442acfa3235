"""Snapshots of a synopsis on disk: its trees with the place in the table's history that they are at.

    <directory>/synopsis.json           definition, place and the name of the snapshot; replacing this file is the commit
    <directory>/snapshot-<version>-<id> one file per tree
    <directory>/replies-<stream>.json   answers to questions that a stream brought

The table's log is the only record of changes, so that a snapshot may be old, and any session may write a newer one. Law: what is
opened is a snapshot that was written whole. What a killed writer left is removed when the synopsis is next opened or saved.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
import zipfile
from pathlib import Path
from typing import Any

from nearly.engine.storage.durable import write_durably, writing_in
from nearly.engine.storage.locks import exclusive
from nearly.errors import EngineError
from nearly.synopsis.build.definition import Definition, TablePlace
from nearly.synopsis.build.packing import from_bytes, pack_state, to_bytes, unpack_state
from nearly.synopsis.structure.state import TreeState

DESCRIPTION = "synopsis.json"
OWNER = "owner"


class Store:
    """The files of one synopsis; whoever writes has its lock."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def create(self, definition: Definition, states: list[TreeState], place: TablePlace) -> None:
        """The first snapshot; what a synopsis of this name left, dropped by someone who was killed, is removed."""
        with writing_in(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            with exclusive(self.directory / OWNER):
                for each in self.directory.iterdir():
                    if each.is_dir():
                        shutil.rmtree(each)
                    elif each.name != OWNER:
                        each.unlink()
                self._write(definition, states, place)

    def save(self, definition: Definition, states: list[TreeState], place: TablePlace, anew: bool = False) -> None:
        """Commit a snapshot, unless there is a later one already; versions begin `anew` with the table."""
        if not self.directory.is_dir():
            raise _dropped(self.directory)
        with exclusive(self.directory / OWNER):
            present = self._described()
            if present.get("identity") != definition.identity:
                raise _dropped(self.directory)
            if anew or present["version"] <= place.version:
                self._write(definition, states, place)

    def load(self) -> tuple[Definition, list[TreeState], TablePlace]:
        """The definition, the states of the snapshot and their place; leftovers of killed writers are removed."""
        try:
            with contextlib.suppress(EngineError, OSError), exclusive(self.directory / OWNER, "somebody writes"):
                self._sweep()
            return self._read()
        except FileNotFoundError:  # it was replaced while it was read
            with contextlib.suppress(FileNotFoundError), exclusive(self.directory / OWNER):
                return self._read()
            raise EngineError(f"the synopsis in {self.directory} lacks files; drop it and build it again") from None

    def drop(self) -> None:
        """Remove everything; from the first step on nobody finds the synopsis."""
        with writing_in(self.directory), exclusive(self.directory / OWNER):
            (self.directory / DESCRIPTION).unlink()
            shutil.rmtree(self.directory, ignore_errors=True)

    def _write(self, definition: Definition, states: list[TreeState], place: TablePlace) -> None:
        name = f"snapshot-{place.version}-{uuid.uuid4().hex[:8]}"
        with writing_in(self.directory):
            (self.directory / name).mkdir()
        for number, state in enumerate(states):
            write_durably(self.directory / name / f"tree-{number}.npz", to_bytes(pack_state(state)))
        description = definition.to_json() | {"snapshot": name, **place._asdict()}
        write_durably(self.directory / DESCRIPTION, json.dumps(description, ensure_ascii=False).encode())
        self._sweep()

    def _read(self) -> tuple[Definition, list[TreeState], TablePlace]:
        try:
            text = (self.directory / DESCRIPTION).read_text(encoding="utf-8")
            definition, found = Definition.from_json(text), json.loads(text)
            folder = self.directory / found["snapshot"]
            trees = [folder / f"tree-{number}.npz" for number in range(len(definition.shapes))]
            states = [unpack_state(from_bytes(tree.read_bytes())) for tree in trees]
            return definition, states, TablePlace(int(found["version"]), str(found["content"]))
        except FileNotFoundError:
            raise
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as trouble:
            raise EngineError(
                f"the synopsis in {self.directory} cannot be read: {trouble}; drop it and build it again"
            ) from trouble

    def _described(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.directory / DESCRIPTION).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found

    def _sweep(self) -> None:
        """Remove drafts and snapshots that the description does not name; what cannot be removed does no harm and waits."""
        present = self._described().get("snapshot")
        for path in (*self.directory.glob("snapshot-*"), *self.directory.glob(".*.*"), *self.directory.glob("snapshot-*/.*.*")):
            if present is not None and path.is_dir() and path.name != present:
                shutil.rmtree(path, ignore_errors=True)
            elif path.is_file():
                with contextlib.suppress(OSError):
                    path.unlink()


def _dropped(directory: Path) -> EngineError:
    return EngineError(f"the synopsis in {directory} was dropped by another session")
