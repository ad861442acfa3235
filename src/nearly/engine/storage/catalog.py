"""The catalog: tables that outlive the process, one directory each.

    <path>/tables/<name>/table.json       the table's versions (`versions`); replacing this file is the commit
    <path>/tables/<name>/<layout>-<id>/   files the library wrote
    <path>/tables/<name>/changes-<id>/    the files of one batch
    <path>/tables/<name>/.tmp-<id>/       files being written, locked by their writer
    <path>/intent.json                    the heads of several tables that change together, while they are replaced

Law: `table.json` only ever refers to files that are complete, so a process killed at any point leaves the old table or
the new one; several tables in one transaction are all old or all new. Writers take turns by a lock. What no kept version refers
to, no unfinished query needs, and nobody reads, is removed on opening.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import logging
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from nearly.engine.storage.batches import Batch
from nearly.engine.storage.differences import Part, VersionStep, difference, extends
from nearly.engine.storage.durable import DRAFT, write_durably, write_whole, writing_in
from nearly.engine.storage.layouts import AT, Table
from nearly.engine.storage.locks import exclusive, patiently, shared
from nearly.engine.storage.pins import Pin, pins_of
from nearly.engine.storage.serialise import opened, sealed
from nearly.engine.storage.sweeping import OWNER, TEMPORARY, sweep
from nearly.engine.storage.versions import HEAD, MOST_BATCHES, PINS, Commit, Versions, VersionStore, begun
from nearly.errors import Conflict, EngineError, SchemaError, unknown
from nearly.plan.schema import TableSchema

logger = logging.getLogger(__name__)

Notes = Mapping[str, Any]
"""What JSON can hold."""

LONGEST_NAME = 128
_WRITER = ".writer"
CHECKPOINTS, QUARANTINE = "checkpoints", "quarantine"
"""Directories beside a table's files: how far Spark has read its streams, and what could not be used of them."""
_BESIDE = (CHECKPOINTS, QUARANTINE, PINS)


def check_name(name: str) -> str:
    """The name, when it can name a table: letters of any script, digits and underscores, not digits alone.

    >>> check_name("größe_2024")
    'größe_2024'
    """
    if isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and f"_{name}".isidentifier() and not name.isdigit():
        return name
    raise SchemaError(f"{name!r} cannot name a table; use 1 to {LONGEST_NAME} letters, digits and underscores, not digits alone")


class Catalog:
    """The tables below one directory. Names are compared without case."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path).expanduser().absolute()
        try:
            self._tables.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EngineError(f"cannot make a catalog in {self.path}: {error.strerror}") from error
        self._versions = VersionStore(self.path)
        with self.lock():
            self._remove_drafts()
            for directory in self._directories():
                self._sweep(directory)
            for each in self._hidden():
                self._forget_orphan(each)

    @property
    def _tables(self) -> Path:
        return self.path / "tables"

    @property
    def names(self) -> tuple[str, ...]:
        """The tables, as they were named, in order."""
        found = (self._load(directory) for directory in self._directories())
        return tuple(sorted(table.name for table in found if table is not None and not table.origin.is_hidden))

    def hidden(self, owner: str) -> tuple[str, ...]:
        """The tables that belong to a view, and that nobody else knows."""
        return tuple(table.name for table in self._hidden() if table.origin.locations[0].lower() == owner.lower())

    def _hidden(self) -> list[Table]:
        found = (self._load(directory) for directory in self._directories())
        return [table for table in found if table is not None and table.origin.is_hidden]

    @property
    def views(self) -> tuple[str, ...]:
        """Those of the tables that are the rows of views."""
        found = (self._load(directory) for directory in self._directories())
        return tuple(sorted(table.name for table in found if table is not None and table.view is not None))

    def __contains__(self, name: str) -> bool:
        return self._load(self.directory(name)) is not None

    def table(self, name: str) -> Table:
        """The table as last committed, by whichever process; `name@7` is its version 7."""
        named = _text(name)
        plain, at, version = named.partition(AT)
        if at and version.isdecimal():
            return self.at(plain, int(version))
        if at:
            raise unknown("table", named, self.names)
        found = self._load(self.directory(name))
        if found is None:
            raise unknown("table", name, self.names)
        return found

    def together(self, names: Iterable[str]) -> tuple[Table, ...]:
        """Several tables as some one transaction left them."""
        wanted = tuple(names)
        while True:
            found = tuple(self.table(name) for name in wanted)
            if self._intent.exists():
                with self.lock():
                    continue
            if all(self.table(table.name) is table for table in found):
                return found

    def schema(self, name: str) -> TableSchema:
        """What plans know of a table."""
        return self.table(name).schema

    def directory(self, name: str) -> Path:
        """Where a table of this name lives, with all its versions."""
        lowered = _text(name).partition(AT)[0].lower()
        if re.fullmatch(r"[a-z0-9_]{1,64}", lowered):
            return self._tables / lowered
        plain = re.sub(r"[^a-z0-9_]+", "", lowered)[:32]
        return self._tables / f"{plain}-{hashlib.sha256(lowered.encode()).hexdigest()[:16]}"

    def head(self, name: str) -> Path:
        """The file that is replaced whenever a table changes."""
        return self.directory(name) / HEAD

    @contextmanager
    def lock(self) -> Iterator[None]:
        """The right to change the catalog, held by one at a time; not to be taken twice."""
        with exclusive(self.path / ".lock"):
            self._finish_intent()
            yield

    @contextmanager
    def changing(self, name: str) -> Iterator[None]:
        """The turn to change the rows of a table, held by one at a time for as long as finding them takes."""
        directory = self._present(name)
        with writing_in(directory), exclusive(directory / _WRITER):
            yield

    @contextmanager
    def between_changes(self, name: str, seconds: float = 2.0) -> Iterator[None]:
        """A moment in which nobody changes the rows of a table; a `Conflict` when a transaction takes longer."""
        directory = self._present(name)
        with writing_in(directory), patiently(directory / _WRITER, seconds) as held:
            if not held:
                raise Conflict(f"table {name!r} is being changed; nothing was done to it, try again")
            yield

    def changeable(self, name: str) -> Table:
        """The table as last committed; a version of it is an error."""
        self._present(name)
        return self.table(name)

    def _present(self, name: str) -> Path:
        """The directory of a table that may be changed: of one that is there, not of a version of it."""
        directory = self.directory(name)
        if self._load(directory) is None:
            raise unknown("table", name, self.names)
        if AT in name:
            raise SchemaError(f"{name!r} is a version of a table; only the table as it is now can be changed")
        return directory

    def save(self, table: Table) -> Table:
        """Commit the table in place of any of its name."""
        return self.commit(table.name, lambda _: table)

    def commit(
        self, name: str, change: Callable[[Table | None], Table], operation: str = "register", record: Batch | None = None,
        notes: Notes | None = None,
    ) -> Table:  # fmt: skip
        """Replace a table by what `change` makes of its present state, all at once; `record` tells which rows that changed."""
        check_name(name)
        directory = self.directory(name)
        with self.lock(), writing_in(directory):
            before = self._versions.load(directory)
            present = None if before is None else before.table
            table = _numbered(change(present), present)
            _refuse_other_kind(table, present)
            directory.mkdir(parents=True, exist_ok=True)
            epoch = begun(table, operation, change=record)
            if before is not None and before.table.version == table.version:  # the same version in other files
                known = before.present
                told = known.change if known.table.version == table.version else None
                epoch = replace(epoch, time=known.time, operation=known.operation, change=told)
            return self._versions.begin(directory, before, epoch, notes).table

    @contextmanager
    def transacting(self) -> Iterator[None]:
        """The turn to change several tables together."""
        with writing_in(self.path), exclusive(self.path / ".transaction"):
            yield

    def commit_batches(
        self, batches: Sequence[tuple[Table, Batch]], notes: Mapping[str, Notes] | None = None, same: Iterable[Table] = ()
    ) -> tuple[Table, ...]:
        """Commit changes of one or more tables, together or not at all; their files are in place. New notes go with them, by table.

        Each must have been made for the table as it is: a `Conflict` where one was changed meanwhile. So must the `same`, of which
        perhaps nothing changes but notes.
        """
        with self.lock(), writing_in(self._tables):
            for table in same:
                refuse_other(table, self._load(self.directory(table.name)))
            changed: dict[Path, Versions] = {}
            for table, batch in batches:
                directory = self.directory(table.name)
                before = changed.get(directory) or self._versions.load(directory)
                if before is None or before.table.version + 1 != batch.version or before.table.base.manifest != table.base.manifest:
                    raise Conflict(f"table {table.name!r} was changed by someone else meanwhile; nothing was changed, try again")
                if before.table.view is not None and table.name not in (notes or {}):
                    raise view_refusal(before.table)
                changed[directory] = before.with_batch(batch)
            for name, noted in (notes or {}).items():
                directory = self.directory(name)
                changed[directory] = replace(changed.get(directory) or self._known(name), notes=noted)
            self._replace_heads(changed)
            for directory, versions in changed.items():
                self._describe_again(directory, versions)
        return tuple(versions.table for versions in changed.values())

    def _describe_again(self, directory: Path, versions: Versions) -> None:
        """Begin a new epoch after many batches. They are committed: where that cannot be written, the next commit tries again."""
        batches = versions.present.batches
        if len(batches) >= MOST_BATCHES:
            try:
                self._versions.begin(directory, versions, begun(versions.table, batches[-1].operation, batches[-1].time))
            except EngineError:
                logger.warning("table %r could not be described again", versions.table.name, exc_info=True)

    def _replace_heads(self, changed: Mapping[Path, Versions]) -> None:
        """One head is replaced at once; of several, an intent tells whoever comes next what is left to do."""
        if len(changed) > 1:
            heads = {directory.name: self._versions.head(versions) for directory, versions in changed.items()}
            write_durably(self._intent, sealed(heads).encode())
            self._finish_intent()
            return
        for directory, versions in changed.items():
            self._versions.write(directory, versions)

    @property
    def _intent(self) -> Path:
        return self.path / "intent.json"

    def _finish_intent(self) -> None:
        """Replace the heads of a transaction that was decided, perhaps by a process that died before it was done."""
        if not self._intent.exists():
            return
        heads = opened(self._intent.read_text(encoding="utf-8"), dict)
        for name, text in heads.items():
            if (self._tables / name).is_dir():
                write_durably(self._tables / name / HEAD, text.encode())
        self._intent.unlink()

    def _remove_drafts(self) -> None:
        """What a killed writer of an intent left."""
        for each in self.path.iterdir():
            if re.fullmatch(DRAFT.format(name=re.escape(self._intent.name)), each.name):
                each.unlink(missing_ok=True)

    def at(self, name: str, version: int) -> Table:
        """A table in one of its versions, under a name that says which; a `SchemaError` when it is not kept."""
        return self._versions.at(self.directory(name), self._known(name), version)

    def at_time(self, name: str, time: dt.datetime) -> Table:
        """A table as it was at a time."""
        commits = self.commits(name)
        found = next((commit for commit in commits if commit.time <= time), None)
        if found is None:
            oldest = commits[-1].time.isoformat()
            raise SchemaError(f"table {name!r} has no version of {time.isoformat()} or before; the oldest is of {oldest}")
        return self.at(name, found.version)

    def commits(self, name: str) -> list[Commit]:
        """The versions of a table that can be read, the newest first."""
        return self._versions.commits(self.directory(name), self._known(name))

    def batches(self, name: str, since: int, until: int) -> dict[int, Batch]:
        """What was changed after one version up to another, as far as the log tells, by version."""
        return self._versions.batches(self.directory(name), self._known(name), since, until)

    def noted(self, name: str) -> tuple[Table, Notes]:
        """A table, and what whoever keeps it up to date noted with its last commit."""
        known = self._known(name)
        return known.table, known.notes

    def keep(self, name: str, owner: str, version: int | None) -> None:
        """Keep the versions of a table from one on for a lasting owner, or let go of them."""
        directory = self._present(name)
        pin = directory / PINS / f"{self.directory(owner).name}.pin"
        with writing_in(directory):
            if version is not None and pin.exists() and pin.read_text(encoding="utf-8") == str(version):
                return
            with self.lock():
                if version is None:
                    pin.unlink(missing_ok=True)
                else:
                    pin.parent.mkdir(exist_ok=True)
                    write_whole(pin, str(version).encode(), durable=not pin.exists())

    def difference(self, before: Table, after: Table) -> tuple[Part, ...]:
        """Which rows of which files came and went between two versions of a table; all of both where no log tells."""
        if before.content == after.content:
            return ()
        known = self._versions.load(self.directory(after.plain_name))
        if known is None or not before.version < after.version <= known.table.version:
            return difference([VersionStep(before), VersionStep(after)])
        directory = self.directory(after.plain_name)
        logged = self._versions.batches(directory, known, before.version, after.version).values()
        if extends(before.base, after.base):
            return difference([VersionStep(before), VersionStep(after)], logged)
        steps = self._versions.between(directory, known, before.version, after.version)
        tied = bool(steps) and steps[0].table.content == before.content and steps[-1].table.content == after.content
        return difference([VersionStep(before), *(steps if tied else ()), VersionStep(after)], logged)

    def followers(self, name: str) -> int:
        """How many lasting owners, as views, keep versions of a table to learn what changed since."""
        return sum(1 for _ in (self.directory(name) / PINS).glob("*.pin"))

    def taken(self, name: str, stream: str) -> int | None:
        """The number of the last batch that was taken from a stream."""
        return self._known(name).streams.get(stream)

    def _known(self, name: str) -> Versions:
        found = self._versions.load(self.directory(name))
        if found is None:
            raise unknown("table", name, self.names)
        return found

    def drop(self, name: str) -> None:
        """Forget a table and remove the files the library wrote for it; the user's own files stay."""
        with self.lock():
            self._forget(self._present(name))

    def _forget(self, directory: Path) -> None:
        with writing_in(directory):
            (directory / HEAD).unlink()
            for left in (directory / name for name in _BESIDE):
                shutil.rmtree(left, ignore_errors=True)
            (directory / _WRITER).unlink(missing_ok=True)
            self._sweep(directory, pins=False)

    def _forget_orphan(self, table: Table) -> None:
        """Forget a hidden table whose view was never finished, and is not being made by anybody."""
        home = self.directory(table.origin.locations[0])
        if self._load(home) is None and not any(home.glob(f"{TEMPORARY}*")):
            self._forget(self.directory(table.name))

    def pin(self, table: Table) -> Pin | None:
        """What keeps a table in the files it has, once a query's log says so; None when they were replaced meanwhile."""
        directory = self.directory(table.name)
        versions = self._versions.load(directory)
        return None if versions is None else self._versions.pin(directory, versions, table)

    def pinned(self, pin: Pin) -> Table:
        """The table that a pin keeps."""
        directory = self._tables / pin.home
        try:
            return self._versions.pinned(directory, self._versions.load(directory), pin)
        except FileNotFoundError as error:
            raise EngineError(f"table {pin.table!r} was dropped, and with it the version {pin.version} that is needed") from error

    @contextmanager
    def held(self, tables: Iterable[Table]) -> Iterator[None]:
        """Keep the files that the library wrote for these tables, whatever replaces them meanwhile, here or in another process."""
        with ExitStack() as kept:
            for table in tables:
                kept.enter_context(shared(self.directory(table.name)))
            yield

    @contextmanager
    def temporary(self, name: str) -> Iterator[Path]:
        """A directory to write a table's files in, removed at the end, or by the next opening when the process dies."""
        directory = self.directory(check_name(name)) / f"{TEMPORARY}{uuid.uuid4().hex[:12]}"
        with ExitStack() as owned:
            with self.lock(), writing_in(directory):
                directory.mkdir(parents=True)
                owned.enter_context(exclusive(directory / OWNER))
            owned.callback(shutil.rmtree, directory, ignore_errors=True)
            yield directory

    def _directories(self) -> list[Path]:
        return sorted(each for each in self._tables.iterdir() if each.is_dir())

    def _load(self, directory: Path) -> Table | None:
        """The committed table."""
        found = self._versions.load(directory)
        return None if found is None else found.table

    def _sweep(self, directory: Path, pins: bool = True) -> None:
        sweep(directory, self._versions.load(directory), lambda: pins_of(self.path) if pins else ())


class Snapshot(Catalog):
    """A catalog in which some tables stay as they were found, whatever is committed meanwhile.

    Law: whoever plans and runs a query by it sees one version of each of these tables.
    """

    def __init__(self, catalog: Catalog, tables: Iterable[Table]) -> None:
        self.path = catalog.path
        self._versions = catalog._versions
        self._kept = {table.name.lower(): table for table in tables}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._kept or super().__contains__(name)

    def table(self, name: str) -> Table:
        return self._kept.get(name.lower()) or super().table(name)


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise SchemaError(f"a table is named by text, not {name!r}")
    return name


def refuse_other(known: Table, present: Table | None) -> None:
    """Refuse to take a table for the one that is known, where it was dropped meanwhile, and perhaps another one made."""
    if present is None or (present.version, present.content, present.view) != (known.version, known.content, known.view):
        raise Conflict(f"table {known.name!r} was dropped or replaced by someone else meanwhile; nothing was changed, try again")


def view_refusal(table: Table) -> SchemaError:
    """What to raise where the rows of a view are to be changed."""
    return SchemaError(
        f"{table.name!r} is a view, whose rows follow its tables; change these, and use db.view({table.name!r}).refresh()"
    )


def _refuse_other_kind(table: Table, present: Table | None) -> None:
    """A view is not replaced by a table, nor a table by a view."""
    if present is not None and (present.view is None) != (table.view is None):
        other = "view" if table.view is None else "table"
        drop = "drop_view" if table.view is None else "drop"
        raise SchemaError(f"{present.name!r} is a {other}; use db.{drop}({present.name!r}) first, or take another name")


def _numbered(table: Table, present: Table | None) -> Table:
    """The table with its place in the order of versions; another layout of the same rows is no other version."""
    if present is None:
        return replace(table, version=1)
    same_files = table.base.manifest == present.base.manifest and not (table.base.vectors or present.base.vectors)
    if table.columns == present.columns and same_files:
        table = replace(table, content=present.content)  # files that came one after the other, registered again together
    return replace(table, version=present.version + (table.content != present.content))
