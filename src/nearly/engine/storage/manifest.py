"""Manifests: which files a table consisted of when it was registered, and whether they still are those files.

Without one, Spark drops the rows of an emptied or vanished file in silence. A manifest is a snapshot: files that appear
later are not part of it until the table is refreshed.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from nearly.engine.storage.footers import READERS, Footer, checksum_of, read_footer, read_footer_bytes
from nearly.engine.storage.listing import find_files
from nearly.errors import EngineError, NearlyError
from nearly.plan.schema import SchemaColumn

QUICK_SECONDS = 0.005
"""Files are looked at one after the other for so long: threads cost more than they save on a local disk."""

QUICK, FULL = "quick", "full"
"""What is compared with a registered file: its size and time of change, or all its bytes."""

_ADVICE = "register or refresh the table to take the files as they are now, or put the old file back"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file as it was registered; `content_checksum` covers all bytes: of files this library wrote, or when it was asked for."""

    path: str
    bytes: int
    rows: int
    footer_checksum: str
    modified_ns: int
    schema: str
    content_checksum: str | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of one layout."""

    files: tuple[FileEntry, ...]

    @property
    def hashed(self) -> bool:
        """Whether the contents of all files have a checksum."""
        return all(file.content_checksum is not None for file in self.files)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files)

    @property
    def digest(self) -> str:
        """A name for exactly these contents."""
        text = "\n".join(f"{each.path}|{each.bytes}|{each.modified_ns}|{each.footer_checksum}" for each in self.files)
        return checksum_of(text.encode())


def manifest_of(footers: Iterable[Footer], contents: bool = False) -> Manifest:
    """The manifest of files whose footers were read; with `contents` also their checksums, which reads them whole."""
    entries = [entry_of(footer) for footer in footers]
    if contents:
        checksums = _side_by_side(_content_checksum, [entry.path for entry in entries])
        entries = [replace(entry, content_checksum=each) for entry, each in zip(entries, checksums, strict=True)]
    return Manifest(tuple(entries))


def _side_by_side(read: Callable[[str], str], paths: Sequence[str]) -> list[str]:
    """What is read of each file; threads cost more than one small file does."""
    if len(paths) < 2:
        return [read(path) for path in paths]
    with ThreadPoolExecutor(max_workers=READERS) as pool:
        return list(pool.map(read, paths))


def entry_of(footer: Footer) -> FileEntry:
    return FileEntry(footer.path, footer.bytes, footer.rows, footer.checksum, footer.modified_ns, schema_checksum(footer.columns))


def schema_checksum(columns: Iterable[SchemaColumn]) -> str:
    """A checksum of names and types in order."""
    return checksum_of("\n".join(f"{column.name}\t{column.type}" for column in columns).encode())


def verify(manifest: Manifest, full: bool = False) -> None:
    """Raise an `EngineError` that names the first file which is no longer the one registered.

    A file of the same size and time of change is taken as unchanged, which costs one `stat` for each. `full` reads all files, whose
    contents must have checksums.
    """
    if full and not manifest.hashed:
        raise EngineError("the files were registered without hashes of their contents; register the table again with verify='full'")
    for found in _differences(manifest.files, full):
        if found is not None:
            raise EngineError(f"{found}; {_ADVICE}")


def _differences(files: Sequence[FileEntry], full: bool) -> Iterator[str | None]:
    """What is wrong with each file; by several threads where that takes a while, as on a disk across a network."""
    began, done = time.perf_counter(), 0
    while not full and done < len(files) and time.perf_counter() - began < QUICK_SECONDS:
        yield _difference(files[done], full)
        done += 1
    if done < len(files):
        with ThreadPoolExecutor(max_workers=READERS) as pool:
            yield from pool.map(lambda entry: _difference(entry, full), files[done:])


def new_files(manifest: Manifest, sources: Sequence[str]) -> tuple[str, ...]:
    """Files that the sources have now and the manifest has not."""
    known = set(manifest.paths)
    return tuple(file.path for file in find_files(sources) if file.path not in known)


def _difference(entry: FileEntry, full: bool) -> str | None:
    """What is wrong with the file, None when nothing is."""
    try:
        status = os.stat(entry.path)  # noqa: PTH116  each query does it for all files of its tables
    except OSError:
        return f"{entry.path} has vanished since the table was registered"
    if status.st_size == 0:
        return f"{entry.path} was emptied (0 bytes, {entry.bytes} when it was registered)"
    if status.st_size == entry.bytes and status.st_mtime_ns == entry.modified_ns and not full:
        return None
    return _footer_difference(entry) or _content_difference(entry, status.st_mtime_ns)


def _footer_difference(entry: FileEntry) -> str | None:
    try:
        raw, status = read_footer_bytes(entry.path)
        if checksum_of(raw) == entry.footer_checksum and status.st_size == entry.bytes:
            return None
        changed = schema_checksum(read_footer(entry.path).columns) != entry.schema
    except NearlyError as error:
        size = Path(entry.path).stat().st_size if Path(entry.path).exists() else 0
        how = f"was truncated to {size} of {entry.bytes} bytes" if size < entry.bytes else "was damaged"
        return f"{entry.path} {how} since the table was registered ({error})"
    return f"{entry.path} was replaced since the table was registered" + (" and its schema changed" if changed else "")


def _content_difference(entry: FileEntry, modified_ns: int) -> str | None:
    """With the same footer the pages may still differ; once a file was written to, only a checksum rules that out."""
    if entry.content_checksum is None:
        if modified_ns == entry.modified_ns:
            return None
        return f"{entry.path} was written to since the table was registered; its rows may not be the same"
    if _content_checksum(entry.path) != entry.content_checksum:
        return f"{entry.path} was damaged since it was written: its contents do not match their checksum"
    return None


def _content_checksum(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]
