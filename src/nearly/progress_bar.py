"""A line on the terminal for work that takes long: what is done, how far, and a clock; silent where nobody watches."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Self

WIDTH = 30
TICK_SECONDS = 0.1


class ProgressBar:
    """Call it with the fraction done. It shows itself only on a terminal, from a tenth of a second on, and leaves no trace."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._watched = sys.stderr.isatty()
        self._started = time.monotonic()
        self._fraction: float | None = None
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._run, name="nearly-progress", daemon=True)

    def __enter__(self) -> Self:
        if self._watched:
            self._clock.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._watched:
            self._over.set()
            self._clock.join()
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __call__(self, fraction: float) -> None:
        self._fraction = min(max(fraction, 0.0), 1.0)

    def _run(self) -> None:
        while not self._over.wait(TICK_SECONDS):
            sys.stderr.write(f"\r\x1b[K{self.line}")
            sys.stderr.flush()

    @property
    def line(self) -> str:
        """What it shows now."""
        seconds = f"{time.monotonic() - self._started:.1f} s"
        if self._fraction is None:
            return f"{self._title} ... {seconds}"
        filled = round(WIDTH * self._fraction)
        return f"{self._title} {'█' * filled}{'░' * (WIDTH - filled)} {self._fraction:4.0%} {seconds}"
