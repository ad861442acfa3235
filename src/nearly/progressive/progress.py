"""How far a progressive query has come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nearly.engine.stream.result_log import UnitBatch
from nearly.engine.stream.unit_state import UnitState
from nearly.engine.stream.units import Units
from nearly.progressive.ranges import VariationRanges
from nearly.progressive.reading import UnitsRead


@dataclass(slots=True)
class Progress:
    """Which units were read, by whom, how often the user looked, and what undecided rows cost."""

    units: Units
    ranges: VariationRanges
    positions: set[int] = field(default_factory=set)
    sites: set[int] = field(default_factory=set)
    looks: int = 0
    batches: int = 0
    reading: float = 0.0
    checked: int = 0
    recomputed: int = 0
    recoveries: int = 0
    reread: int = 0
    answered: float = 0.0
    evaluation: float = 0.0
    last_batch: UnitBatch | None = None

    def add(self, batch: UnitBatch, positions: list[int]) -> None:
        self.positions.update(positions)
        self.sites.add(batch.site)
        self.batches += 1
        self.reading = batch.seconds if batch.exact else self.reading + batch.seconds
        self.last_batch = batch

    def new(self, sites: int) -> bool:
        """Whether there is more than was checked before, from every site: a sample without the share of one would be lopsided.

        After a recovery the ranges come from more units than are read again at first, and hold only from there on.
        """
        return len(self.sites) == sites and len(self.positions) > self.checked

    def begin_again(self) -> None:
        """Forget what was read, not how far it was."""
        self.positions.clear()
        self.sites.clear()

    def facts(self, state: UnitState) -> dict[str, Any]:
        """What an answer tells about how it came about."""
        last = self.last_batch
        facts: dict[str, Any] = {
            "batches": self.batches, "units": len(self.positions), "of_units": len(self.units.order), "state_rows": state.rows,
            "state_bytes": state.bytes, "batch_seconds": last.seconds if last else 0.0,
            "batch_units": last.end - last.start if last else 0, "rows_read": UnitsRead.of(self.units, self.positions).rows,
            "reading_seconds": self.reading,
        }  # fmt: skip
        if self.ranges.stages:
            facts |= {"kept": self.ranges.undecided(), "recomputed": self.recomputed, "recoveries": self.recoveries,
                      "units_read_again": self.reread}  # fmt: skip
        return facts
