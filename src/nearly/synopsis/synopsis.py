"""The synopsis as its user sees it: questions, changes, and looking after its trees."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nearly.algebra.moments import check_confidence
from nearly.answer import Answer, UnseenRows
from nearly.engine.spark.cluster import GetSpark
from nearly.engine.spark.stream_follow import Following
from nearly.engine.storage.catalog import check_name
from nearly.errors import EngineError, NearlyError, SchemaError, Unsupported
from nearly.plan.types import to_arrow
from nearly.synopsis.build.definition import Definition
from nearly.synopsis.columns.reading import as_table, box_of, fitted, narrowed
from nearly.synopsis.picture import picture
from nearly.synopsis.query.aggregates import canonical
from nearly.synopsis.query.answering import Estimate, Presence, answer, single, tabular
from nearly.synopsis.query.view import View
from nearly.synopsis.stream.follow import Topics, follow, follow_kafka
from nearly.synopsis.structure.rows import MISSING, Hashes, Mask
from nearly.synopsis.structure.state import TreeState
from nearly.synopsis.structure.tree import Box, Condition
from nearly.synopsis.upkeep.archive import Archive, Change, Changes, KnownRows, known_rows
from nearly.synopsis.upkeep.live import LiveTree, Repartitioned
from nearly.synopsis.upkeep.store import LoggedBatch, Store

logger = logging.getLogger(__name__)

BATCHES_PER_SNAPSHOT = 64
MOST_DUPLICATES = 0.01
"""Share of sampled rows with equal values beyond which a delete without a key is refused."""

Step = Change | Callable[[], Mapping[str, Any]]
"""A change, or a question to be answered at its place among the changes."""


class Synopsis:
    """Exact aggregates over a tree of ranges, with sampled leaves. Safe for use by several threads."""

    def __init__(
        self,
        definition: Definition,
        states: Sequence[TreeState],
        archive: Archive,
        store: Store | None,
        number: int = 0,
        spark: GetSpark | None = None,
    ) -> None:
        self.definition = definition
        self.schema = definition.schema
        self._lock = threading.RLock()
        pairs = zip(definition.shapes, states, strict=True)
        self.trees = [LiveTree(shape, state, archive, lock=self._lock, applied=number) for shape, state in pairs]
        self.auto_repartition = True
        self._archive = archive
        self._store = store
        self._spark = spark
        self._failed = False
        self._number = number
        self._saved = number
        self._streams: dict[str, int] = {}
        self._pending: list[Change] = []
        self._known: KnownRows | None = None
        self._rng = np.random.default_rng()
        self._background: threading.Thread | None = None

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def changed(self) -> bool:
        """Whether it has taken changes that its table does not have."""
        return self._number > 0

    # --- questions ---------------------------------------------------------------------------------------------------

    def query(
        self, aggregate: str, *, by: str | Sequence[str] | None = None, confidence: float = 0.95, **conditions: Any
    ) -> Answer:
        """An aggregate (sum, count, rows, avg, min, max, var, stddev and their variants) of the measure over the rows that satisfy
        the conditions: `column=value`, or `column=(low, high)` with both ends included and None for an open end.

        `by` groups by a column of text or booleans, or by several.
        """
        name, box = canonical(aggregate), box_of(self.schema, conditions)
        check_confidence(confidence)
        if by is None:
            return single(aggregate, self.estimate(name, box, confidence), confidence, f"synopsis {self.name}")
        places = [self.schema.place(each) for each in ([by] if isinstance(by, str) else by)]
        groups = self.groups(places, box)
        keys = groups.keys
        found = [self.estimate(name, each, confidence) for each in groups.boxes]
        domains = [self.schema.domains[place] for place in places]
        columns = [pa.array([key[at] for key in keys], to_arrow(domain.type)) for at, domain in enumerate(domains)]
        named = [(domain.name, column) for domain, column in zip(domains, columns, strict=True)]
        return tabular([*named, (aggregate, found)], groups.presence, confidence, f"synopsis {self.name}")

    def estimate(self, aggregate: str, box: Box, confidence: float = 0.95) -> Estimate:
        """The estimate for a canonical aggregate over a box, from the tree that suits it best."""
        found = answer(self._tree_for(box).view(), aggregate, box, confidence)
        return (
            found
            if aggregate in ("rows", "count")
            else found.divided(self.schema.unit ** (2 if aggregate.startswith("var") else 1))
        )

    def groups(self, dimensions: Sequence[int], box: Box) -> Groups:
        """The values of some columns that rows in the box have together, with the box narrowed to each.

        Groups that some known row is in are shown, so that none is too many; others that may have rows are counted as unseen.
        """
        found: list[tuple[tuple[Any, ...], Box]] = [((), box)]
        expected = most = 0.0
        for place, dimension in enumerate(dimensions):
            wider, found = found, []
            for key, wide in wider:
                for value, narrow in self._split(dimension, wide):
                    rows = self.estimate("rows", narrow)
                    if rows.hard_low >= 1:
                        found.append(((*key, value), narrow))
                    elif rows.hard_high != 0:
                        others = math.prod(self._size(each) for each in dimensions[place + 1 :])
                        expected, most = expected + others * _chance(rows), most + others
        presence = Presence(len(found), UnseenRows(expected, most))
        return Groups([key for key, _ in found], [narrow for _, narrow in found], presence)

    def _size(self, dimension: int) -> int:
        """How many groups a column makes at most, null included."""
        domain = self.schema.domains[dimension]
        if domain.kind not in ("text", "boolean"):
            raise Unsupported(f"a synopsis groups by text or booleans; {domain.name!r} is {domain.type}")
        return 1 + (len(domain.texts) if domain.kind == "text" else 2)

    def _split(self, dimension: int, box: Box) -> Iterator[tuple[Any, Box]]:
        """All values of a column, each with the box narrowed to it."""
        domain = self.schema.domains[dimension]
        for coordinate in (MISSING, *map(float, range(self._size(dimension) - 1))):
            yield domain.value(coordinate), narrowed(box, Condition(dimension, coordinate, coordinate))

    def _tree_for(self, box: Box) -> LiveTree:
        """The tree that splits on most of the box's columns, and among these on the fewest others."""
        if len(self.trees) == 1:
            return self.trees[0]
        wanted = {each.dimension for each in box}
        return max(self.trees, key=lambda tree: (len(wanted & set(tree.shape.columns)), -len(set(tree.shape.columns) - wanted)))

    # --- changes -----------------------------------------------------------------------------------------------------

    def insert(self, rows: Any, *, batch: tuple[str, int] | None = None) -> None:
        """Take new rows: an Arrow table, a pandas frame, a dict of columns or a list of dicts. A batch (stream, number) that was
        taken before is not taken again."""
        self.apply(lambda: [self.change(True, self.table(rows))], batch)

    def delete(self, rows: Any, *, batch: tuple[str, int] | None = None) -> None:
        """Remove rows, given with all their columns as they were inserted."""
        self.apply(lambda: [self.change(False, self.table(rows))], batch)

    def update(self, old: Any, new: Any, *, batch: tuple[str, int] | None = None) -> None:
        """Replace rows: an insert and a delete that take effect together."""
        self.apply(lambda: [self.change(True, self.table(new)), self.change(False, self.table(old))], batch)

    def apply(self, make: Callable[[], Sequence[Step]], batch: tuple[str, int] | None = None) -> tuple[Mapping[str, Any], ...]:
        """Apply the changes that `make()` gives as one batch, once, and answer the questions among them in order.

        Returns the answers; a batch that was applied before gives its old ones. Changes without questions are on disk before they
        take effect. Answers depend on changes, so with questions the batch is written after; if that fails, nothing more is taken
        until the synopsis is opened again.
        """
        with self._lock:
            if self._failed:
                raise EngineError(
                    f"synopsis {self.name!r} is not at the state of its log, which could not be written; close the session, "
                    f"and open it again"
                )
            self._own()
            if batch is not None and self._streams.get(batch[0], -1) >= batch[1]:
                return self._old_replies(batch)
            known = {domain.name: len(domain.texts) for domain in self.schema.domains}
            self._rng = np.random.default_rng([abs(self.schema.seed), 1, self._number + 1])
            self._pending = []
            try:
                steps = make()
                changes = tuple(step for step in steps if isinstance(step, Change))
                texts = {domain.name: domain.texts[known[domain.name] :] for domain in self.schema.domains}
                stream, number = batch or (None, None)
                replies = self._commit(LoggedBatch(changes, stream, number, texts), steps)
            except BaseException:
                if not self._failed:
                    for domain in self.schema.domains:
                        domain.forget(known[domain.name])
                raise
            self._number += 1
            if self._known is not None:
                self._known.apply(changes)
            if batch is not None:
                self._streams[batch[0]] = batch[1]
            if self._number % BATCHES_PER_SNAPSHOT == 0:
                self._save_quietly()
        self._look_after()
        return replies

    def _own(self) -> None:
        """Become the writer; what others wrote since this synopsis was opened is taken first."""
        if self._store is None or self._store.writing:
            return
        self._store.own(self.definition.identity)
        for number, batch in self._store.after(self._number):
            self.replay(number, batch)

    def _commit(self, record: LoggedBatch, steps: Sequence[Step]) -> tuple[Mapping[str, Any], ...]:
        if len(record.changes) == len(steps):
            self._log(record)
            self._failed = True
            self._take(record.changes)
            self._failed = False
            return ()
        replies = []
        self._failed = True
        for step in steps:
            if isinstance(step, Change):
                self._take((step,))
            else:
                replies.append(step())
        self._log(replace(record, replies=tuple(replies)))
        self._failed = False
        return tuple(replies)

    def _log(self, batch: LoggedBatch) -> None:
        if self._store is not None:
            self._store.append(self._number + 1, batch)

    def _take(self, changes: Changes) -> None:
        for tree in self.trees:
            tree.apply(changes, self._number + 1)

    def replay(self, number: int, batch: LoggedBatch) -> None:
        """Take a batch from the log again, on opening."""
        for domain in self.schema.domains:
            domain.add_texts(batch.texts.get(domain.name, ()))
        for tree in self.trees:
            tree.apply(batch.changes, number)
        if self._known is not None:
            self._known.apply(batch.changes)
        self._number = number
        if batch.stream is not None and batch.number is not None:
            self._streams[batch.stream] = batch.number

    def remember(self, streams: Mapping[str, int]) -> None:
        """The last batch of each stream, from a snapshot."""
        self._streams.update(streams)

    def _old_replies(self, batch: tuple[str, int]) -> tuple[Mapping[str, Any], ...]:
        if self._store is None or self._streams.get(batch[0]) != batch[1]:
            return ()
        for number in range(self._number, 0, -1):
            found = self._store.read(number)
            if (found.stream, found.number) == batch:
                return found.replies
        return ()

    def table(self, rows: Any) -> pa.Table:
        """Rows in any form with the columns and types of this synopsis."""
        return fitted(self.schema, as_table(rows), self.name)

    def change(self, insert: bool, table: pa.Table) -> Change:
        """Rows of a table as a change; new texts get their numbers. Rows that are to be deleted must be there."""
        if insert:
            self.schema.learn(table)
            words: Hashes | None = None
            if not self.schema.key:
                words = self._rng.integers(0, 2**63, table.num_rows, dtype=np.uint64)
            rows = self.schema.rows(table, words)
            made = Change(True, rows if words is None else self.schema.identified(rows))
        else:
            strange = self.strange(table)
            if strange.any():
                first = table.slice(int(np.flatnonzero(strange)[0]), 1).to_pylist()[0]
                raise SchemaError(
                    f"{int(strange.sum()):,} of the rows to be deleted are not in synopsis {self.name!r}, such as {first}; a row "
                    f"must be given with all its columns as it is, and nothing was deleted"
                )
            made = Change(False, self.schema.rows(table))
        self._pending.append(made)
        return made

    def strange(self, table: pa.Table) -> Mask:
        """Which rows of a table are not there, so that they cannot be deleted. The first time this reads the archive once."""
        self._refuse_ambiguous()
        if not table.num_rows:
            return np.zeros(0, bool)
        if self._known is None:
            self._known = known_rows(self._archive, self._number)
        found: Mask = self._known.missing(self.schema.rows(table).content, self._pending)
        for domain in self.schema.domains:
            found |= domain.unknown(table.column(domain.name))
        return found

    def _refuse_ambiguous(self) -> None:
        """Without a key, a delete removes some row with equal values; that is only right when such rows are rare."""
        identity = self.trees[0].state.sample.rows.identity
        if self.schema.key or not len(identity):
            return
        repeated = 1.0 - len(np.unique(identity)) / len(identity)
        if repeated > MOST_DUPLICATES:
            raise SchemaError(
                f"synopsis {self.name!r} has no key, and {repeated:.0%} of its sampled rows equal others, so a delete cannot tell "
                f"which row is meant; build it with key=[...]"
            )

    # --- streams -----------------------------------------------------------------------------------------------------

    def follow(
        self, stream: Any, *, name: str = "stream", op: str | None = "op", checkpoint: Path | None = None, every: str = "0 seconds"
    ) -> Following:
        """Take the rows of a Spark streaming DataFrame (files, rate, Kafka, ...), each batch once, also across restarts.

        The column `op` says insert, delete or update; updates carry the former values in columns `old_<name>`. Without that column
        all rows are inserts. Rows that cannot be used are put into quarantine.
        """
        return follow(self, stream, check_name(name), op, checkpoint, every)

    def follow_kafka(
        self, servers: str, *, topics: Topics | None = None, name: str = "kafka", checkpoint: Path | None = None,
        every: str = "0 seconds", settings: Mapping[str, str] | None = None,
    ) -> Following:  # fmt: skip
        """Take JSON records from the topics insert and delete, and answer those of execute on reply, in order of their times."""
        if self._spark is None:
            raise Unsupported("this synopsis has no Spark session; open it with db.synopsis(name)")
        return follow_kafka(self, self._spark(), servers, topics or Topics(), check_name(name), checkpoint, every, settings or {})

    # --- looking after -----------------------------------------------------------------------------------------------

    def repartition(self, *, levels: int | str | None = None, goal: float = 1.0, force: bool = True) -> list[Repartitioned]:
        """Plan the trees again and wait for it; queries go on meanwhile. See `LiveTree.repartition`.

        `goal` is the share of the rows that a new tree must have counted before it answers. One pass counts all of them, so
        that every goal is met, and the tree that answers is exact.
        """
        _check_share("goal", goal)
        done = [tree.repartition(levels, force) for tree in self.trees]
        return [each for each in done if each is not None]

    def _look_after(self) -> None:
        """Plan a tree again in the background when its leaves no longer suit its rows."""
        if not self.auto_repartition or (self._background is not None and self._background.is_alive()):
            return
        for tree in self.trees:
            if reason := tree.questionable():
                logger.info("synopsis %s is planned again: %s", self.name, reason)
                self._background = threading.Thread(target=self._replan, args=(tree,), name=f"nearly-{self.name}", daemon=True)
                self._background.start()
                return

    def _replan(self, tree: LiveTree) -> None:
        try:
            tree.repartition(force=False)
        except Exception:
            logger.exception("synopsis %s could not be planned again; the old tree goes on", self.name)

    def catch_up(self, goal: float = 1.0) -> None:
        """Have the trees counted at least this share of the rows. A tree that answers has counted all of them, so that this only
        waits for one that is being planned."""
        _check_share("goal", goal)
        self.settle()

    def settle(self) -> None:
        """Wait for planning that goes on in the background."""
        if self._background is not None:
            self._background.join()

    def save(self) -> None:
        """Write a snapshot, so that opening again replays less."""
        with self._lock:
            if self._store is not None:
                self._own()
                self._store.save(self.definition, [tree.state for tree in self.trees], self._number, self._streams)
                self._saved = self._number

    def _save_quietly(self) -> None:
        """Write a snapshot if that can be done: every batch is in the log, so that nothing is lost without one."""
        try:
            self.save()
        except NearlyError as trouble:
            logger.warning("synopsis %s keeps its older snapshot and will replay its log: %s", self.name, trouble)

    def close(self) -> None:
        """Save what changed and let others write.

        A snapshot that cannot be written (a full disk, another writer) is a warning in the log of this module and no error: every
        batch that was acknowledged is in the synopsis's own log, and is replayed when it is opened again.
        """
        self.settle()
        if self._store is not None:
            if self._number != self._saved or any(tree.history for tree in self.trees):
                self._save_quietly()
            self._store.close()

    # --- looking at --------------------------------------------------------------------------------------------------

    def view(self, tree: int = 0) -> View:
        return self.trees[tree].view()

    def stats(self) -> dict[str, Any]:
        """Size and state in numbers."""
        views = [tree.view() for tree in self.trees]
        return {
            "name": self.name, "table": self.definition.table, "measure": self.schema.measure, "columns": list(self.schema.names),
            "trees": [
                {
                    "on": [self.schema.names[each] for each in tree.shape.columns], "leaves": view.frame.tree.leaves,
                    "sampled": len(view.sample), "outliers": len(view.outliers), "bytes": _bytes(view),
                    "repartitioned": len(tree.history),
                }
                for tree, view in zip(self.trees, views, strict=True)
            ],
            "rows": views[0].rows, "batches": self._number, "streams": dict(self._streams),
            "quarantined": 0 if self._store is None else self._store.quarantined,
        }  # fmt: skip

    def picture(self, tree: int = 0, most: int = 64) -> str:
        """The tree as text, with the error of the worst query in each leaf."""
        return picture(self.view(tree), self.schema.domains, most)

    @property
    def store(self) -> Store | None:
        return self._store

    def __repr__(self) -> str:
        return f"Synopsis({self.name!r}, {self.schema.measure} by {', '.join(self.schema.names)}, {self.view().rows:,.0f} rows)"


def _check_share(name: str, value: float) -> None:
    if not 0 < value <= 1:
        raise SchemaError(f"{name}={value} must be above 0 and at most 1")


@dataclass(frozen=True, slots=True)
class Groups:
    """Keys, the box of each, and which of the groups that there may be these are."""

    keys: list[tuple[Any, ...]]
    boxes: list[Box]
    presence: Presence


def _chance(rows: Estimate) -> float:
    """The chance that a group has a row although none was seen: Laplace's rule, each number of rows being as likely as another."""
    seen = rows.processed + 1.0
    return 1.0 - seen / (seen + rows.hard_high)


def _bytes(view: View) -> int:
    stored = 0
    for rows in (view.sample.rows, view.outliers.rows):
        stored += rows.coordinates.nbytes + rows.values.nbytes + rows.identity.nbytes + rows.ticket.nbytes
    return int(stored + view.node_statistics.nbytes)
