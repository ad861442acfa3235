"""What changed in tables lately, read once for all who ask: a deleted row lies among others, and reading it means reading these.

Law: the rows of a change come in one order, so that columns read at different times belong together.
Finding the rows takes longer than reading one column more of them: so what is read is what was asked for of the changes before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from nearly.engine.storage.layouts import Table

MOST_CELLS = 30_000_000
"""Values kept, about a quarter of a gigabyte; what was asked for longest ago makes room."""

MOST_ASKED = 1024

Answer = TypeVar("Answer")

Read = Callable[[Sequence[str]], pa.Table]
"""Reads some columns of a change."""


@dataclass(slots=True)
class RecentChanges:
    """Columns of changes, by what tells a change apart."""

    _known: dict[Hashable, pa.Table] = field(default_factory=dict)
    _asked: dict[Hashable, None] = field(default_factory=dict)
    _answers: dict[Hashable, Any] = field(default_factory=dict)
    _usual: dict[str, dict[str, None]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def was_asked(self, change: Hashable) -> bool:
        """Whether someone asked for this before; from now on someone did."""
        with self._lock:
            before = change in self._asked
            self._asked[change] = None
            while len(self._asked) > MOST_ASKED:
                del self._asked[next(iter(self._asked))]
        return before

    def holds(self, change: Hashable, columns: Sequence[str]) -> bool:
        """Whether these columns of a change need not be read."""
        with self._lock:
            known = self._known.get(change)
        return known is not None and set(columns) <= set(known.column_names)

    def forget(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._known.clear()
            self._asked.clear()
            self._answers.clear()
            self._usual.clear()

    def expect(self, table: str, columns: Iterable[str]) -> None:
        """Somebody will ask for these columns of the changes of a table."""
        with self._lock:
            self._usual.setdefault(table.lower(), {}).update(dict.fromkeys(columns))

    def answer(self, question: Hashable, find: Callable[[], Answer]) -> Answer:
        """What was found out about changes, which never change themselves; only the last answers are remembered."""
        with self._lock:
            known = self._answers.get(question)
        if known is None:
            known = find()
            with self._lock:
                self._answers[question] = known
                while len(self._answers) > MOST_ASKED:
                    del self._answers[next(iter(self._answers))]
        found: Answer = known
        return found

    def rows(self, table: Table, change: Hashable, columns: Sequence[str], read: Read, *, usual: bool = True) -> pa.Table:
        """Some columns of a change of a table; only those that nobody asked for yet are read, at first with the `usual` ones."""
        with self._lock:
            known = self._known.get(change)
            before = self._usual.setdefault(table.plain_name.lower(), {})
            before.update(dict.fromkeys(columns))
            more = [each for each in table.column_names if each in before] if usual and known is None else []
            asked = [*columns, *more]
        missing = [name for name in dict.fromkeys(asked) if known is None or name not in known.column_names]
        if missing:
            found = read(missing)
            if known is not None:
                for name in known.column_names:
                    found = found.append_column(name, known[name])
            known = found
        if known is None:
            raise ValueError("a change is read by at least one column")
        with self._lock:
            self._known.pop(change, None)
            self._known[change] = known
            while len(self._known) > 1 and sum(each.num_rows * each.num_columns for each in self._known.values()) > MOST_CELLS:
                del self._known[next(iter(self._known))]
        return known.select(list(columns))
