"""The standing queries of a catalog: their definitions, which outlive the process, and the one thread that refreshes them.

    <catalog>/standing/<name>.json      a query's text, when and within what it is refreshed, and what came so far

Law: a query goes on after a crash as it was defined, with a first answer over the tables as they are then.
The thread refreshes one query after the other, the one that has waited longest beyond its time first.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from nearly.answer import Answer
from nearly.engine.costs import Costs
from nearly.engine.engine import Engine
from nearly.engine.planner import Prepared
from nearly.engine.storage.catalog import check_name
from nearly.errors import EngineError, NearlyError, SchemaError, unknown
from nearly.plan.syntax.parse import check_query
from nearly.standing.arrivals import Forecast, Past, predictor_of
from nearly.standing.definition_files import DefinitionFiles
from nearly.standing.definitions import StandingDefinition, restored_past, restored_predictor
from nearly.standing.maintained import maintained
from nearly.standing.planner import StateBudget
from nearly.standing.policy import RefreshPolicy
from nearly.standing.standing import Standing, change, refresh_all
from nearly.standing.states import StateStore
from nearly.standing.upkeep import Upkeep
from nearly.standing.watching import Telling, watcher_of

logger = logging.getLogger(__name__)

GLANCE = 0.2
"""Seconds between two looks at the tables."""
PATIENCE = 30.0
"""Seconds that closing waits for a refresh, which it breaks off."""
AGAIN = 1.0
"""Seconds after which a query is tried again whose tables cannot be read."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user of a standing query asks for; None is what was said before, or what is usual."""

    policy: RefreshPolicy
    budget: StateBudget
    arrivals: Any = None
    on_change: Any = None


Told = Mapping[str, float | None]
"""What someone says who goes on with a query, by the names in its definition; None is what was said before."""
Estimated = Callable[[Prepared], Answer | None]
"""An early answer to a query; None where none comes well before the exact one."""


class StandingQueries:
    """All standing queries of a session."""

    def __init__(self, engine: Engine, estimated: Estimated = lambda _: None) -> None:
        self._engine = engine
        self.estimated = estimated
        self._open: dict[str, Standing] = {}
        self._lock = threading.RLock()
        self._files = threading.Lock()
        self._unwritten: set[str] = set()
        self._definitions = DefinitionFiles(engine.catalog.path / "standing")
        self._store: StateStore | None = None
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the queries that stand, here or in a process that was ended."""
        return self._definitions.names

    def start(self, text: str, name: str | None, wishes: Wishes) -> Standing:
        """Begin with a query, or go on with one of the same name and text."""
        plain = check_query(text).text
        known = check_name(name).lower() if name is not None else f"q_{hashlib.sha256(plain.encode()).hexdigest()[:10]}"
        watcher = watcher_of(wishes.on_change)
        with self._lock:
            if known in self._open:
                raise SchemaError(f"standing query {known!r} runs already; stop it first, or give another name=")
            before, identity = self._definitions.read(known) if known in self.names else (None, uuid.uuid4().hex)
            if before is not None and before.text != plain:
                raise SchemaError(f"there is a standing query {known!r} with another text; stop it first, or give another name=")
            query = maintained(self._engine, plain)
            if wishes.arrivals is None and before is not None:
                predictor = restored_predictor(before.arrivals)
            else:
                predictor = predictor_of(wishes.arrivals, query.tables)
            past = Past({}, restored_past(before.batches) if before is not None else ())
            forecast = Forecast(predictor, past, frozenset(before.complete) if before is not None else frozenset())
            upkeep = Upkeep(self._engine, self._states(), query, known, wishes.budget, self._measured())
            telling = None if watcher is None else Telling(known, watcher)
            made = Standing(known, wishes.policy, forecast, upkeep, telling, self, identity=identity)
            self._begin(made)
            return made

    def _begin(self, made: Standing) -> None:
        """Have the first answer of a query, and its definition; of one that cannot begin, nothing stays."""
        try:
            with self._states().lock:  # nobody brings what it shares up to date before it is known to share
                made.begin()
                if not made.is_over:
                    with self._files:
                        self._open[made.name] = made
                        self._definitions.begin(made)
        except BaseException:
            made.close()
            raise
        self._run_thread()

    def resume(self, name: str, on_change: Any = None, arrivals: Any = None, told: Told = MappingProxyType({})) -> Standing:
        """Go on with a query as it was defined, with another watcher and predictor where they are given; one that runs goes on."""
        known = str(name).lower()
        with self._lock:
            if known in self._open:
                return self._change(self._open[known], on_change, arrivals, told)
            if known not in self.names:
                raise unknown("standing query", str(name), self.names)
            found, _ = self._definitions.read(known)
            _refuse_others(known, told, found)
            budget = StateBudget(found.memory, found.disk)
            return self.start(found.text, known, Wishes(RefreshPolicy(found.every, found.rows), budget, arrivals, on_change))

    def _change(self, one: Standing, on_change: Any, arrivals: Any, told: Told) -> Standing:
        _refuse_others(one.name, told, StandingDefinition.from_standing(one))
        if on_change is not None or arrivals is not None:
            change(one, watcher_of(on_change), arrivals)
            self.keep(one)
        return one

    def forget(self, name: str) -> None:
        """Stop a query, whether it runs or only is defined."""
        known = str(name).lower()
        with self._lock:
            if known in self._open:
                self._open[known].stop()
            elif known in self.names:
                self._definitions.remove(known)
            else:
                raise unknown("standing query", str(name), self.names)

    def sharing(self, one: Standing) -> list[Standing]:
        """A query and those it shares states with, through however many others."""
        found, tables = [one], _tables_of(one)
        waiting = [each for each in list(self._open.values()) if each is not one]
        while near := [each for each in waiting if _tables_of(each) & tables]:
            found += near
            waiting = [each for each in waiting if each not in near]
            tables = tables.union(*map(_tables_of, near))
        return found

    def keep(self, one: Standing, soon: bool = True) -> None:
        """Have what is new of a query in its definition: now, or soon, by the thread, since nobody should wait for a disk."""
        if soon:
            self._unwritten.add(one.name)
        else:
            self._write(one)

    def left(self, one: Standing, forget: bool) -> None:
        """A query is over: its definition goes, or stays with all that came."""
        if not forget:
            self._write_or_warn(one)
        with self._files:
            if self._open.get(one.name) is one:
                del self._open[one.name]
            if forget:
                with suppress(EngineError):
                    self._definitions.drop(one)

    def close(self) -> None:
        """End with the session: definitions stay."""
        self._closed = True
        self._wake.set()
        for each in list(self._open.values()):
            each.close()
        if self._store is not None:
            self._store.close()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=PATIENCE)

    def _states(self) -> StateStore:
        if self._store is None:
            self._store = StateStore(self._engine)
        return self._store

    def _measured(self) -> Costs:
        self._engine.costs.measure()
        return self._engine.costs

    def _write(self, one: Standing) -> None:
        """Keep the definition of a query that is neither over, nor forgotten in another session."""
        with self._files:
            if self._open.get(one.name) is one:
                self._unwritten.discard(one.name)
                self._definitions.renew(one)

    def _write_or_warn(self, one: Standing) -> None:
        """The same, where nobody can do anything about a disk that refuses, and only what was seen to come is lost."""
        if one.name in self._unwritten:
            try:
                self._write(one)
            except NearlyError as trouble:
                logger.warning("what came to standing query %r could not be kept: %s", one.name, trouble)

    def _run_thread(self) -> None:
        """Have the thread run: it ends with the session alone, or where something ended it that nobody thought of."""
        if not self._closed and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._work, name="nearly-standing", daemon=True)
            self._thread.start()
        self._wake.set()

    def _work(self) -> None:
        while not self._closed:
            self._wake.clear()
            try:
                self._look()
            except Exception:  # the next look may succeed, and others wait for it
                logger.exception("the tables of standing queries could not be looked at")
            self._wake.wait(self._pause())

    def _look(self) -> None:
        """Leave what was forgotten, keep what is new, and refresh what is due."""
        self._leave_forgotten()
        for one in list(self._open.values()):
            self._write_or_warn(one)
        for one in self._due():
            if not self._closed and not one.is_over:
                self._refresh(one)

    def _leave_forgotten(self) -> None:
        """End the queries that someone forgot in another session of the catalog."""
        with self._files:
            gone = [one for one in self._open.values() if not self._definitions.has(one)]
        for one in gone:
            logger.info("standing query %r was stopped in another session", one.name)
            one.stop()

    def _due(self) -> list[Standing]:
        """Those whose time has come, the one that waits longest beyond it first."""
        found = [one for one in list(self._open.values()) if self._is_due(one)]
        return sorted(found, key=lambda one: (one.policy.every or 0.0) - one.waited())

    def _is_due(self, one: Standing) -> bool:
        """Whether to refresh a query; one whose tables cannot be read is refreshed, too, since that tells whoever waits for it."""
        if (one.policy.every, one.policy.rows) == (None, None):
            return False
        try:
            return one.policy.is_due(one.waited(), one.arrived(), ages=one.ages)
        except Exception:  # noqa: BLE001  whatever it is, the refresh meets it again
            return one.waited() >= max(AGAIN, one.policy.every or 0.0)

    def _pause(self) -> float:
        waits = [one.policy.wait(one.waited(), GLANCE) for one in list(self._open.values())]
        return min([*waits, 5 * GLANCE])

    def _refresh(self, one: Standing) -> None:
        try:
            for each in refresh_all(one):
                each.tell_later()
                self._write(each)
        except Exception as trouble:  # noqa: BLE001  a query that fails, however, must not end the others
            self._fail(one, trouble)
        except BaseException as trouble:  # noqa: BLE001  what ends a thread is no reason to end this one, nor whoever waits
            self._fail(one, EngineError(f"a function that it calls raised {trouble!r:.200}"))

    def _fail(self, one: Standing, trouble: Exception) -> None:
        if not self._closed and not self._engine.life.is_over:
            if str(trouble) != str(one.error):  # the same again is no news
                logger.warning("standing query %r could not be refreshed: %s", one.name, trouble)
            one.fail(trouble)
            time.sleep(GLANCE)


def _refuse_others(name: str, told: Told, defined: StandingDefinition) -> None:
    """Refuse options that are others than those a query was defined with: they would say nothing."""
    for option, value in told.items():
        if value is not None and value != getattr(defined, option):
            raise SchemaError(
                f"standing query {name!r} goes on with the {option}= that it was defined with, which is another; "
                f"leave {option}= out, or give the text of the query, too, after its close() where it runs"
            )


def _tables_of(one: Standing) -> set[str]:
    """The tables in which a query keeps states."""
    return {state.table for state in one.states}
