"""What a view remembers between refreshes: which versions of its tables its rows are of, and what refreshes took.

It is committed with the rows, so that both are old or both are new.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nearly.engine.storage.layouts import Table

REMEMBERED = 50
"""Refreshes that are kept in the history."""


@dataclass(frozen=True, slots=True)
class At:
    """A table in a version; `content` tells it from a table of the same name and number that was dropped or replaced."""

    version: int
    content: str

    @classmethod
    def of(cls, table: Table) -> At:
        return cls(table.version, table.content)


@dataclass(frozen=True, slots=True)
class Refresh:
    """One refresh: how, and why so, from how many changed rows, what that changed in the view, and how long it took.

    `estimates` are the seconds that each strategy was expected to take when the choice was made. What other views read as well is
    in them in part; `most` is what was expected where this refresh is the first to read it.
    """

    time: dt.datetime
    strategy: str
    reason: str
    changes: int
    inserted: int
    updated: int
    deleted: int
    seconds: float
    estimates: Mapping[str, float] = field(default_factory=dict)
    most: float = 0.0

    @property
    def content(self) -> list[Any]:
        return [
            self.time.isoformat(), self.strategy, self.reason, self.changes, self.inserted, self.updated, self.deleted,
            self.seconds, dict(self.estimates), self.most,
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class State:
    """`inputs` are the tables and views that a view is made of, `leaves` the tables below them, all in one consistent version.

    `values` are the single values inside the view's query in these versions, as JSON can hold them; `groups` tell by what they
    compute which tables hold the groups inside it, and the content that these have then. `reads` are the columns that its query
    reads, by table.
    """

    inputs: Mapping[str, At]
    leaves: Mapping[str, At]
    refreshes: tuple[Refresh, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    reads: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def notes(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "inputs": _stored(self.inputs), "leaves": _stored(self.leaves), "refreshes": [each.content for each in self.refreshes],
            "values": dict(self.values), "groups": {name: list(at) for name, at in self.groups.items()},
            "reads": reads_in({"reads": self.reads}),
        }  # fmt: skip

    def after(self, refresh: Refresh) -> State:
        return replace(self, refreshes=(*self.refreshes, refresh)[-REMEMBERED:])


def state_of(notes: Mapping[str, Any]) -> State:
    """The state of which the notes were made."""
    refreshes = tuple(Refresh(dt.datetime.fromisoformat(time), *rest) for time, *rest in notes["refreshes"])
    groups = {name: (table, content) for name, (table, content) in notes.get("groups", {}).items()}
    return State(_read(notes["inputs"]), _read(notes["leaves"]), refreshes, notes.get("values", {}), groups, reads_in(notes))


def reads_in(notes: Mapping[str, Any]) -> dict[str, list[str]]:
    """The columns that a view's query reads, by table; none where they were not noted."""
    return {table: list(columns) for table, columns in notes.get("reads", {}).items()}


def versions_of(tables: Iterable[Table]) -> dict[str, At]:
    """Tables in their versions, by name."""
    return {table.name: At.of(table) for table in sorted(tables, key=lambda each: each.name)}


def _stored(versions: Mapping[str, At]) -> dict[str, Any]:
    return {name: [at.version, at.content] for name, at in versions.items()}


def _read(read: Mapping[str, Any]) -> dict[str, At]:
    return {name: At(version, content) for name, (version, content) in read.items()}
