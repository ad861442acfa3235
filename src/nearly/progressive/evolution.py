"""A progressive query in the background: its newest answer for whoever asks, while it goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from nearly.answer import Answer
from nearly.errors import EngineError
from nearly.estimate.cardinality import Monomial, Observation, fit_monomial
from nearly.progressive.run import Run


class Evolution:
    """The answers of one run, taken in by a thread of its own. Any number of threads may ask at the same time."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._changed = threading.Condition()
        self._latest: Answer | None = None
        self._count = 0
        self._ended = False
        self._stopped = False
        self._trouble: Exception | None = None
        self._observations: list[Observation] = []
        self._thread = threading.Thread(target=self._take_in, name=f"nearly-frame-{run.id}", daemon=True)
        self._thread.start()

    @property
    def latest(self) -> Answer | None:
        return self._latest

    @property
    def growth(self) -> Monomial | None:
        """The fit of the answers' row counts so far."""
        with self._changed:
            return fit_monomial(self._observations)

    def first(self) -> Answer:
        """The newest answer; waits for the first one."""
        with self._changed:
            self._changed.wait_for(lambda: self._latest is not None or self._ended)
        return self._given(self._latest)

    def final(self) -> Answer:
        """The exact answer; waits for the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended)
        return self._given(self._latest if self._latest is not None and self._latest.exact else None)

    def answers(self) -> Iterator[Answer]:
        """The newest answer and those after it; a slow taker misses some, never the last."""
        seen = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._count > seen or self._ended)  # noqa: B023  waits in this turn only
                if self._count == seen:
                    break
                seen, answer = self._count, self._latest
            if answer is not None:
                yield answer
        if self._trouble is not None:
            raise self._trouble

    def stop(self) -> None:
        """End the run; the newest answer stays."""
        self._stopped = True
        self._run.stop()

    def _given(self, answer: Answer | None) -> Answer:
        if self._trouble is not None:
            raise self._trouble
        if answer is None:
            raise EngineError("the frame was stopped before this answer was there; make it anew to run it again")
        return answer

    def _take_in(self) -> None:
        answers = self._run.answers()
        try:
            for answer in answers:
                with self._changed:
                    self._latest = answer
                    self._count += 1
                    self._observations.append(Observation(answer.progress, answer.table.num_rows))
                    self._changed.notify_all()
                if self._stopped:
                    break
        except Exception as trouble:  # noqa: BLE001  whoever asks for an answer gets it
            self._trouble = trouble
        finally:
            answers.close()
            with self._changed:
                self._ended = True
                self._changed.notify_all()
