"""Progress as plain lines and the last answer as a table, where nobody watches: a pipe, a file, a log."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TextIO

from nearly.answer import Answer
from nearly.display.status import Clock, Doing, progress_line, remarks, waiting
from nearly.printing.frame import TextTable
from nearly.printing.plain import plain_table

SHOWN_ROWS = 50
SHOWN_WIDTH = 132


class Lines:
    """The face that writes one line for each answer."""

    def __init__(self, stream: TextIO | None = None, rows: int = SHOWN_ROWS, room: int = SHOWN_WIDTH) -> None:
        self._stream = stream
        self._rows = rows
        self._room = room

    def applies(self) -> bool:
        """Always: it asks nothing of the place it writes to."""
        return True

    def show(self, answers: Iterable[Answer], doing: Doing = waiting) -> None:  # noqa: ARG002
        """A line for each answer as it comes."""
        clock = Clock()
        for answer in answers:
            clock.tick(answer)
            self._write(progress_line(answer, clock.elapsed))

    def finish(self, answer: Answer) -> None:
        """The last answer, whole."""
        self._write(plain_table(TextTable.of(answer.table, answer.low, answer.high, self._rows).fitted(self._room)))
        for remark in remarks(answer):
            self._write(f"({remark})")

    def _write(self, text: str) -> None:
        """Text that the stream's encoding cannot carry is spelled out."""
        stream = self._stream or sys.stdout
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        stream.flush()
