"""Taking batches of changes: each once, on disk before it counts, and only rows that are there are deleted."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from nearly.engine.changes.given_rows import as_arrow
from nearly.errors import EngineError, NearlyError, SchemaError
from nearly.synopsis.build.definition import Definition
from nearly.synopsis.structure.rows import Hashes, Mask
from nearly.synopsis.structure.schema import fitted
from nearly.synopsis.structure.state import Changes, RowChange
from nearly.synopsis.upkeep.live import Archive, LiveTree
from nearly.synopsis.upkeep.log import KnownRows, LoggedBatch, known_rows
from nearly.synopsis.upkeep.store import Store

logger = logging.getLogger(__name__)

BATCHES_PER_SNAPSHOT = 64
MOST_DUPLICATES = 0.01
"""Share of sampled rows with equal values beyond which a delete without a key is refused."""

Batch = tuple[str, int]
"""A stream and the number of a batch in it."""
Replies = tuple[Mapping[str, Any], ...]
Step = RowChange | Callable[[], Mapping[str, Any]]
"""A change, or a question to be answered at its place among the changes."""


class Intake:
    """The way of changes into the trees of a synopsis, in one order; `number` is that of the last batch that was taken.

    A batch is written while queries go on: the trees' lock is held while they move, and over all of a batch with questions, so that
    planning never begins at a state that the log does not have.
    """

    def __init__(
        self, definition: Definition, trees: Sequence[LiveTree], archive: Archive, store: Store | None, lock: threading.RLock,
        number: int, streams: Mapping[str, int],
    ) -> None:  # fmt: skip
        self.number = number
        self.streams = dict(streams)
        self.store = store
        self.definition = definition
        self.schema = definition.schema
        self._trees = trees
        self._archive = archive
        self._order = threading.RLock()
        self._moving = lock
        self._failed = False
        self._saved = number
        self._pending: list[RowChange] = []
        self._known: KnownRows | None = None
        self._rng = np.random.default_rng()

    @property
    def name(self) -> str:
        return self.definition.name

    def apply(self, make: Callable[[], Sequence[Step]], batch: Batch | None = None) -> Replies:
        """Apply the changes that `make()` gives as one batch, once, and answer the questions among them in order.

        Returns the answers; a batch that was applied before gives its old ones. Changes without questions are on disk before they
        take effect. Answers depend on changes, so with questions the batch is written after; if that fails, nothing more is taken
        until the synopsis is opened again.
        """
        with self._order:
            if self._failed:
                raise EngineError(
                    f"synopsis {self.name!r} is not at the state of its log, which could not be written; close the session, "
                    f"and open it again"
                )
            self._own()
            if batch is not None and self.streams.get(batch[0], -1) >= batch[1]:
                return self._old_replies(batch)
            known = {domain.name: len(domain.texts) for domain in self.schema.domains}
            self._rng = np.random.default_rng([abs(self.schema.seed), 1, self.number + 1])
            self._pending = []
            try:
                steps = make()
                changes = tuple(step for step in steps if isinstance(step, RowChange))
                texts = {domain.name: domain.texts[known[domain.name] :] for domain in self.schema.domains}
                stream, number = batch or (None, None)
                logged = LoggedBatch(changes, stream, number, texts)
                replies = self._commit(logged, steps)
            except BaseException:
                if not self._failed:
                    for domain in self.schema.domains:
                        domain.forget(known[domain.name])
                raise
            self._taken(self.number + 1, logged)
            if self.number % BATCHES_PER_SNAPSHOT == 0:
                self._save_quietly()
        return replies

    def _own(self) -> None:
        """Become the writer; what others wrote since this synopsis was opened is taken first."""
        if self.store is None or self.store.writing:
            return
        self.store.own(self.definition.identity)
        self.replay()

    def _commit(self, logged: LoggedBatch, steps: Sequence[Step]) -> Replies:
        if len(logged.changes) == len(steps):
            self._log(logged)
            self._failed = True
            self._move(logged.changes, self.number + 1)
            self._failed = False
            return ()
        replies = []
        with self._moving:
            self._failed = True
            for step in steps:
                if isinstance(step, RowChange):
                    self._move((step,), self.number + 1)
                else:
                    replies.append(step())
            self._log(replace(logged, replies=tuple(replies)))
            self._failed = False
        return tuple(replies)

    def _log(self, logged: LoggedBatch) -> None:
        if self.store is not None:
            self.store.log.append(self.number + 1, logged)

    def _move(self, changes: Changes, number: int) -> None:
        with self._moving:
            for tree in self._trees:
                tree.apply(changes, number)

    def _taken(self, number: int, logged: LoggedBatch) -> None:
        """Remember a batch that the trees have."""
        self.number = number
        if self._known is not None:
            self._known.apply(logged.changes)
        if logged.stream is not None and logged.number is not None:
            self.streams[logged.stream] = logged.number

    def replay(self) -> None:
        """Take the batches of the log that came after the last one taken."""
        if self.store is None:
            return
        for number, logged in self.store.log.after(self.number):
            for domain in self.schema.domains:
                domain.add_texts(logged.texts.get(domain.name, ()))
            self._move(logged.changes, number)
            self._taken(number, logged)

    def _old_replies(self, batch: Batch) -> Replies:
        if self.store is None or self.streams.get(batch[0]) != batch[1]:
            return ()
        for number in range(self.number, 0, -1):
            found = self.store.log.read(number)
            if (found.stream, found.number) == batch:
                return found.replies
        return ()

    def table(self, rows: Any) -> pa.Table:
        """Rows in any form with the columns and types of this synopsis."""
        return fitted(self.schema, as_arrow(rows), self.name)

    def change(self, insert: bool, table: pa.Table) -> RowChange:
        """Rows of a table as a change; new texts get their numbers. Rows that are to be deleted must be there."""
        if insert:
            self.schema.learn(table)
            words: Hashes | None = None
            if not self.schema.key:
                words = self._rng.integers(0, 2**63, table.num_rows, dtype=np.uint64)
            rows = self.schema.rows(table, words)
            made = RowChange(True, rows if words is None else self.schema.identified(rows))
        else:
            strange = self.strange(table)
            if strange.any():
                first = table.slice(int(np.flatnonzero(strange)[0]), 1).to_pylist()[0]
                raise SchemaError(
                    f"{int(strange.sum()):,} of the rows to be deleted are not in synopsis {self.name!r}, such as {first}; a row "
                    f"must be given with all its columns as it is, and nothing was deleted"
                )
            made = RowChange(False, self.schema.rows(table))
        self._pending.append(made)
        return made

    def strange(self, table: pa.Table) -> Mask:
        """Which rows of a table are not there, so that they cannot be deleted. The first time this reads the archive once."""
        self._refuse_ambiguous()
        if not table.num_rows:
            return np.zeros(0, bool)
        if self._known is None:
            self._known = known_rows(self._archive.contents(), self._archive.changes(self.number))
        found: Mask = self._known.missing(self.schema.rows(table).content, self._pending)
        for domain in self.schema.domains:
            found |= domain.unknown(table.column(domain.name))
        return found

    def _refuse_ambiguous(self) -> None:
        """Without a key, a delete removes some row with equal values; that is only right when such rows are rare."""
        identity = self._trees[0].state.sample.rows.identity
        if self.schema.key or not len(identity):
            return
        repeated = 1.0 - len(np.unique(identity)) / len(identity)
        if repeated > MOST_DUPLICATES:
            raise SchemaError(
                f"synopsis {self.name!r} has no key, and {repeated:.0%} of its sampled rows equal others, so a delete cannot tell "
                f"which row is meant; build it with key=[...]"
            )

    def save(self) -> None:
        """Write a snapshot, so that opening again replays less."""
        with self._order:
            if self.store is not None:
                self._own()
                self.store.save(self.definition, [tree.state for tree in self._trees], self.number, self.streams)
                self._saved = self.number

    def _save_quietly(self) -> None:
        """Write a snapshot if that can be done: every batch is in the log, so that nothing is lost without one."""
        try:
            self.save()
        except NearlyError as trouble:
            logger.warning("synopsis %s keeps its older snapshot and will replay its log: %s", self.name, trouble)

    def close(self) -> None:
        """Save what changed and let others write. A snapshot that cannot be written is a warning: the log has every batch."""
        if self.store is not None:
            if self.number != self._saved or any(tree.history for tree in self._trees):
                self._save_quietly()
            self.store.close()
