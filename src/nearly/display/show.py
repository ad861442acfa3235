"""Where answers are shown: the first registered face that applies, else the terminal, else plain lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from nearly.answer import Answer
from nearly.display.interrupt import Interruption
from nearly.display.lines import Lines
from nearly.display.terminal import Terminal


class Face(Protocol):
    """A way to show answers while they come."""

    def applies(self) -> bool:
        """Whether this face can be seen where the program runs."""

    def show(self, answers: Iterable[Answer]) -> None:
        """Show each answer as it comes."""

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
    return next(face for face in (*_faces, Terminal(), Lines()) if face.applies())


def show(answers: Iterator[Answer], stop: Callable[[], None], face: Face | None = None) -> Shown:
    """Show the answers until the last one. An interrupt calls `stop`, and the newest answer counts as the last."""
    newest: list[Answer] = []
    chosen = face or face_here()
    with Interruption(stop) as interruption:
        chosen.show(_remembered(answers, newest))
    if newest:
        chosen.finish(newest[0])
    return Shown(newest[0] if newest else None, interruption.happened)


def _remembered(answers: Iterator[Answer], newest: list[Answer]) -> Iterator[Answer]:
    for answer in answers:
        newest[:] = [answer]
        yield answer
