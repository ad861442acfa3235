"""The first answer in a fresh process that never read a column, over files that the system does not hold in memory, either."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import nearly
from benchmarks.tpch.data import ROOT

SECONDS = 600


def cold_first(catalog: str, tables: Mapping[str, Path], text: str) -> float:
    """Seconds until the first answer to a query over a catalog, in a process of its own; its start and imports do not count."""
    for path in tables.values():
        for file in path.glob("*.parquet"):
            _drop(file)
    command = [sys.executable, "-c", "from benchmarks.cold import main; main()", catalog]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=SECONDS, cwd=ROOT)
    return float(json.loads(done.stdout))


def _drop(file: Path) -> None:
    """Ask the system to forget its copy of a file in memory; where it cannot be asked, the copy stays."""
    advise = getattr(os, "posix_fadvise", None)
    if advise is not None:
        with file.open("rb") as opened:
            advise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _answer(catalog: str, text: str) -> float:
    with nearly.connect(lazy=True, path=catalog) as db:
        query = db.sql(text)
        began = time.perf_counter()
        answers = iter(query)
        next(answers)
        seconds = time.perf_counter() - began
        query.stop()
    return seconds


def main() -> None:
    """Answer the query that is given on standard input."""
    print(json.dumps(_answer(sys.argv[1], sys.stdin.read())))
