"""Writing so that a crash leaves the old state or the new one, and a disk that refuses is an error that says so."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nearly.errors import EngineError

DRAFT = r"\.{name}\.[0-9a-f]{{8}}"
"""A pattern of the names of drafts that a killed writer of a file may leave beside it."""


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file so that a reader, or a crash, sees the old content or the new one, never a part."""
    write_whole(path, data, durable=True)


def write_whole(path: Path, data: bytes, *, durable: bool) -> None:
    """Replace a file so that a reader sees the old content or the new one; where it is not `durable`, a crash may leave neither."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with draft.open("wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
        if durable:
            flush(path.parent)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise EngineError(f"cannot write {path}: {error.strerror}; the old state is kept") from error


@contextmanager
def writing_in(directory: Path) -> Iterator[None]:
    """A disk that is full, or closed to us, is an `EngineError` that names the directory."""
    try:
        yield
    except OSError as error:
        raise EngineError(f"cannot write in {directory}: {error.strerror}; the old state is kept") from error


def flush(path: Path) -> None:
    """Have a file, or the names in a directory, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
