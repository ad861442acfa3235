"""The trees of a synopsis as subscribers of their table: they are at one of its versions, and follow its log to the present one.

Law: trees at version v are in a state of the rows of v, whoever changed the table, in whichever process, and however often the
synopsis was closed or killed meanwhile. Between two versions the rows that came are taken, and those that went are taken out. Where
no log tells these (the table was registered anew, or the versions between are not kept any more), the table is counted again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np
import pyarrow as pa

from nearly.engine.changes.feed import moved
from nearly.engine.changes.positions import copies, run_here
from nearly.engine.engine import Engine
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.versions import stamp
from nearly.errors import EngineError, NearlyError, SchemaError, UnknownName, Unsupported
from nearly.synopsis.build.definition import Definition, TablePlace
from nearly.synopsis.build.drafting import Draft
from nearly.synopsis.build.passes import counted, recounted
from nearly.synopsis.query.answers import Moment
from nearly.synopsis.structure.rows import Copies, Rows, kept_without
from nearly.synopsis.structure.state import Changes, RowChange, TreeState
from nearly.synopsis.upkeep.live import LiveTree
from nearly.synopsis.upkeep.store import Store

logger = logging.getLogger(__name__)

VERSIONS_PER_SNAPSHOT = 64
MOST_FOLLOWED = 10_000_000
"""Changes of more rows than this are not taken one by one: counting the table again takes no longer, and less memory."""


class Subscription:
    """Moves trees in the order of the table's versions. Queries go on meanwhile, and never see trees at different versions."""

    def __init__(
        self, engine: Engine, definition: Definition, states: Sequence[TreeState], place: TablePlace, store: Store
    ) -> None:
        self.store = store
        self.recounted: str | None = None
        self._engine = engine
        self._definition = definition
        self._moving = threading.RLock()
        self.trees = [
            LiveTree(s, state, self._recount, place, self._moving) for s, state in zip(definition.shapes, states, strict=True)
        ]
        self._order = threading.RLock()
        self._whole = True
        self._refused: tuple[TablePlace, NearlyError] | None = None
        self._saved = place
        self._head = engine.catalog.head(definition.table)
        self._seen: tuple[int, int] | None = (0, 0)

    @property
    def place(self) -> TablePlace:
        """Where in the history of the table the trees are."""
        return self.trees[0].place

    def moment(self) -> Moment:
        """All trees as they are together."""
        with self._moving:
            return Moment(self._definition, tuple(tree.reading() for tree in self.trees), self.place)

    def lag(self) -> float:
        """How many rows were changed since the version that the trees are at; infinite when that is not known."""
        table = self._table()
        self._refuse_again(table)
        return 0 if self._is_at(table) else self._distance(table)[0]

    def follow(self) -> None:
        """Bring the trees to the present version; those of an error stay where they are."""
        seen = self._stamp()
        if seen is not None and seen == self._seen and self._whole:
            return
        if self._is_at(self._table()):
            self._seen = seen
            return
        with self._order:
            table = self._table()
            if self._is_at(table):
                return
            self._refuse_again(table)
            try:
                with self._engine.catalog.held([table]):
                    self._advance(table)
            except (SchemaError, Unsupported, UnknownName) as trouble:
                refusal = Unsupported(
                    f"synopsis {self._definition.name!r} cannot follow table {table.name!r} from version {self.place.version} to "
                    f"{table.version}: {trouble}; change such rows, or drop the synopsis"
                )
                self._refused = TablePlace.of(table), refusal
                raise refusal from trouble
            if not 0 <= self.place.version - self._saved.version < VERSIONS_PER_SNAPSHOT:
                self.save_quietly()

    def follow_quietly(self) -> None:
        """Follow if that can be done; whoever asks next is told why not."""
        try:
            self.follow()
        except NearlyError as trouble:
            if not self._engine.life.is_over:
                logger.warning("%s", trouble)

    def save(self, anew: bool = False) -> None:
        """Write a snapshot, so that opening again reads less of the table's log."""
        with self._order:
            if self._whole:
                self.store.save(self._definition, [tree.state for tree in self.trees], self.place, anew)
                self._saved = self.place

    def save_quietly(self, anew: bool = False) -> None:
        """Write a snapshot if that can be done: the table has all rows, so that nothing is lost without one."""
        try:
            self.save(anew)
        except NearlyError as trouble:
            logger.warning("synopsis %s keeps its older snapshot: %s", self._definition.name, trouble)

    def close(self) -> None:
        """Save what changed."""
        if self.place != self._saved or any(tree.history for tree in self.trees):
            self.save_quietly()

    def _table(self) -> Table:
        name = self._definition.table
        try:
            return self._engine.catalog.table(name)
        except UnknownName as trouble:
            raise EngineError(
                f"synopsis {self._definition.name!r} is of table {name!r}, which is gone; register that again, or drop the synopsis"
            ) from trouble

    def _refuse_again(self, table: Table) -> None:
        if self._refused is not None and self._refused[0] == TablePlace.of(table):
            raise self._refused[1]

    def _stamp(self) -> tuple[int, int] | None:
        """Differs when the table was changed, or is gone; much quicker to find out than the table itself."""
        try:
            return stamp(self._head)
        except OSError:
            return None

    def _is_at(self, table: Table) -> bool:
        return self._whole and self.place == TablePlace.of(table)

    def _advance(self, table: Table) -> None:
        """Take what changed up to this version of the table, or count it anew."""
        rows, reason = self._distance(table)
        if rows <= MOST_FOLLOWED:
            try:
                changes = self._changes(table)
            except EngineError as trouble:  # as when files of a version between are gone
                self._engine.life.refuse_over()
                reason = str(trouble)
            else:
                self._move(changes, TablePlace.of(table))
                return
        self._count_again(table, reason)

    def _distance(self, table: Table) -> tuple[float, str]:
        """How many rows were changed since the trees' version, and why they cannot be followed where they cannot."""
        catalog, since = self._engine.catalog, self.place.version
        try:
            start = catalog.at(table.name, since)
        except SchemaError as trouble:
            return np.inf, str(trouble)
        if not self._whole:
            return np.inf, "changes were taken by some of its trees only"
        if start.content != self.place.content or since > table.version:
            return np.inf, f"table {table.name!r} was made anew"
        logged = catalog.batches(table.name, since, table.version)
        if len(logged) < table.version - since:
            return np.inf, f"table {table.name!r} was replaced, and no log tells which rows that changed"
        return sum(batch.came + batch.gone for batch in logged.values()), f"more than {MOST_FOLLOWED:,} rows were changed"

    def _changes(self, table: Table) -> Changes:
        """The rows that came and went since the trees' version."""
        columns = self._definition.schema.columns
        went, came = moved(self._engine, table.name, self.place.version, table.version, columns)
        try:
            return self._converted(table, came, went)
        except (SchemaError, Unsupported):  # rows that cannot be held, unless they are gone again
            rows = {"came": came, "went": went}
            left = (run_here(self._engine, f"FROM {a} EXCEPT ALL FROM {b}", rows) for a, b in (("came", "went"), ("went", "came")))
            return self._converted(table, *left)

    def _converted(self, table: Table, came: pa.Table, went: pa.Table) -> Changes:
        schema = self._definition.schema
        rng = np.random.default_rng([abs(schema.seed), 1, table.version])
        with schema.learning(came):
            words = None if schema.key else rng.integers(0, 2**63, came.num_rows, dtype=np.uint64)
            new, old = schema.identified(schema.rows(came, words)), schema.rows(went)
        if len(new) and len(old):  # what came and went, or changed in other columns, moves nothing
            stays, goes = kept_without(new, old), kept_without(old, new)
            new, old, went = new.take(stays), old.take(goes), went.filter(pa.array(goes))
        counts = None if schema.key or not len(old) else self._copies(table, went, old, int(rng.integers(2**63)))
        return [RowChange(True, new), RowChange(False, old, counts)]

    def _copies(self, table: Table, went: pa.Table, old: Rows, seed: int) -> Copies:
        """Without a key it is not known which of several equal rows went: how many there were before, the table tells."""
        _, first, place, counts = np.unique(old.identity, return_index=True, return_inverse=True, return_counts=True)
        left = copies(self._engine, table, went.take(pa.array(first)))
        return Copies((left + counts)[place], seed)

    def _move(self, changes: Changes, place: TablePlace) -> None:
        with self._moving:
            self._whole = False
            for tree in self.trees:
                tree.apply(changes, place)
            self._whole = True

    def _count_again(self, table: Table, reason: str) -> None:
        """New trees from all rows of the table."""
        logger.warning("synopsis %s is counted anew: %s", self._definition.name, reason)
        self._refuse_other_columns(table)
        states = counted(self._engine, table, self._definition.schema, self._definition.shapes)
        with ExitStack() as planning:
            for tree in self.trees:
                planning.enter_context(tree.unplanned())
            with self._moving:
                for tree, state in zip(self.trees, states, strict=True):
                    tree.restart(state, TablePlace.of(table))
                self._whole = True
        self.recounted = reason
        self.save_quietly(anew=True)

    def _refuse_other_columns(self, table: Table) -> None:
        for name, type_ in self._definition.schema.types.items():
            if (found := table.column(name).type) != type_:
                raise SchemaError(f"its column {name!r} is {found} now, and was {type_}")
        for name in self._definition.schema.key:
            table.column(name)

    def _recount(self, draft: Draft, place: TablePlace) -> TreeState:
        """A pass over the table as it was at a place."""
        table = self._engine.catalog.at(self._definition.table, place.version)
        if TablePlace.of(table) != place:
            raise EngineError(
                f"table {self._definition.table!r} was made anew, so that it cannot be counted at version {place.version}"
            )
        return recounted(self._engine, table, self._definition.schema.copied(), draft)
