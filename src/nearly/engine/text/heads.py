"""The columns of data files from their heads alone: the footer of a Parquet file, the first line of a CSV file.

Whoever only wants to know whether a query names columns that exist need not read what is in them.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from nearly.engine.storage.footers import read_footer
from nearly.engine.storage.hive_partitions import partition_columns
from nearly.engine.storage.listing import FoundFile, find_files
from nearly.errors import NearlyError
from nearly.plan.schema import SchemaColumn
from nearly.plan.types import STRING

_OPENERS: dict[str, Callable[[str], BinaryIO]] = {
    ".gz": lambda path: cast(BinaryIO, gzip.GzipFile(path)),
    ".bz2": lambda path: cast(BinaryIO, bz2.BZ2File(path)),
}
_LONGEST_HEADER = 1 << 20
_OTHER_MEANING = (b"\\", b"\0", b"\r", b"\xef\xbb\xbf", b"\xff", b"\xfe")
"""What a header may not have: readers differ in what they make of it."""
_QUOTED = re.compile(rb'(?:^|(?<=[,\t]))"[^"]*"(?=[,\t]|$)')


def columns_of(sources: Sequence[str | os.PathLike[str]]) -> tuple[SchemaColumn, ...] | None:
    """The names of the columns of Parquet or CSV files; None where their heads do not tell them.

    Types are those of Parquet; of a CSV column nothing is known but its name, and it passes for text.
    """
    try:
        found = find_files([os.fspath(each) for each in sources])
        kinds = {_kind(each.path) for each in found}
        if any((Path(source) / log).exists() for source in sources for log in ("_delta_log", "metadata")) or len(kinds) != 1:
            return None
        return _parquet(found) if kinds == {".parquet"} else _csv(found, kinds.pop())
    except (NearlyError, OSError, EOFError, ValueError):
        return None  # whoever reads the files says what is wrong with them


def _kind(path: str) -> str:
    """The ending of a file without that of its compression."""
    plain = Path(path).with_suffix("") if Path(path).suffix.lower() in _OPENERS else Path(path)
    return plain.suffix.lower()


def _parquet(found: Sequence[FoundFile]) -> tuple[SchemaColumn, ...]:
    """One file tells the columns of all: others are not registered together."""
    return (*read_footer(found[0].path).columns, *partition_columns(found))


def _csv(found: Sequence[FoundFile], kind: str) -> tuple[SchemaColumn, ...] | None:
    separator = {".csv": ",", ".tsv": "\t"}.get(kind)
    headers = set(map(_first_line, found)) if separator and not any(each.partition_directories for each in found) else set()
    if len(headers) != 1 or (header := headers.pop()) is None or separator is None:
        return None
    (names,) = csv.reader([header], delimiter=separator)
    if not all(name and name == name.strip() for name in names) or len({name.lower() for name in names}) != len(names):
        return None
    return tuple(SchemaColumn(name, STRING) for name in names)


def _first_line(file: FoundFile) -> str | None:
    """The header of a file; None where it is not certain what it says."""
    opener = _OPENERS.get(Path(file.path).suffix.lower())
    with Path(file.path).open("rb") if opener is None else opener(file.path) as content:
        line = content.readline(_LONGEST_HEADER).removesuffix(b"\n").removesuffix(b"\r")
    odd = b'"' in _QUOTED.sub(b"", line) or any(mark in line for mark in _OTHER_MEANING)
    return None if odd or not line.strip() else line.decode()
