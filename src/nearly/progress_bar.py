"""A progress bar on the terminal, for work that takes long; silent where nobody watches."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

WIDTH = 30


class ProgressBar:
    """Call it with the fraction done. It shows itself only on a terminal, and leaves the line clean."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._watched = sys.stderr.isatty()
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._watched:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, fraction: float) -> None:
        if not self._watched:
            return
        filled = round(WIDTH * min(max(fraction, 0.0), 1.0))
        seconds = time.monotonic() - self._started
        sys.stderr.write(f"\r{self._title} {'█' * filled}{'░' * (WIDTH - filled)} {fraction:4.0%} {seconds:.0f} s")
        sys.stderr.flush()
