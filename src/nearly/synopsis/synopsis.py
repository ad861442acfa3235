"""The synopsis as its user holds it: questions, changes, streams, and looking after its trees."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from nearly.algebra.moments import check_confidence
from nearly.answer import Answer
from nearly.engine.spark.cluster import GetSpark
from nearly.engine.spark.stream_follow import Following
from nearly.engine.storage.catalog import check_name
from nearly.errors import SchemaError, Unsupported
from nearly.plan.types import to_arrow
from nearly.synopsis.build.definition import Definition
from nearly.synopsis.query.answers import Groups, groups_in, single, tabular
from nearly.synopsis.query.estimates import Estimate, answer
from nearly.synopsis.query.reading import picture
from nearly.synopsis.query.totals import function_and_measure
from nearly.synopsis.structure.schema import box_of
from nearly.synopsis.structure.state import TreeState
from nearly.synopsis.structure.tree import Box
from nearly.synopsis.upkeep.follow import Topics, follow, follow_kafka
from nearly.synopsis.upkeep.intake import Batch, Intake
from nearly.synopsis.upkeep.live import Archive, LiveTree, Repartitioned
from nearly.synopsis.upkeep.store import Store

logger = logging.getLogger(__name__)


class Synopsis:
    """Exact aggregates over a tree of ranges, with sampled leaves. Safe for use by several threads."""

    def __init__(
        self, definition: Definition, states: Sequence[TreeState], archive: Archive, store: Store | None, number: int = 0,
        streams: Mapping[str, int] | None = None, spark: GetSpark | None = None,
    ) -> None:  # fmt: skip
        self.definition = definition
        self.schema = definition.schema
        lock = threading.RLock()
        pairs = zip(definition.shapes, states, strict=True)
        self.trees = [LiveTree(shape, state, archive, lock=lock, applied=number) for shape, state in pairs]
        self.intake = Intake(definition, self.trees, archive, store, lock, number, streams or {})
        self.auto_repartition = True
        self._spark = spark
        self._background: threading.Thread | None = None

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def store(self) -> Store | None:
        return self.intake.store

    @property
    def changed(self) -> bool:
        """Whether it has taken changes that its table does not have."""
        return self.intake.number > 0

    # --- questions ---------------------------------------------------------------------------------------------------

    def query(
        self, aggregate: str, *, by: str | Sequence[str] | None = None, confidence: float = 0.95, **conditions: Any
    ) -> Answer:
        """An aggregate (sum, count, rows, avg, min, max, var, stddev and their variants) of the measure over the rows that satisfy
        the conditions: `column=value`, or `column=(low, high)` with both ends included and None for an open end.

        With several measures the one that is meant is named, as in "sum(fare)". `by` groups by a column of text or booleans, or by
        several.
        """
        (name, column), box = function_and_measure(aggregate), box_of(self.schema, conditions)
        measure = 0 if name == "rows" else self.schema.measure(column)
        check_confidence(confidence)
        if by is None:
            return single(aggregate, self.estimate(name, box, confidence, measure), confidence, f"synopsis {self.name}")
        places = [self.schema.place(each) for each in ([by] if isinstance(by, str) else by)]
        groups = self.groups(places, box)
        found = [self.estimate(name, each, confidence, measure) for each in groups.boxes]
        domains = [self.schema.domains[place] for place in places]
        keys = [
            (domain.name, pa.array([key[at] for key in groups.keys], to_arrow(domain.type))) for at, domain in enumerate(domains)
        ]
        return tabular([*keys, (aggregate, found)], groups.presence, confidence, f"synopsis {self.name}")

    def estimate(self, aggregate: str, box: Box, confidence: float = 0.95, measure: int = 0) -> Estimate:
        """The estimate for a canonical aggregate of a measure over a box, from the tree that suits it best."""
        found = answer(self._tree_for(box, measure).reading(), aggregate, box, confidence)
        if aggregate in ("rows", "count"):
            return found
        return found.divided(self.schema.measures[measure].unit ** (2 if aggregate.startswith("var") else 1))

    def groups(self, dimensions: Sequence[int], box: Box) -> Groups:
        """The groups by some columns of the rows in a box."""
        return groups_in(self.schema.domains, dimensions, box, lambda narrow: self.estimate("rows", narrow))

    def _tree_for(self, box: Box, measure: int) -> LiveTree:
        """The tree of a measure that splits on most of the box's columns, and among these on the fewest others."""
        if len(self.trees) == 1:
            return self.trees[0]
        wanted = {each.dimension for each in box}
        mine = (tree for tree in self.trees if tree.shape.measure == measure)
        return max(mine, key=lambda tree: (len(wanted & set(tree.shape.columns)), -len(set(tree.shape.columns) - wanted)))

    # --- changes -----------------------------------------------------------------------------------------------------

    def insert(self, rows: Any, *, batch: Batch | None = None) -> None:
        """Take new rows: an Arrow table, a pandas frame, a dict of columns or a list of dicts. A batch (stream, number) that was
        taken before is not taken again."""
        self._change(batch, (True, rows))

    def delete(self, rows: Any, *, batch: Batch | None = None) -> None:
        """Remove rows, given with all their columns as they were inserted."""
        self._change(batch, (False, rows))

    def update(self, old: Any, new: Any, *, batch: Batch | None = None) -> None:
        """Replace rows: an insert and a delete that take effect together."""
        self._change(batch, (True, new), (False, old))

    def _change(self, batch: Batch | None, *parts: tuple[bool, Any]) -> None:
        tables = [(insert, self.intake.table(rows)) for insert, rows in parts]
        self.intake.apply(lambda: [self.intake.change(insert, table) for insert, table in tables], batch)
        self.look_after()

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

    def look_after(self) -> None:
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
            tree.repartition("auto", force=False)
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
        self.intake.save()

    def close(self) -> None:
        """Save what changed and let others write.

        A snapshot that cannot be written (a full disk, another writer) is a warning in the log of `nearly.synopsis` and no error:
        every batch that was acknowledged is in the synopsis's own log, and is replayed when it is opened again.
        """
        self.settle()
        self.intake.close()

    # --- looking at --------------------------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """Size and state in numbers."""
        readings = [tree.reading() for tree in self.trees]
        return {
            "name": self.name, "table": self.definition.table, "measure": ", ".join(self.schema.measured),
            "columns": list(self.schema.names),
            "trees": [
                {
                    "measure": self.schema.measured[tree.shape.measure],
                    "on": [self.schema.names[each] for each in tree.shape.columns], "leaves": reading.scales.tree.leaves,
                    "sampled": len(reading.sample), "outliers": len(reading.outliers), "bytes": reading.nbytes,
                    "repartitioned": len(tree.history),
                }
                for tree, reading in zip(self.trees, readings, strict=True)
            ],
            "rows": readings[0].rows, "batches": self.intake.number, "streams": dict(self.intake.streams),
            "quarantined": 0 if self.store is None else self.store.quarantined,
        }  # fmt: skip

    def picture(self, tree: int = 0, most: int = 64) -> str:
        """The tree as text, with the error of the worst query in each leaf."""
        return picture(self.trees[tree].reading(), self.schema.domains, most)

    def __repr__(self) -> str:
        rows = self.trees[0].reading().rows
        return f"Synopsis({self.name!r}, {', '.join(self.schema.measured)} by {', '.join(self.schema.names)}, {rows:,.0f} rows)"


def _check_share(name: str, value: float) -> None:
    if not 0 < value <= 1:
        raise SchemaError(f"{name}={value} must be above 0 and at most 1")
