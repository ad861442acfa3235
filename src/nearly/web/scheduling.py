"""Whose query runs next: clients take turns, so that one with many queries does not hold up those with few."""

from __future__ import annotations

import logging
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from nearly.web.limits import Limits, TooMuch

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class ClientWork:
    """Something to do for a client, in a thread of the pool."""

    client: str
    do: Callable[[], None]


class FairPool:
    """Threads that do the work of clients.

    Law: of two clients that wait, the one whose last work began longer ago is next; work of one client begins in the order it was
    given; no client has more than its share of the threads while it runs.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: OrderedDict[str, deque[ClientWork]] = OrderedDict()
        self._running: Counter[str] = Counter()
        self._threads = 0
        self._idle = 0
        self._closed = False
        self._news = threading.Condition()

    def submit(self, client: str, do: Callable[[], None]) -> ClientWork:
        """Have something done when it is the client's turn; `TooMuch` where too much waits already."""
        work = ClientWork(client, do)
        with self._news:
            if self._closed:
                raise TooMuch("the server is closing")
            if self.waiting >= self._limits.waiting:
                raise TooMuch(f"{self.waiting:,} queries wait already (--max-waiting); try again later")
            self._waiting.setdefault(client, deque()).append(work)
            if self.waiting > self._idle and self._threads < self._limits.queries:
                self._threads += 1
                threading.Thread(target=self._serve, name="nearly-serve", daemon=True).start()
            self._news.notify()
        return work

    def withdraw(self, work: ClientWork) -> bool:
        """Forget work that has not begun; whether that was in time."""
        with self._news:
            mine = self._waiting.get(work.client)
            if mine is None or work not in mine:
                return False
            mine.remove(work)
            if not mine:
                del self._waiting[work.client]
            return True

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def running(self) -> int:
        return self._running.total()

    def close(self) -> None:
        """Begin nothing more."""
        with self._news:
            self._closed = True
            self._waiting.clear()
            self._news.notify_all()

    def _serve(self) -> None:
        while (work := self._next()) is not None:
            try:
                work.do()
            except Exception:
                logger.exception("work for %s failed", work.client)
            finally:
                with self._news:
                    self._running[work.client] -= 1
                    if not self._running[work.client]:
                        del self._running[work.client]
                    self._news.notify()

    def _next(self) -> ClientWork | None:
        """The next work; its client goes to the end of the line. None when the pool is closed."""
        with self._news:
            while not self._closed:
                for client, mine in self._waiting.items():
                    if self._running[client] < self._limits.of_client:
                        work = mine.popleft()
                        del self._waiting[client]
                        if mine:
                            self._waiting[client] = mine
                        self._running[client] += 1
                        return work
                self._idle += 1
                self._news.wait()
                self._idle -= 1
            return None
