"""Rows of the units that come first, kept in the driver's memory: the next query over the same tables begins with them.

Reading the first units from Parquet is most of the time until a first answer, and queries with the same seed begin with the same
units. So what queries read first more than once stays in memory, as long as there is room: the columns they asked for so far.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import duckdb

from nearly.engine.native.engine import Native
from nearly.errors import EngineError
from nearly.plan.quoting import native_name
from nearly.rewrite.stream.cut import UNIT

REMEMBERED = 1_000
"""So many beginnings of queries are remembered; a program that takes another seed each time has no use for more."""

PAUSE_SECONDS = 0.05
LONGEST_WAIT = 10.0
"""Seconds after which rows are loaded although other queries are running."""


@dataclass(frozen=True, slots=True)
class FirstPiece:
    """What a scan reads in the first units: its name in the stages' SQL, which rows and columns, and how to read some."""

    name: str
    rows: Hashable
    columns: tuple[str, ...]
    query: Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class _Kept:
    name: str
    columns: tuple[str, ...]


class FirstUnits:
    """What one native engine keeps of first units. Law: a query gives the same rows from here as from the files."""

    def __init__(self, engine: Native) -> None:
        self.engine = engine
        self._kept: dict[Hashable, _Kept] = {}
        self._asked: Counter[Hashable] = Counter()
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="nearly-keep")

    @contextmanager
    def holding(self, pieces: Iterable[FirstPiece]) -> Iterator[dict[str, str]]:
        """For the pieces that are in memory, the queries that read them there; they stay as long as this is open."""
        found = {}
        for piece in pieces:
            kept = self._kept.get(piece.rows)
            if kept is not None and set(piece.columns) <= set(kept.columns):
                found[piece.name] = (kept.name, piece.columns)
        with self.engine.holding({name for name, _ in found.values()}) as held:
            yield {piece: _select(name, columns) for piece, (name, columns) in found.items() if name in held}

    def keep(self, pieces: Sequence[FirstPiece], statics: Sequence[tuple[str, str]], busy: Callable[[], bool] = bool) -> None:
        """Soon have in memory what a query read first, and its static tables, if a query began with these rows before.

        While the machine is `busy` with other queries, that waits for a while.
        """
        if len(self._asked) > REMEMBERED:
            self._asked.clear()
        for rows in {piece.rows for piece in pieces}:
            self._asked[rows] += 1
        again = [piece for piece in pieces if self._asked[piece.rows] > 1]
        if again and not (all(map(self._has, again)) and all(self.engine.has(name) for name, _ in statics)):
            with suppress(RuntimeError):  # closed meanwhile
                self._loader.submit(self._load, again, statics, busy)

    def settle(self) -> None:
        """Wait until everything that is to be kept is in memory."""
        self._loader.submit(lambda: None).result()

    def close(self) -> None:
        """Stop loading, and let go of the engine with all it runs."""
        self._loader.shutdown(wait=False, cancel_futures=True)
        self.engine.close()
        self._loader.shutdown()

    def _has(self, piece: FirstPiece) -> bool:
        kept = self._kept.get(piece.rows)
        return kept is not None and set(piece.columns) <= set(kept.columns) and self.engine.has(kept.name)

    def _load(self, pieces: Sequence[FirstPiece], statics: Sequence[tuple[str, str]], busy: Callable[[], bool]) -> None:
        """A file that is gone by now is the next query's trouble, not this one's."""
        waiting = time.monotonic()
        time.sleep(PAUSE_SECONDS)
        while busy() and time.monotonic() - waiting < LONGEST_WAIT:
            time.sleep(PAUSE_SECONDS)
        with suppress(duckdb.Error, EngineError):  # or the session is closed
            self.engine.load(statics)
            for piece in pieces:
                if self._has(piece):
                    continue
                before = self._kept.get(piece.rows)
                columns = tuple(dict.fromkeys((*(before.columns if before else ()), *piece.columns)))
                name = f"sample_{hashlib.sha256(repr((piece.rows, columns)).encode()).hexdigest()[:16]}"
                self.engine.load([(name, piece.query(columns))])
                self._kept[piece.rows] = _Kept(name, columns)
                if before is not None:
                    self.engine.drop(before.name)


def _select(name: str, columns: Sequence[str]) -> str:
    shown = ", ".join(native_name(column) for column in (*columns, UNIT))
    return f'SELECT {shown} FROM "{name}"'
