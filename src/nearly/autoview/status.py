"""What is told about automatic views."""

from __future__ import annotations

from dataclasses import dataclass

from nearly.autoview.keeping import Tally


@dataclass(frozen=True, slots=True)
class KeptView:
    """One view: what it is of, how large it is, how often it was used, and what it cost and saved in seconds.

    `measured` tells of how many questions an experiment has measured the gain; for others `saved` is an expectation.
    """

    name: str
    kind: str
    tables: tuple[str, ...]
    rows: int
    bytes: int
    uses: int
    cost: float
    saved: float
    measured: int


@dataclass(frozen=True, slots=True)
class Status:
    """What is kept, and what came of it since the session began."""

    is_on: bool
    policy: str
    storage: int
    bytes: int
    views: tuple[KeptView, ...]
    tally: Tally
    unsure: int
    """Experiments that were not run yet, and questions that were not looked at."""
    learning_seconds: float

    def __str__(self) -> str:
        tally = self.tally
        events = (
            f"{tally.made} made, {tally.evicted} evicted, {tally.lost} lost to changed tables, {tally.moved} followed them, "
            f"{tally.experiments} experiments run, {self.unsure} to do"
        )
        lines = [
            f"automatic views: {'on' if self.is_on else 'off'}, policy {self.policy}, {self.bytes:,} of {self.storage:,} bytes",
            f"{tally.queries:,} queries, {tally.served:,} served by views, {tally.saved:.3f} s saved, {tally.spent:.3f} s spent",
            events,
        ]
        lines += [
            f"  {each.name}: {each.kind} of {', '.join(each.tables)}, {each.rows:,} rows, {each.bytes:,} bytes, {each.uses} uses, "
            f"cost {each.cost:.3f} s, saved {each.saved:.3f} s ({'measured' if each.measured else 'expected'})"
            for each in sorted(self.views, key=lambda view: -view.saved)
        ]
        return "\n".join(lines)
