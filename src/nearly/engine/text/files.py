"""Text files behind an origin, read without Spark where that is proven to be the same; None where it is not."""

from __future__ import annotations

import bz2
import gzip
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from nearly.engine.storage.layouts import Origin
from nearly.engine.storage.listing import FoundFile, find_files
from nearly.engine.text.plain_csv import NotPlain, read_csv
from nearly.engine.text.plain_json import read_json

logger = logging.getLogger(__name__)

MOST_BYTES = 256 << 20
"""Larger files are read by Spark: beside that, its start takes little time, and it needs no memory for all of them."""
_OPENERS: dict[str, Callable[[Path], bytes]] = {
    ".gz": lambda path: gzip.decompress(path.read_bytes()),
    ".bz2": lambda path: bz2.decompress(path.read_bytes()),
}


def read_plainly(origin: Origin, utc: bool) -> pa.Table | None:
    """The rows of a CSV or JSON origin with Spark's types, when nothing in the files is read differently by others.

    `utc` says that the session's time zone is UTC, in which alone a time without a zone needs no rules.
    """
    if origin.kind not in ("csv", "json"):
        return None
    try:
        found = find_files(origin.locations)
        paths = _plain_paths(found)
        if origin.kind == "json":
            return read_json(paths)
        separator = "\t" if ".tsv" in Path(origin.locations[0]).suffixes else ","
        return read_csv([_content(path) for path in paths], separator, utc)
    except NotPlain as reason:
        logger.info("Spark reads %s: %s", origin, reason)
        return None


def _plain_paths(found: Sequence[FoundFile]) -> list[Path]:
    paths = [Path(each.path) for each in found]
    if any(each.partition_directories for each in found):
        raise NotPlain("directories tell the values of a column")
    if sum(path.stat().st_size for path in paths) > MOST_BYTES:
        raise NotPlain("there is much to read")
    return paths


def _content(path: Path) -> bytes:
    try:
        return _OPENERS.get(path.suffix.lower(), Path.read_bytes)(path)
    except (OSError, EOFError, ValueError) as trouble:
        raise NotPlain(str(trouble)) from None
