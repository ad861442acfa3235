"""The arrow keys of a terminal while answers come."""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
import tty
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

_STEPS = {b"\x1b[C": 1, b"\x1bOC": 1, b"\x1b[D": -1, b"\x1bOD": -1}
"""What terminals send for an arrow to the right and to the left, and the step it stands for."""


class ArrowKeys:
    """Calls `turned` with 1 or -1 for each arrow to the right or left, from a thread of its own, from `listen` to the end.

    Until then, and where the input is no terminal in whose foreground the program runs, what is typed is left for whoever reads
    it next. The terminal is as it was before at the end; Ctrl-C stays the signal that it is.
    """

    def __init__(self, turned: Callable[[int], None], source: int | None = None) -> None:
        self._turned = turned
        self._source = source
        self._before: list[Any] | None = None
        self._over: tuple[int, int] | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._thread is None or self._over is None or self._before is None:
            return
        os.close(self._over[1])
        self._thread.join()
        os.close(self._over[0])
        termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)
        self._thread = None

    @property
    def listening(self) -> bool:
        """Whether a key would be heard."""
        return self._thread is not None

    def listen(self) -> None:
        """Hear keys from now on; again, or where nobody can press one, nothing happens."""
        if self.listening or not self._may():
            return
        self._before = termios.tcgetattr(self._input)
        tty.setcbreak(self._input, termios.TCSADRAIN)
        self._over = os.pipe()
        self._thread = threading.Thread(target=self._hear, args=(self._over[0],), name="nearly-keys", daemon=True)
        self._thread.start()

    @property
    def _input(self) -> int:
        return sys.stdin.fileno() if self._source is None else self._source

    def _may(self) -> bool:
        try:
            return os.isatty(self._input) and os.tcgetpgrp(self._input) == os.getpgrp()
        except (OSError, ValueError, AttributeError):  # no input at all, or one that a program put in its place
            return False

    def _hear(self, over: int) -> None:
        heard = b""
        while over not in select.select([self._input, over], [], [])[0]:
            try:
                new = os.read(self._input, 256)
            except OSError:
                return
            if not new:
                return
            heard = self._taken(heard + new)

    def _taken(self, heard: bytes) -> bytes:
        """Act on the keys in what was heard; gives the beginning of one whose rest is still to come."""
        while heard:
            key = next((key for key in _STEPS if heard.startswith(key)), None)
            if key is not None:
                self._turned(_STEPS[key])
            elif heard in (b"\x1b", b"\x1b[", b"\x1bO"):
                return heard
            heard = heard[1 if key is None else len(key) :]
        return b""
