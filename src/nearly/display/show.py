"""Where answers are shown: the first registered face that applies, else the terminal, else plain lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from nearly.answer import Answer
from nearly.display.interrupt import Interruption
from nearly.display.lines import Lines
from nearly.display.status import Doing, waiting


class Face(Protocol):
    """A way to show answers while they come."""

    def applies(self) -> bool:
        """Whether this face can be seen where the program runs."""

    def show(self, answers: Iterable[Answer], doing: Doing = waiting) -> None:
        """Show each answer as it comes; until then, what the query is doing."""

    def finish(self, answer: Answer) -> None:
        """Show what is left to say of the last answer."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The last answer, if there was one, and whether the user cut the query short."""

    answer: Answer | None
    interrupted: bool


_faces: list[Face] = []


def register(face: Face) -> None:
    """Prefer a face where it applies; what is registered last is asked first."""
    _faces.insert(0, face)


def face_here() -> Face:
    """The face for the place where the program runs."""
    registered = next((face for face in _faces if face.applies()), None)
    return registered or terminal() or Lines()


def terminal(rows: int | None = None) -> Face | None:
    """The face of a terminal, where somebody watches; what draws it is not loaded elsewhere."""
    if not any(name in os.environ for name in ("FORCE_COLOR", "TTY_COMPATIBLE")) and not sys.stdout.isatty():
        return None
    from nearly.display.terminal import Terminal  # noqa: PLC0415

    face = Terminal(rows=rows)
    return face if face.applies() else None


def show(answers: Iterator[Answer], stop: Callable[[], None], face: Face | None = None, doing: Doing = waiting) -> Shown:
    """Show the answers until the last one. An interrupt calls `stop`, and the newest answer counts as the last."""
    newest: list[Answer] = []
    chosen = face or face_here()
    with Interruption(stop) as interruption:
        chosen.show(_remembered(answers, newest), doing)
    if newest:
        chosen.finish(newest[0])
    return Shown(newest[0] if newest else None, interruption.happened)


def _remembered(answers: Iterator[Answer], newest: list[Answer]) -> Iterator[Answer]:
    for answer in answers:
        newest[:] = [answer]
        yield answer
