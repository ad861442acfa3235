"""A query on its way for a client: it waits for its turn, runs in a thread, and its newest answer can be waited for."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from nearly.answer import Answer
from nearly.errors import NearlyError, SchemaError
from nearly.plan.syntax.goal import split_goal
from nearly.query import Query
from nearly.session import Session
from nearly.web.limits import Limits, TooMuch
from nearly.web.scheduling import ClientWork, FairPool

WATCHED = 1e-9
"""The error that a watched query asks for: never reached, but its intervals stay valid whenever somebody stops it."""

EXACT, EARLY, RANGE = "exact", "early", "range"
MODES = (EXACT, EARLY, RANGE)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a client asks: a text, how good or how late the answer may be, and whether it wants answers on the way.

    `exact` asks for the exact answer alone, `early` for answers on the way, `range` for the range over missing rows.
    """

    text: str
    error: float | None = None
    seconds: float | None = None
    confidence: float = 0.95
    mode: str = EARLY
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise SchemaError("there is no query; give its text as 'sql'")
        if self.mode not in MODES:
            raise SchemaError(f"mode {self.mode!r} must be one of {', '.join(MODES)}")
        for name in ("error", "seconds"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
                raise SchemaError(f"{name}={value!r} must be a number above 0")


@dataclass(slots=True, eq=False)
class ClientQuery:
    """One query of a client from its wish to its last answer.

    `changed` is called, from any thread, whenever there is something new to see. Answers that come faster than they are taken are
    left out: whoever looks sees the newest.
    """

    wish: Wish
    client: str
    limits: Limits
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    newest: Answer | None = None
    trouble: Exception | None = None
    over: bool = False
    paused: bool = False
    why: str = ""
    """What ended it before its exact answer, in words."""
    changed: Callable[[], None] = lambda: None
    goal: float | None = None
    _query: Query | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _asked: float = field(default_factory=time.monotonic)
    _ended: float | None = None
    _began: float | None = None
    _work: ClientWork | None = None
    _late: bool = False
    _done: threading.Event = field(default_factory=threading.Event)

    @property
    def elapsed(self) -> float:
        """Seconds since it was asked, until its end."""
        return (self._ended or time.monotonic()) - self._asked

    @property
    def waited(self) -> float:
        """Seconds that it waited for its turn."""
        return (self._began or self._ended or time.monotonic()) - self._asked

    @property
    def state(self) -> str:
        """Waiting, running, paused or over."""
        if self.over:
            return "over"
        return "waiting" if self._began is None else "paused" if self.paused else "running"

    def run(self, db: Session) -> None:
        """Answer it; in a thread of the pool."""
        self._began = time.monotonic()
        limit = threading.Timer(self.limits.seconds, self._time_is_over)
        limit.daemon = True
        limit.start()
        try:
            if not self._stopped.is_set():
                for answer in self._answers(db):
                    self.newest = answer
                    self.changed()
        except NearlyError as trouble:
            if not self._stopped.is_set():
                self.trouble = trouble
        except Exception as trouble:
            self.trouble = trouble
            raise
        finally:
            limit.cancel()
            self._end()

    def stop(self, why: str = "stopped") -> None:
        """End it; its newest answer stays. It may take a moment until nothing of it runs."""
        self.why = self.why or why
        self._stopped.set()
        while (query := self._query) is not None and not self.over:
            query.stop()
            if self._done.wait(0.2):  # a stop that comes just before a run begins is repeated
                break

    def pause(self) -> None:
        """Free what it uses until it goes on; one that has not begun begins with a pause."""
        if not self.over:
            self.paused = True
            query = self._query
            if query is not None:
                query.pause()
            self.changed()

    def go_on(self) -> None:
        """After a pause."""
        self.paused = False
        query = self._query
        if query is not None:
            query.resume()
            self.changed()

    def withdrawn(self) -> None:
        """It never began."""
        self._end()

    def aim(self, error: float | None) -> None:
        """Another error at which it is good enough; None goes on to the exact answer."""
        self.goal = error
        newest = self.newest
        if error is not None and newest is not None and not newest.exact and newest.error <= error:
            self.stop("good enough")

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it ended within some seconds."""
        return self._done.wait(seconds)

    def _answers(self, db: Session) -> Iterator[Answer]:
        wish = self.wish
        self._query = query = db.sql(wish.text, confidence=wish.confidence, seed=wish.seed)
        if self._stopped.is_set():
            return
        if self.paused:
            query.pause()
        if wish.mode == EXACT:
            yield query.exact()
            return
        if wish.mode == RANGE:
            yield query.range(seconds=min(wish.seconds or 30.0, self.limits.seconds))
            return
        asked = split_goal(wish.text)[1]
        self.goal = wish.error or asked.error
        for answer in query.answers(error=WATCHED, seconds=wish.seconds or asked.seconds):
            if self._stopped.is_set() and not answer.exact:
                self.newest = answer
                return
            yield answer
            if not answer.exact and self.goal is not None and answer.error <= self.goal:
                self.why = self.why or "good enough"
                return
        if self.newest is not None and not self.newest.exact:
            self.why = self.why or "the time that was given is over"

    def _time_is_over(self) -> None:
        self._late = True
        self.stop(f"the server's limit of {self.limits.seconds:g} seconds is over (--max-seconds)")

    def _end(self) -> None:
        if not self.over:
            self._ended = time.monotonic()
            self.over = True
            self._query = None  # and with it what the run kept
            if self.newest is None and self.trouble is None and self._stopped.is_set():
                self.trouble = TooMuch(self.why) if self._late else Stop("the query was stopped before its first answer")
            self._done.set()
            self.changed()


class Stop(NearlyError):
    """A query was stopped before it had an answer."""


class Desk:
    """Where clients ask: queries under way, and the answers of the last ones for exports."""

    def __init__(self, db: Session, limits: Limits) -> None:
        self.db = db
        self.limits = limits
        self.pool = FairPool(limits)
        self._known: dict[str, ClientQuery] = {}
        self._lock = threading.Lock()

    def ask(self, wish: Wish, client: str, changed: Callable[[], None] = lambda: None) -> ClientQuery:
        """Put a query in line."""
        self.limits.check_text(wish.text)
        asking = ClientQuery(wish, client, self.limits, changed=changed)
        with self._lock:
            self._known[asking.id] = asking
            self._forget()
        try:
            asking._work = self.pool.submit(client, lambda: asking.run(self.db))
        except TooMuch:
            with self._lock:
                del self._known[asking.id]
            raise
        return asking

    def find(self, id_: str) -> ClientQuery | None:
        return self._known.get(id_)

    def drop(self, asking: ClientQuery, why: str = "stopped") -> None:
        """Stop a query, whether it has begun or not."""
        work = asking._work
        if work is not None and self.pool.withdraw(work):
            asking.stop(why)
            asking.withdrawn()
        else:
            asking.stop(why)

    @property
    def under_way(self) -> list[ClientQuery]:
        with self._lock:
            return [each for each in self._known.values() if not each.over]

    def close(self) -> None:
        self.pool.close()
        for each in self.under_way:
            each.stop("the server is closing")
            each.wait(5)

    def _forget(self) -> None:
        """Only the newest of those that are over are kept, as many and as large as the limits say."""
        over = [each for each in self._known.values() if each.over]
        held = 0
        for place, each in enumerate(reversed(over)):
            held += 0 if each.newest is None else each.newest.table.nbytes
            if place >= self.limits.kept or (place and held > self.limits.kept_bytes):
                del self._known[each.id]


class Watch:
    """The news of one query for a coroutine."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def __call__(self) -> None:
        """From any thread: there is something new."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._event.set)

    async def news(self, seconds: float) -> bool:
        """Whether something new came within some seconds."""
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False
        self._event.clear()
        return True
