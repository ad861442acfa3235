"""The synopsis as its user holds it: questions, changes of its table, streams, and looking after its trees."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nearly.answer import Answer
from nearly.engine.changes.batch_files import Change
from nearly.engine.changes.changes import Changes
from nearly.engine.changes.operations import ERROR, Changer
from nearly.engine.changes.questions import QuestionTaker, Topics
from nearly.engine.changes.streams.following import Also
from nearly.engine.changes.streams.quarantine import count_aside
from nearly.engine.changes.transactions import Find
from nearly.engine.engine import Engine
from nearly.engine.spark.stream_follow import Following
from nearly.errors import NearlyError, SchemaError
from nearly.printing.html import card
from nearly.synopsis.build.definition import Definition, TablePlace
from nearly.synopsis.query.answers import Moment
from nearly.synopsis.query.reading import picture
from nearly.synopsis.structure.state import TreeState
from nearly.synopsis.upkeep.live import LiveTree, Repartitioned
from nearly.synopsis.upkeep.store import Store
from nearly.synopsis.upkeep.subscription import Subscription

logger = logging.getLogger(__name__)

Batch = tuple[str, int]
"""A stream and the number of a batch in it."""


class Synopsis:
    """Exact aggregates over a tree of ranges, with sampled leaves. Safe for use by several threads."""

    def __init__(
        self, engine: Engine, changes: Changes, definition: Definition, states: Sequence[TreeState], place: TablePlace, store: Store
    ) -> None:
        self.definition = definition
        self.schema = definition.schema
        self.subscription = Subscription(engine, definition, states, place, store)
        self.auto_repartition = True
        self._engine = engine
        self._changes = changes
        self._background: threading.Thread | None = None

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def version(self) -> int:
        """The version of its table that it is at; whoever asks it a question has it at the present one."""
        return self.subscription.place.version

    @property
    def trees(self) -> list[LiveTree]:
        return self.subscription.trees

    # --- questions ---------------------------------------------------------------------------------------------------

    def query(
        self, aggregate: str, *, by: str | Sequence[str] | None = None, confidence: float = 0.95, **conditions: Any
    ) -> Answer:
        """An aggregate (sum, count, rows, avg, min, max, var, stddev and their variants) of the measure over the rows that satisfy
        the conditions: `column=value`, or `column=(low, high)` with both ends included and None for an open end.

        With several measures the one that is meant is named, as in "sum(fare)". `by` groups by a column of text or booleans, or by
        several. The rows are those of the table as it is now.
        """
        return self.moment().query(aggregate, [by] if isinstance(by, str) else by or (), confidence, conditions)

    def moment(self) -> Moment:
        """What it knows of the present version of its table."""
        self.subscription.follow()
        return self.subscription.moment()

    # --- changes -----------------------------------------------------------------------------------------------------

    def insert(self, rows: Any, *, batch: Batch | None = None) -> None:
        """Insert rows into the table, as `Session.insert` does; rows that the synopsis cannot hold are refused."""
        self._change(lambda found: found.insert(rows), batch)

    def delete(self, rows: Any, *, batch: Batch | None = None) -> None:
        """Delete rows from the table, by its key or, without one, by all columns; one that is not there is an error."""
        self._change(lambda found: found.delete(rows, ERROR), batch)

    def update(self, old: Any, new: Any, *, batch: Batch | None = None) -> None:
        """Replace rows of the table: deletes and inserts that take effect together."""
        self._change(lambda found: found.exchange(old, new), batch)

    def _change(self, find: Find, batch: Batch | None) -> None:
        def checked(changer: Changer) -> Change:
            change = find(changer)
            if change.came is not None:
                self.schema.check(change.came)
            return change

        self._changes.change(self.definition.table, checked, batch)
        self.keep_up()

    def keep_up(self) -> None:
        """Follow the table, and have the trees planned again where they no longer suit."""
        self.subscription.follow_quietly()
        self.look_after()

    def follow(
        self, stream: Any, *, name: str = "stream", op: str | None = "op", checkpoint: Path | None = None, every: str = "0 seconds"
    ) -> Following:
        """Take the rows of a Spark streaming DataFrame into the table, as `Session.follow` does, each batch once.

        The column `op` says insert, upsert, delete or update; updates may carry the former values in columns `old_<name>`. Without
        that column all rows are inserts. Rows that cannot be used, by the table or by the synopsis, are put into quarantine.
        """
        return self._changes.follower(self.definition.table, name, op, self._also).follow(stream, checkpoint, every)

    def follow_kafka(
        self, servers: str, *, topics: Topics | None = None, name: str = "kafka", checkpoint: Path | None = None,
        every: str = "0 seconds", settings: Mapping[str, str] | None = None,
    ) -> Following:  # fmt: skip
        """Take JSON records from the topics insert and delete, and answer those of execute on reply, in order of their times."""
        follower = self._changes.follower(self.definition.table, name, None, self._also)
        replies = self.subscription.store.directory / f"replies-{name}.json"
        taker = QuestionTaker(follower, self.query, replies, servers, topics or Topics(), settings or {})
        return taker.follow(self._engine.cluster.spark, checkpoint, every)

    @property
    def _also(self) -> Also:
        return Also(self._unfit, self.keep_up)

    def _unfit(self, rows: pa.Table) -> Sequence[tuple[pa.Array, str]]:
        """Rows that would keep it from following its table."""
        odd = self.schema.not_finite(rows)
        found = [(pa.array(odd), "a value is NaN or infinite")]
        try:
            self.schema.check(rows.filter(pa.array(~odd)))
        except NearlyError as trouble:
            found.append((pa.array(np.ones(len(odd), bool)), str(trouble)))
        return found

    # --- looking after -----------------------------------------------------------------------------------------------

    def repartition(self, *, levels: int | str | None = None, goal: float = 1.0, force: bool = True) -> list[Repartitioned]:
        """Plan the trees again and wait for it; queries go on meanwhile. See `LiveTree.repartition`.

        `goal` is the share of the rows that a new tree must have counted before it answers. One pass counts all of them, so
        that every goal is met, and the tree that answers is exact.
        """
        _check_share("goal", goal)
        self.subscription.follow()
        done = [tree.repartition(levels, force) for tree in self.trees]
        return [each for each in done if each is not None]

    def look_after(self) -> None:
        """Plan a tree again in the background when its leaves no longer suit its rows."""
        for tree in self.trees if self.auto_repartition and not self._is_busy else ():
            if reason := tree.questionable():
                logger.info("synopsis %s is planned again: %s", self.name, reason)
                self._later(partial(tree.repartition, "auto", force=False))
                return

    def follow_later(self) -> None:
        """Follow the table in the background."""
        if not self._is_busy:
            self._later(self.subscription.follow)

    @property
    def _is_busy(self) -> bool:
        return self._background is not None and self._background.is_alive()

    def _later(self, work: Callable[[], object]) -> None:
        def quietly() -> None:
            try:
                work()
            except Exception:
                if not self._engine.life.is_over:
                    logger.exception("synopsis %s could not be brought up to date; what it was goes on", self.name)

        self._background = threading.Thread(target=quietly, name=f"nearly-{self.name}", daemon=True)
        self._background.start()

    def catch_up(self, goal: float = 1.0) -> None:
        """Be at the present version of the table, and have counted at least this share of its rows. A tree that answers has counted
        all of them, so that beyond following this only waits for one that is being planned."""
        _check_share("goal", goal)
        self.subscription.follow()
        self.settle()

    def settle(self) -> None:
        """Wait for what goes on in the background."""
        if self._background is not None:
            self._background.join()

    def save(self) -> None:
        """Write a snapshot, so that opening again reads less of the table's log."""
        self.subscription.save()

    def close(self) -> None:
        """Save what changed.

        A snapshot that cannot be written (a full disk) is a warning in the log of `nearly.synopsis` and no error: the table has all
        rows, and its log is followed from the older snapshot on when the synopsis is opened again.
        """
        self.settle()
        self.subscription.close()

    # --- looking at --------------------------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """Size and state in numbers."""
        now, table = self.moment(), self.definition.table
        return {
            "name": self.name, "table": table, "version": now.place.version, "measure": ", ".join(self.schema.measured),
            "columns": list(self.schema.names),
            "trees": [
                {
                    "measure": self.schema.measured[tree.shape.measure],
                    "on": [self.schema.names[each] for each in tree.shape.columns], "leaves": reading.scales.tree.leaves,
                    "sampled": len(reading.sample), "outliers": len(reading.outliers), "bytes": reading.nbytes,
                    "repartitioned": len(tree.history),
                }
                for tree, reading in zip(self.trees, now.readings, strict=True)
            ],
            "rows": now.readings[0].rows, "quarantined": count_aside(self._engine.catalog.directory(table)),
            "counted_anew": self.subscription.recounted,
        }  # fmt: skip

    def picture(self, tree: int = 0, most: int = 64) -> str:
        """The tree as text, with the error of the worst query in each leaf."""
        return picture(self.moment().readings[tree], self.schema.domains, most)

    def _repr_html_(self) -> str:
        measured, names = ", ".join(self.schema.measured), ", ".join(self.schema.names)
        return card(
            f"Synopsis {self.name}", {"of": self.definition.table, "measures": measured, "by": names, "version": self.version}
        )

    def __repr__(self) -> str:
        rows, columns = self.trees[0].reading().rows, f"{', '.join(self.schema.measured)} by {', '.join(self.schema.names)}"
        return f"Synopsis({self.name!r}, {columns}, {rows:,.0f} rows of version {self.version} of {self.definition.table})"


def _check_share(name: str, value: float) -> None:
    if not 0 < value <= 1:
        raise SchemaError(f"{name}={value} must be above 0 and at most 1")
