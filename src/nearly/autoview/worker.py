"""What is done when nobody asks anything: questions are mined, experiments run, views follow their tables, and the policy learns.

One thread of low priority does one piece after the other, as long as it is quiet.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import duckdb

from nearly.autoview.keeping import Deferred, Keeping
from nearly.autoview.store import MadeView, NoRoom
from nearly.autoview.upkeep import Lost, moved, present
from nearly.engine.native.running import Running
from nearly.engine.plans import BrokenOff
from nearly.errors import EngineError, NearlyError

logger = logging.getLogger(__name__)

QUIET = 0.3
"""Seconds without a query after which it is taken to be quiet."""
GLANCE = 0.2
CLOSING_SECONDS = 10.0
BESIDE = 0.05
"""The share of the time that work beside queries may take: it slows them."""


class Worker:
    """Works while it is quiet."""

    def __init__(self, keeping: Keeping, save: Callable[[], None]) -> None:
        self._keeping, self._save = keeping, save
        self._running = Running()
        self._stopping = threading.Event()
        self._working = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="nearly-autoview", daemon=True)
        self.seconds = 0.0
        """Time that learning, that is training, took."""
        self._began = time.monotonic()
        self._beside_seconds = 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing more, and break off what runs. An interrupt between two statements is lost, so it is repeated."""
        self._stopping.set()
        self._running.interrupt()
        if self._thread is threading.current_thread():
            return
        until = time.monotonic() + CLOSING_SECONDS
        while self._thread.is_alive() and time.monotonic() < until:
            self._thread.join(GLANCE)
            with suppress(duckdb.Error):  # a cursor that is being closed
                self._running.interrupt()

    def _run(self) -> None:
        activity = self._keeping.engine.activity
        while not self._stopping.wait(GLANCE):
            try:
                if activity.quiet < QUIET:
                    self._beside()
                while self.work():
                    pass
            except Exception:  # whatever one piece of work meets, the next one is done
                if not self._stopping.is_set():
                    logger.warning("automatic views: work in the background failed", exc_info=True)

    def _beside(self) -> None:
        """What may be done beside queries, since it reads no rows: without it, a session that never rests would make nothing."""
        with self._working:
            while not self._stopping.is_set() and self._may_work_beside():
                began = time.thread_time()
                found = self._done(self._mine)
                self._beside_seconds += time.thread_time() - began
                if not found:
                    break
            self._done(self._learn)

    def _may_work_beside(self) -> bool:
        return self._beside_seconds <= BESIDE * (time.monotonic() - self._began)

    def settle(self) -> None:
        """Do all that waits, now."""
        while self._turn(lambda: True):
            pass

    def work(self) -> bool:
        """One piece of work, as long as it is quiet; whether there was one."""
        return self._turn(self._may_work)

    def _may_work(self) -> bool:
        return not self._stopping.is_set() and self._keeping.engine.activity.quiet >= QUIET

    def _turn(self, may_work: Callable[[], bool]) -> bool:
        """The first piece of work that there is; one that is broken off was one, so that nothing else begins beside the query."""
        with self._working, self._keeping.engine.activity.background(self._running):
            pieces = (self._upkeep, self._mine, self._experiment, self._make, self._learn, self._keep_list)
            return any(may_work() and self._done(piece) for piece in pieces)

    def _done(self, piece: Callable[[], bool]) -> bool:
        """Do a piece of work; what cannot be done, since its tables are gone or changed, is left undone."""
        try:
            return piece()
        except NearlyError as trouble:
            self._keeping.engine.life.refuse_over()
            logger.info("automatic views: work in the background was given up: %s", trouble)
            return piece not in (self._learn, self._keep_list)

    def _mine(self) -> bool:
        return self._keeping.mining.work()

    def _experiment(self) -> bool:
        keeping = self._keeping
        experiment = keeping.experiments.next()
        if experiment is None:
            return False
        read = [keeping.store.kept[each] for each in experiment.reads if each in keeping.store.kept]
        with keeping.store.reading(read) as there:
            if there and len(read) == len(experiment.reads):
                outcome = keeping.experiments.run(experiment, self._running)
                if outcome is not None:
                    keeping.learn(outcome)
        return True

    def _learn(self) -> bool:
        began = time.thread_time()
        self._keeping.train()
        self.seconds += time.thread_time() - began
        return False

    def _keep_list(self) -> bool:
        if self._keeping.is_changed:
            self._keeping.is_changed = False
            self._save()
        return False

    def _make(self) -> bool:
        """Make a view that was too slow to make while its query ran."""
        keeping = self._keeping
        if not keeping.deferred:
            return False
        waiting = keeping.deferred.popleft()
        if waiting.option.id not in keeping.store.kept and keeping.engine.planner.is_current(waiting.prepared):
            self._made(waiting)
        return True

    def _made(self, waiting: Deferred) -> None:
        keeping, prepared = self._keeping, waiting.prepared
        intended = keeping.making.intention(prepared, waiting.candidate, waiting.option, list(keeping.store.kept.values()))
        if intended is None:
            return
        began = time.perf_counter()
        try:
            rows = keeping.making.made(prepared, intended, None, self._running)
        except BrokenOff:  # by a query, which goes first
            if not keeping.making.is_over:
                keeping.deferred.append(waiting)
            return
        if rows is None:
            return
        seconds = time.perf_counter() - began
        with keeping.deciding:
            moment = keeping.moment()
            kept = keeping.keep(prepared, moment, waiting.candidate, waiting.option, rows, seconds, seconds)
            if kept is not None:
                keeping.tally.spent += seconds
                keeping.policy.made(kept.holding, moment)

    def _upkeep(self) -> bool:
        """Bring a view up to date whose tables changed, or let go of it."""
        keeping = self._keeping
        for view in list(keeping.store.kept.values()):
            zone, tables = keeping.engine.cluster.time_zone, present(keeping.engine.catalog, view)
            if tables is None or view.zone != zone:
                keeping.evict(view.id, lost=True)
                return True
            if not view.fits(tables, zone):
                self._follow(view)
                return True
        return False

    def _follow(self, view: MadeView) -> None:
        keeping = self._keeping
        tables = present(keeping.engine.catalog, view)
        if tables is None:
            keeping.evict(view.id, lost=True)
            return
        fact = keeping.mining.facts.get(view.id)
        making = fact.seconds if fact is not None else keeping.estimates.seconds(view.candidate.stored.maintained, tables.values())
        try:
            with keeping.store.reading([view]) as there:  # a query may let go of it meanwhile
                if not there:
                    return
                rows = moved(keeping.estimates, view, tables, making, keeping.store.limit, self._running)
        except Lost as reason:
            logger.info("%s is dropped, since its tables changed: %s", view.name, reason)
            keeping.evict(view.id, lost=True)
            return
        except BrokenOff:  # by a query, which goes first; the view waits
            return
        if keeping.store.kept.get(view.id) is not view:  # a query made it again meanwhile
            return
        keeping.experiments.flush(view.id)
        versions = {name: (table.version, table.content) for name, table in tables.items()}
        keeping.store.remove(view.id)
        keeping.is_changed = True
        try:
            keeping.store.add(view.candidate, rows, versions, replace(view.holding, bytes=rows.bytes), view.zone)
            keeping.tally.moved += 1
        except (NoRoom, EngineError):
            keeping.note_gone(view, lost=True)
