"""Changes: inserts and deletes in the order in which they happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearly.synopsis.structure.rows import Rows
from nearly.synopsis.structure.state import TreeState


@dataclass(frozen=True, slots=True)
class Change:
    """Rows that come, or go. An update is a delete followed by an insert."""

    insert: bool
    rows: Rows


Changes = Sequence[Change]


def apply(state: TreeState, changes: Changes) -> None:
    """Move a state by changes."""
    for change in changes:
        if not len(change.rows):
            continue
        if change.insert:
            state.insert(change.rows)
        else:
            state.delete(change.rows)


def size(changes: Changes) -> int:
    return sum(len(change.rows) for change in changes)
