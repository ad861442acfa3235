"""All answers of an iteration: when each came, how far from the exact one it was, and whether what it told of that is true."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

import nearly
from benchmarks.accuracy import Accuracy, accuracy
from benchmarks.engines import Engine, unseen

GOOD = 0.01


@dataclass(frozen=True, slots=True)
class Look:
    """An answer, when it came, and how good it was."""

    seconds: float
    answer: nearly.Answer
    accuracy: Accuracy

    @property
    def false(self) -> bool:
        """Whether the answer tells an error that is less than its true one."""
        return not self.answer.exact and self.accuracy.belies(self.answer.error)

    @property
    def description(self) -> str:
        """What was told, and what is true."""
        true = self.accuracy
        return (
            f"{self.answer.progress:.1%} read, told {self.answer.error:.2%}, true {true.whole:.2%} (worst number {true.worst:.2%}, "
            f"missing rows {true.missing:.1%}, superfluous {true.superfluous:.1%} of {self.answer.table.num_rows})"
        )


def own(db: nearly.Session) -> Engine:
    """nearly's exact run, without early answers."""

    def answer(text: str) -> pa.Table:
        return db.sql(unseen(text)).exact().table

    return answer


def timeline(db: nearly.Session, text: str, seed: int = 0) -> list[Look]:
    """All answers with their times; how good they were is judged after the last."""
    began = time.perf_counter()
    return judged([(time.perf_counter() - began, answer) for answer in db.sql(unseen(text), seed=seed)])


def judged(found: Sequence[tuple[float, nearly.Answer]]) -> list[Look]:
    """Answers with their times, judged by the last one."""
    exact = found[-1][1].table
    return [Look(seconds, answer, accuracy(answer, exact)) for seconds, answer in found]


def good_from(looks: Sequence[Look], *, strictly: bool = False) -> float:
    """From when on every answer's true error stays below 1 %; strictly, a missing or superfluous row is wholly wrong."""
    since = looks[-1].seconds
    for look in reversed(looks):
        if (look.accuracy.strict if strictly else look.accuracy.error) >= GOOD:
            break
        since = look.seconds
    return since
