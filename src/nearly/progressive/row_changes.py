"""Which rows an answer may still get or lose, and how much that may change it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa

from nearly.answer import UnseenRows
from nearly.engine.stream.unit_state import UnitState
from nearly.estimate.cells import RowChanges
from nearly.estimate.distinct import unseen_at_most
from nearly.estimate.incidence import Incidence
from nearly.plan.nodes import GroupBy
from nearly.progressive.reading import UnitsRead
from nearly.rewrite.stream.firm_groups import FirmGroups
from nearly.rewrite.weigh.weighted import RowSet


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """What is known of the keys of aggregates: models of those seen, and how many there are in all, where they were counted."""

    models: dict[GroupBy, Incidence]
    counts: dict[GroupBy, int]

    def unseen(self, aggregate: GroupBy, reading: UnitsRead, failure: float) -> UnseenRows | None:
        """The keys that are still to come.

        About how many there are is told by those that were seen in few groups of units. That no key was is no proof that there are
        none: of shuffled rows it leaves room for some rare ones, of others for any number that lie together in a stretch.
        """
        model = self.models.get(aggregate)
        if model is None:
            return None
        if aggregate in self.counts:
            left = self.counts[aggregate] - model.seen
            return UnseenRows(left, left)
        bounded = model.is_settled and reading.plan.mixed
        return UnseenRows(model.unseen, unseen_at_most(reading.share, failure) if bounded else math.inf)


@dataclass(frozen=True, slots=True)
class DecidedGroups:
    """Which rows of an answer, groups of rows that wait, may go, and how many groups that are not shown may come."""

    tentative: tuple[bool, ...]
    hidden: int

    @classmethod
    def of(cls, groups: FirmGroups, found: pa.Table, state: UnitState) -> DecidedGroups:
        shown = list(zip(*(found.column(place).to_pylist() for place in groups.places), strict=True))
        firm, undecided = (set(_rows(state.run(plan))) for plan in (groups.firm, groups.open))
        return cls(tuple(key not in firm for key in shown), len(undecided - firm - set(shown)))


def _rows(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def rows_of(
    rows: RowSet, shown: int, known: KnownKeys, reading: UnitsRead, failure: float, decided: DecidedGroups | None = None
) -> RowChanges:  # fmt: skip
    """What is known of the rows of an answer that shows some of them; new keys of an aggregate may each bring a row."""
    if rows.final:
        return RowChanges()
    unseen = _unseen(rows, shown, known, reading, failure)
    if rows.undecided and decided is not None and unseen is not None:
        return _of_groups(decided, shown, unseen)
    if rows.undecided:
        return RowChanges(False, unseen, pa.array([True] * shown, pa.bool_()), math.inf)
    if unseen is None:
        return RowChanges(False, None, None, math.inf)
    error = 0.0 if not unseen.most else unseen.most / shown if shown else math.inf
    return RowChanges(not unseen.most, unseen, None, error)


def _of_groups(decided: DecidedGroups, shown: int, unseen: UnseenRows) -> RowChanges:
    """Groups come that were not met or whose rows are all undecided; of the latter, those that are shown may go."""
    coming = UnseenRows(unseen.estimate, unseen.most + decided.hidden)
    going = sum(decided.tentative)
    changes = coming.most + going
    error = 0.0 if not changes else changes / shown if shown else math.inf
    return RowChanges(not changes, coming, pa.array(decided.tentative, pa.bool_()) if going else None, error)


def _unseen(rows: RowSet, shown: int, known: KnownKeys, reading: UnitsRead, failure: float) -> UnseenRows | None:
    """Rows to come: as many as there are for what was read of what is open, and one for each key of what has keys."""
    if rows.open:
        return UnseenRows(shown * (reading.weight - 1))
    return known.unseen(rows.keys[0], reading, failure) if len(rows.keys) == 1 else None
