"""The catalog: tables that outlive the process, one directory each.

    <path>/tables/<name>/table.json       the table; replacing this file is the commit
    <path>/tables/<name>/<layout>-<id>/   files the library wrote
    <path>/tables/<name>/.tmp-<id>/       files being written, locked by their writer

Law: `table.json` only ever refers to files that are complete, so a process killed at any point leaves the old table or
the new one. Writers take turns by a lock; the last one wins. What no table refers to, and nobody reads, is removed on opening.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from nearly.engine.storage.durable import DRAFT, write_durably, writing_in
from nearly.engine.storage.layouts import Layout, Table
from nearly.engine.storage.locks import exclusive, is_free, shared, unshared
from nearly.engine.storage.serialise import decode, encode
from nearly.errors import EngineError, SchemaError, unknown
from nearly.plan.schema import TableSchema

LONGEST_NAME = 128
_TEMPORARY = ".tmp-"
_TABLE_FILE = "table.json"
_OWNER = "owner"
_OUR_DIRECTORY = re.compile(r"[a-z0-9_]*-[0-9a-f]{12}")
_OUR_UNFINISHED_FILE = re.compile(DRAFT.format(name=re.escape(_TABLE_FILE)))


def check_name(name: str) -> str:
    """The name, when it can name a table: letters of any script, digits and underscores, not digits alone.

    >>> check_name("größe_2024")
    'größe_2024'
    """
    if 0 < len(name) <= LONGEST_NAME and f"_{name}".isidentifier() and not name.isdigit():
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
        self._read: dict[Path, tuple[tuple[int, int], Table]] = {}
        with self.lock():
            for directory in self._directories():
                self._sweep(directory)

    @property
    def _tables(self) -> Path:
        return self.path / "tables"

    @property
    def names(self) -> tuple[str, ...]:
        """The tables, as they were named, in order."""
        found = (self._load(directory) for directory in self._directories())
        return tuple(sorted(table.name for table in found if table is not None))

    def __contains__(self, name: str) -> bool:
        return self._load(self.directory(name)) is not None

    def table(self, name: str) -> Table:
        """The table as last committed, by whichever process."""
        found = self._load(self.directory(name))
        if found is None:
            raise unknown("table", name, self.names)
        return found

    def schema(self, name: str) -> TableSchema:
        """What plans know of a table."""
        return self.table(name).schema

    def directory(self, name: str) -> Path:
        """Where a table of this name lives."""
        lowered = name.lower()
        if re.fullmatch(r"[a-z0-9_]{1,64}", lowered):
            return self._tables / lowered
        plain = re.sub(r"[^a-z0-9_]+", "", lowered)[:32]
        return self._tables / f"{plain}-{hashlib.sha256(lowered.encode()).hexdigest()[:16]}"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """The right to change the catalog, held by one at a time; not to be taken twice."""
        with exclusive(self.path / ".lock"):
            yield

    def save(self, table: Table) -> Table:
        """Commit the table in place of any of its name."""
        return self.commit(table.name, lambda _: table)

    def commit(self, name: str, change: Callable[[Table | None], Table]) -> Table:
        """Replace a table by what `change` makes of its present state, all at once."""
        check_name(name)
        directory = self.directory(name)
        with self.lock(), writing_in(directory):
            present = self._load(directory)
            table = _numbered(change(present), present)
            directory.mkdir(parents=True, exist_ok=True)
            write_durably(directory / _TABLE_FILE, encode(table, str(self.path)).encode())
        return table

    def drop(self, name: str) -> None:
        """Forget a table and remove the files the library wrote for it; the user's own files stay."""
        directory = self.directory(name)
        with self.lock():
            if self._load(directory) is None:
                raise unknown("table", name, self.names)
            with writing_in(directory):
                (directory / _TABLE_FILE).unlink()
                self._sweep(directory)

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
        directory = self.directory(check_name(name)) / f"{_TEMPORARY}{uuid.uuid4().hex[:12]}"
        with ExitStack() as owned:
            with self.lock(), writing_in(directory):
                directory.mkdir(parents=True)
                owned.enter_context(exclusive(directory / _OWNER))
            owned.callback(shutil.rmtree, directory, ignore_errors=True)
            yield directory

    def _directories(self) -> list[Path]:
        return sorted(each for each in self._tables.iterdir() if each.is_dir())

    def _load(self, directory: Path) -> Table | None:
        """The committed table; read again only when its file was replaced."""
        file = directory / _TABLE_FILE
        try:
            status = file.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
            if file not in self._read or self._read[file][0] != stamp:
                self._read[file] = stamp, decode(file.read_text(encoding="utf-8"), str(self.path))
            return self._read[file][1]
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError, EngineError) as error:
            raise EngineError(
                f"the catalog file {file} cannot be used: {error}; restore it, or remove the directory {directory} and "
                f"register the table again"
            ) from error

    def _sweep(self, directory: Path) -> None:
        """Remove what dead writers left and what the table does not refer to; whatever has another name is not ours."""
        table = self._load(directory)
        used = _used_directories(table, directory) if table else set()
        with unshared(directory) as unread:
            for each in list(directory.iterdir()):
                if each.name.startswith(_TEMPORARY):
                    if is_free(each / _OWNER):
                        shutil.rmtree(each, ignore_errors=True)
                elif _OUR_DIRECTORY.fullmatch(each.name):
                    if unread and each not in used:
                        shutil.rmtree(each, ignore_errors=True)
                elif _OUR_UNFINISHED_FILE.fullmatch(each.name):
                    each.unlink(missing_ok=True)
        if table is None and not any(directory.iterdir()):
            directory.rmdir()


class Snapshot(Catalog):
    """A catalog in which some tables stay as they were found, whatever is committed meanwhile.

    Law: whoever plans and runs a query by it sees one version of each of these tables.
    """

    def __init__(self, catalog: Catalog, tables: Iterable[Table]) -> None:
        self.path = catalog.path
        self._read = catalog._read
        self._kept = {table.name.lower(): table for table in tables}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._kept or super().__contains__(name)

    def table(self, name: str) -> Table:
        return self._kept.get(name.lower()) or super().table(name)


def _numbered(table: Table, present: Table | None) -> Table:
    """The table with its place in the order of versions; another layout of the same rows is no other version."""
    if present is None:
        return replace(table, version=1)
    return replace(table, version=present.version + (table.content != present.content))


def _used_directories(table: Table, directory: Path) -> set[Path]:
    """The directories directly below the table's own that hold files of a layout."""
    used = set()
    for layout in table.layouts:
        for path in _paths(layout):
            if path.is_relative_to(directory) and path != directory:
                used.add(directory / path.relative_to(directory).parts[0])
    return used


def _paths(layout: Layout) -> list[Path]:
    return [Path(layout.path), *(Path(file.path) for file in layout.manifest.files)]
