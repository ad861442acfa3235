"""`db.autoview(...)`: automatic views as a user holds them, and as queries ask them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from nearly.answer import Answer
from nearly.autoview import listing
from nearly.autoview.course import QueryCourse
from nearly.autoview.keeping import Keeping
from nearly.autoview.policies.known import policy_of
from nearly.autoview.rewriter import Rewriting
from nearly.autoview.statements import advised
from nearly.autoview.status import KeptView, Status
from nearly.autoview.store import ViewStore
from nearly.autoview.worker import Worker
from nearly.engine.answerers import Offer, Question
from nearly.engine.engine import Engine
from nearly.engine.results import finished
from nearly.errors import EngineError, SchemaError, Unsupported

DIRECTORY = "autoview"
DEFAULT_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class AutoviewSettings:
    """How much is kept, who decides, and by which share making a view may slow its query."""

    storage: int
    policy: str = "learned"
    slowdown: float = DEFAULT_SHARE
    seed: int = 0

    def __post_init__(self) -> None:
        if self.storage < 1:
            raise SchemaError(f"storage={self.storage!r} must be more than nothing, such as '200MB'")
        share = self.slowdown
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 10:
            raise SchemaError(f"slowdown={share!r} must lie between 0 and 10: it is the share by which a query may take longer")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise SchemaError(f"seed={self.seed!r} must be a whole number that is not negative")
        policy_of(self.policy)


class AutoView:
    """Views that choose themselves, for one session."""

    def __init__(self, engine: Engine, settings: AutoviewSettings) -> None:
        self._engine, self.settings = engine, settings
        self._store = ViewStore(engine.catalog.path / DIRECTORY, settings.storage)
        self._keeping = Keeping(engine, self._store, policy_of(settings.policy, settings.seed), settings.slowdown)
        self.course = QueryCourse(self._keeping)
        try:
            listing.load(self._keeping)
        except BaseException:
            self._store.close()
            raise
        self._worker = Worker(self._keeping, self._save_while_on)
        self._began = time.monotonic()
        self.is_on = True
        self._worker.start()

    @property
    def keeping(self) -> Keeping:
        return self._keeping

    def settle(self) -> None:
        """Do now what otherwise waits for a quiet time: mining, experiments, following changed tables, learning."""
        self._refuse_off()
        self._worker.settle()

    def status(self) -> Status:
        """What is kept, what it cost and saved, and what is not sure yet."""
        keeping, store = self._keeping, self._store
        with store.lock:
            kept = list(store.kept.values())
        measured = Counter(view for _, view in list(keeping.gains))
        views = tuple(
            KeptView(
                each.name, each.candidate.kind, each.candidate.shape.tables, each.table.rows, each.holding.bytes, each.holding.uses,
                each.holding.cost, each.holding.saved, measured[each.id],
            )
            for each in kept
        )  # fmt: skip
        unsure = len(keeping.experiments) + len(keeping.mining.waiting)
        settings, seconds = self.settings, self._worker.seconds
        return Status(self.is_on, settings.policy, settings.storage, store.bytes, views, keeping.tally, unsure, seconds)

    def advice(self) -> list[str]:
        """Statements that would make the views permanent that were used most, those that saved most first."""
        with self._store.lock:
            kept = list(self._store.kept.values())
        return advised(kept)

    def off(self) -> None:
        """Use and make no more views, from now on; their rows are removed, what was learned stays. Twice is harmless."""
        if not self.is_on:
            return
        self.is_on = False
        self._store.refuse_more()
        try:
            self._keeping.making.end()
            self._worker.stop()
            self._store.clear()
            self._save()
        finally:
            self._store.close()

    def close(self) -> None:
        """The session ends; what is kept stays for the next one."""
        if not self.is_on:
            return
        self.is_on = False
        try:
            self._keeping.making.end()
            self._worker.stop()
            self._save()
        finally:
            self._store.close()

    def _save_while_on(self) -> None:
        """Not of views that another session may have by now."""
        if self.is_on:
            listing.save(self._keeping)

    def _save(self) -> None:
        try:
            listing.save(self._keeping)
        except EngineError:  # a disk that is full must not keep a session from closing; files without a list are removed later
            return

    def _refuse_off(self) -> None:
        self._engine.life.refuse_over()
        if not self.is_on:
            raise SchemaError("automatic views are off; use db.autoview(storage='200MB')")


def changed(
    present: AutoView | None, storage: int | None, policy: str | None, slowdown: float | None, seed: int | None
) -> AutoviewSettings | None:
    """The settings that are asked for, where something is; what is not said stays."""
    if present is not None and (storage, policy, slowdown, seed) == (None, None, None, None):
        return None
    if storage is None and (present is None or not present.is_on):
        raise SchemaError("automatic views are off; say how much they may keep: db.autoview(storage='200MB')")
    before = present.settings if present is not None else AutoviewSettings(1)
    return AutoviewSettings(
        before.storage if storage is None else storage, before.policy if policy is None else policy,
        before.slowdown if slowdown is None else slowdown, before.seed if seed is None else seed,
    )  # fmt: skip


@dataclass(slots=True)
class AutoViewAnswerer:
    """Answers queries with automatic views, where a session has them on."""

    current: Callable[[], AutoView | None]

    @property
    def is_exact(self) -> bool:
        return True

    def knows(self, name: str) -> bool:
        return name.lower() == DIRECTORY

    def offer(self, question: Question) -> Offer:
        """The exact answer, from views where some serve the query, making one on the way where that is worth it."""
        mine = self.current()
        forced = question.using is not None
        if mine is None or not mine.is_on:
            if forced:
                raise Unsupported("automatic views are off; use db.autoview(storage='200MB')")
            return Offer(())
        keeping = mine.keeping
        best = mine.course.best(question.prepared)
        if best is None:
            if forced:
                raise Unsupported(f"automatic views cannot answer this query: {question.prepared.reason}")
            return Offer(())
        told = _told(best, len(keeping.store.kept))
        if not best.views and not question.exact and self._early(mine, question, best):
            return Offer((told,))
        return Offer((told,), lambda: self._given(mine, question, best), 0.0, best.seconds)

    def _early(self, mine: AutoView, question: Question, best: Rewriting) -> bool:
        """Whether an early answer is worth having, so that the query is left to be read piece by piece."""
        durations = mine.keeping.engine.native.durations
        prepared, cores = question.prepared, mine.keeping.engine.cluster.sites.cores
        expected = durations.expected(prepared.question, best.plan, prepared.schema, cores)
        return durations.is_worth(expected, 1, 0.0)

    def _given(self, mine: AutoView, question: Question, best: Rewriting) -> Answer:
        prepared, began = question.prepared, time.perf_counter()
        course = mine.course.run(prepared, best, question.ending) if mine.is_on else None
        if course is None or course.rows is None or prepared.query is None:  # for Spark to judge, over the tables themselves
            result = mine.keeping.engine.until(question.ending).run(prepared)
            return Answer.exactly(result.table, result.source, question.confidence, dict(result.stats))
        source = " + ".join(course.views) or "native"
        stats = {"run": time.perf_counter() - began}
        return Answer.exactly(finished(course.rows, prepared.query), source, question.confidence, stats)


def _told(best: Rewriting, kept: int) -> str:
    if not best.views:
        return f"autoview: none of {kept} views serves it" if kept else "autoview: no views yet"
    return f"autoview: yes, {' and '.join(f'{each.name} ({each.table.rows:,} rows)' for each in best.views)}"
