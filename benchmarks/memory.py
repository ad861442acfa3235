"""The peak memory of this process and all its descendants: the driver, the JVM and the Python workers."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

PROC = Path("/proc")
INTERVAL_SECONDS = 0.2


class PeakMemory:
    """Samples memory while its block runs; `megabytes` is the largest sum seen, None where there is no `/proc`.

    A page that several processes share counts once (proportional set size), so forked workers are not overstated. A
    sample takes tens of milliseconds and stalls the JVM meanwhile: never time what runs inside the block.
    """

    def __init__(self) -> None:
        self.megabytes: float | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        if PROC.joinpath("self", "smaps_rollup").exists():
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()

    def _sample(self) -> None:
        while True:
            now = sum(map(_proportional_kilobytes, _family(os.getpid()))) / 1024
            self.megabytes = max(self.megabytes or 0.0, now)
            if self._done.wait(INTERVAL_SECONDS):
                return


def _family(ancestor: int) -> set[int]:
    """The process and its descendants; a process that ends meanwhile is left out."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            children.setdefault(_parent(entry), []).append(int(entry.name))
    family, waiting = set[int](), [ancestor]
    while waiting:
        process = waiting.pop()
        family.add(process)
        waiting.extend(children.get(process, ()))
    return family


def _parent(process: Path) -> int:
    try:
        after_name = process.joinpath("stat").read_text().rpartition(")")[2]
    except OSError:
        return 0
    return int(after_name.split()[1])


def _proportional_kilobytes(process: int) -> int:
    try:
        lines = PROC.joinpath(str(process), "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
