"""What the user of a standing query holds: its answer, which is kept current, and how that is done.

    s = db.standing("select ...", every="60s", memory="512MB")
    for answer in s: ...                    # the present answer, then every new one, until it ends
    s.answer   s.refresh()   s.status()   s.explain()   s.complete("orders")   s.stop()

Law: every answer is exact for the versions of the tables that it names (`answer.stats["versions"]`). Before a refresh that takes
long, whoever iterates is given an estimate of its answer with bounds, which says that it is not exact.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from nearly.answer import Answer
from nearly.engine.planner import Prepared
from nearly.engine.storage.layouts import Table
from nearly.errors import EngineError, NearlyError, unknown
from nearly.printing.html import card
from nearly.standing.actions import DISK
from nearly.standing.arrivals import Arrival, Forecast, Prediction, Score, differs, predictor_of
from nearly.standing.course import changed_between
from nearly.standing.drawing import StandingStatus, drawn, status_of
from nearly.standing.maintained import prepared_over, present, versions
from nearly.standing.planner import StateBudget
from nearly.standing.policy import RefreshPolicy
from nearly.standing.refresh import advance, begin
from nearly.standing.states import StateRows
from nearly.standing.upkeep import EARLY, SAME, StandingRefresh, Upkeep
from nearly.standing.watching import Telling, Watcher

logger = logging.getLogger(__name__)

REMEMBERED = 200
"""Refreshes that are remembered."""
LAST_WORDS = 2.0
"""Seconds that closing a session waits for a watcher that is being told something."""


class Home(Protocol):
    """Whoever runs several standing queries."""

    def estimated(self, prepared: Prepared) -> Answer | None: ...

    def sharing(self, one: Standing) -> list[Standing]: ...

    def keep(self, one: Standing, soon: bool = True) -> None: ...

    def left(self, one: Standing, forget: bool) -> None: ...


@dataclass(slots=True, weakref_slot=True, eq=False, repr=False)
class Standing:
    """A query whose answer is kept current; made by `db.standing`."""

    name: str
    policy: RefreshPolicy
    forecast: Forecast
    _upkeep: Upkeep
    _telling: Telling | None = None
    _home: Home | None = None
    history: list[StandingRefresh] = field(default_factory=list)
    error: BaseException | None = None
    _number: int = 0
    _at: float = 0.0
    _over: bool = False
    _news: threading.Condition = field(default_factory=threading.Condition)
    _answer: Answer | None = None
    _newest: Answer | None = None
    """The last answer, or an estimate of the one that is being computed."""
    _looking: int = 0
    """How many iterate over it."""
    _planned_for: Prediction | None = None
    identity: str = ""
    """What its definition is told from others of its name by, which were begun before or after it."""

    def __repr__(self) -> str:
        state = "over" if self._over else "no answer yet" if self._answer is None else f"refreshed {len(self.history)} times"
        return f"<Standing {self.name}: {state}>"

    def _repr_html_(self) -> str:
        shown = "" if self._answer is None else self._answer._repr_html_()
        return card(f"Standing {self.name}", {"query": self.text, "refreshes": len(self.history), "over": self._over}, shown)

    @property
    def text(self) -> str:
        return self._upkeep.query.text

    @property
    def answer(self) -> Answer:
        """The last answer."""
        if self._answer is None:
            raise EngineError(f"standing query {self.name!r} has no answer yet")
        return self._answer

    @property
    def versions(self) -> Mapping[str, int]:
        """The versions of the tables that the last answer is of."""
        return self.history[-1].versions if self.history else {}

    @property
    def is_over(self) -> bool:
        """Whether it was stopped, or everything that it reads is complete."""
        return self._over

    @property
    def bytes(self) -> int:
        """Bytes of memory that its states have."""
        return self._upkeep.bytes()

    @property
    def disk_bytes(self) -> int:
        return self._upkeep.bytes(DISK)

    @property
    def budget(self) -> StateBudget:
        return self._upkeep.budget

    @property
    def states(self) -> tuple[StateRows, ...]:
        """What it keeps."""
        return tuple(self._upkeep.held.values())

    @property
    def scores(self) -> list[Score]:
        """How good the predictions were."""
        return self.forecast.scores

    def status(self) -> StandingStatus:
        """What it keeps, what it expects next, and how the last refresh went."""
        with self._upkeep.store.lock:
            return status_of(self.name, self._upkeep, self.policy, self.forecast, self.history, self._age(), self._over, self.error)

    def explain(self) -> str:
        """The plan with what is kept of it, its bytes, and why."""
        with self._upkeep.store.lock:
            return drawn(self._upkeep, self.forecast.said)

    def refresh(self) -> Answer:
        """Bring the answer up to date now; its own watcher is told before this returns, those of others are not waited for."""
        self._refuse_over()
        for each in refresh_all(self):
            if self._home is not None:
                self._home.keep(each)
            if each is not self:
                each.tell_later()
        self.tell()
        return self.answer

    def complete(self, *tables: str) -> None:
        """Tell that nothing will come any more of some tables; when nothing does of any, the query ends with its next answer."""
        self._upkeep.engine.life.refuse_over()
        known = {name.lower() for name in self._upkeep.tables}
        for name in tables:
            if not isinstance(name, str) or name.lower() not in known:
                raise unknown("table of the query", str(name), known)
        with self._upkeep.store.lock:
            self.forecast.finish(tables)
            self._end_if_complete()
        if self._home is not None:
            self._home.keep(self, soon=False)

    def stop(self) -> None:
        """Forget the query and what it keeps; whoever waits for its next answer waits no longer. Twice is harmless."""
        self._end(forget=True)
        if self._telling is not None:
            self._telling.forget()

    def __iter__(self) -> Iterator[Answer]:
        """The present answer, then every new one, long ones after an estimate; those that come while one is looked at are one."""
        seen = 0
        self._look(1)
        try:
            while True:
                with self._news:
                    while self._number <= seen and not self._over and self.error is None:
                        self._news.wait()
                    if self._number <= seen:
                        if self.error is not None and not self._over:
                            raise self.error
                        return
                    seen, found = self._number, self._newest
                if found is not None:
                    yield found
        finally:
            self._look(-1)

    def _look(self, change: int) -> None:
        with self._news:
            self._looking += change

    def _refuse_over(self) -> None:
        self._upkeep.engine.life.refuse_over()
        if self._over:
            raise EngineError(f"standing query {self.name!r} is over; start another with db.standing(...)")

    def _age(self) -> float:
        return time.monotonic() - self._at

    def begin(self) -> None:
        """The first answer."""
        upkeep = self._upkeep
        upkeep.early = self._show_early
        tables = present(upkeep.engine, upkeep.query)
        self.forecast.past = type(self.forecast.past)(_rows(tables), self.forecast.past.batches)
        said = self._planned_for = self.forecast.look_ahead(self.policy.next)
        self.publish(begin(upkeep, tables, said))
        upkeep.answered = self.publish
        self._end_if_complete()

    def sharing(self) -> list[Standing]:
        """This query and those that keep a state with it: they move together."""
        return [self] if self._home is None else self._home.sharing(self)

    def arrived(self) -> float:
        """Rows that came or went since the last answer."""
        upkeep = self._upkeep
        return sum(
            each.rows for each in changed_between(upkeep.engine, upkeep.tables, present(upkeep.engine, upkeep.query)).values()
        )

    def waited(self) -> float:
        """Seconds since the last refresh."""
        return self._age()

    @property
    def ages(self) -> bool:
        """Whether its answer is another one later on, though no table changed, as of a query that asks for the time."""
        return self._upkeep.query.ages

    def look_ahead(self, tables: Mapping[str, Table]) -> Prediction | None:
        """What is expected after the refresh that begins now, to these tables; None where that asks for no other plan."""
        own = {name: tables[name] for name in self._upkeep.tables}
        changed = changed_between(self._upkeep.engine, self._upkeep.tables, own)
        if changed:
            self.forecast.observe(Arrival(max(self._age(), 1e-3), changed), _rows(own))
        try:
            said = self.forecast.look_ahead(self.policy.next)
        except (Exception, SystemExit):  # whatever a user's predictor does, what it would have said costs time alone
            logger.exception("the arrivals of standing query %r could not be predicted", self.name)
            return None
        if self._planned_for is not None and not differs(said, self._planned_for):
            return None
        self._planned_for = said
        return said

    def publish(self, refresh: StandingRefresh) -> None:
        """Have the answer of a refresh, and tell whoever waits for it."""
        upkeep, before = self._upkeep, self._answer
        if refresh.strategy != SAME or before is None:
            stats = {"versions": dict(refresh.versions), "refresh": refresh.strategy, "run": refresh.seconds, "name": self.name}
            self._answer = Answer.exactly(_given(upkeep.answer), "standing", stats=stats)
        self.history = [*self.history, refresh][-REMEMBERED:]
        self.error = None
        with self._news:
            self._at = time.monotonic()
            if refresh.strategy != SAME or before is None:
                self._number += 1
                self._newest = self._answer
                self._news.notify_all()
        if self._telling is not None and before is not None and refresh.strategy != SAME:
            self._telling.add(before, self.answer)

    def _show_early(self, tables: dict[str, Table]) -> None:
        """Show whoever iterates an estimate over new versions of the tables; the exact answer takes long, and follows."""
        if not self._looking or self._home is None:
            return
        upkeep = self._upkeep
        try:
            found = self._home.estimated(prepared_over(upkeep.engine, self.text, tables.values()))
        except NearlyError as trouble:  # whatever it is, the refresh meets it again
            upkeep.engine.life.refuse_over()
            logger.info("no estimate of standing query %r: %s", self.name, trouble)
            return
        if found is not None and not found.exact:
            stats = {**found.stats, "versions": versions(tables), "refresh": EARLY, "name": self.name}
            with self._news:
                self._newest = replace(found, source="standing", stats=stats)
                self._number += 1
                self._news.notify_all()

    def _forget_estimate(self) -> None:
        """The answer that was estimated does not come; who begins to iterate begins with the last one that did."""
        with self._news:
            self._newest = self._answer

    def tell(self) -> None:
        """Tell the watcher of what was published; not while states are locked."""
        if self._telling is not None:
            self._telling.tell()

    def tell_later(self) -> None:
        """The same, in a thread of its own."""
        if self._telling is not None:
            self._telling.tell_later()

    def fail(self, trouble: BaseException) -> None:
        """Tell whoever waits that a refresh failed; the next one may succeed."""
        with self._news:
            self.error, self._at = trouble, time.monotonic()
            self._news.notify_all()

    def _end_if_complete(self) -> None:
        upkeep = self._upkeep
        if set(upkeep.tables) <= self.forecast.complete and not self._over and not self.arrived():
            self._end(forget=True)

    def close(self) -> None:
        """Let go at the end of the session; the definition stays, and the query can be taken up again."""
        self._end(forget=False)
        if self._telling is not None:
            self._telling.forget(LAST_WORDS)

    def _end(self, *, forget: bool) -> None:
        with self._news:
            if self._over:
                return
            self._over = True
            self._news.notify_all()
        if self._home is not None:
            self._home.left(self, forget)
        if not self._upkeep.engine.life.is_over:
            self._upkeep.release_soon()


def change(one: Standing, watcher: Watcher | None, arrivals: Any) -> None:
    """Have a query that runs tell another watcher, and expect other arrivals; None leaves what is."""
    predictor = None if arrivals is None else predictor_of(arrivals, one._upkeep.query.tables)
    with one._upkeep.store.lock:
        if predictor is not None:
            one.forecast.predictor = predictor
        if watcher is not None and one._telling is not None:
            one._telling.watcher = watcher
        elif watcher is not None:
            one._telling = Telling(one.name, watcher)


def refresh_all(one: Standing) -> list[Standing]:
    """Refresh a query and those that share states with it, over one version of all their tables; the queries that were.

    Who shares what is asked while nobody can begin to: a query that kept a state which others bring up to date without it would
    add the same change twice. Where a neighbour cannot be refreshed, since one of its tables is gone, nothing is shared any more,
    and the query is refreshed by itself.
    """
    with one._upkeep.store.lock:
        running = [each for each in one.sharing() if not each.is_over]
        try:
            return _refreshed(running)
        except NearlyError:
            one._upkeep.engine.life.refuse_over()
            if len(running) < 2 or one.is_over:
                raise
            for each in running:
                each._upkeep.release()
                if each is not one:
                    each.tell_later()  # its answer may have come before the trouble
            return _refreshed([one])


def _refreshed(running: list[Standing]) -> list[Standing]:
    if not running:
        return []
    names = {table.name for each in running for table in each._upkeep.tables.values()}
    engine = running[0]._upkeep.engine
    tables = {table.name.lower(): table for table in engine.catalog.together(sorted(names))}
    predicted = {each: each.look_ahead(tables) for each in running}
    running = [each for each in running if not each.is_over]  # a predictor is a user's function: it may have ended some
    try:
        advance([each._upkeep for each in running], tables, [predicted[each] for each in running])
    except BaseException:
        for each in running:
            each._forget_estimate()
        raise
    for each in running:
        each._end_if_complete()
    return running


def _rows(tables: Mapping[str, Table]) -> dict[str, float]:
    return {name: float(table.rows) for name, table in tables.items()}


def _given(table: pa.Table | None) -> pa.Table:
    if table is None:
        raise AssertionError("a refresh leaves an answer")
    return table
