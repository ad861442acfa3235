"""What the catalog keeps of a view beside its rows: the query it is, how its stored rows are read, and how it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nearly.plan.reading import Reading
from nearly.plan.stored_form import restored, stored

AUTO, INCREMENTAL, FULL = "auto", "incremental", "full"
POLICIES = (AUTO, INCREMENTAL, FULL)
ERROR, KEEP, REPLACE = "error", "keep", "replace"
"""What to do where there is a view of the name already."""


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A query whose rows are kept.

    `reading` is None where the stored rows are what users see. `key` is what the user said identifies a row; `sample` is the share
    of the view that is cleaned first when it is stale, `every` the seconds between two refreshes in the background. `zone` is the
    time zone of the session that computed the rows, where another zone would give others.
    """

    text: str
    reading: Reading | None = None
    policy: str = AUTO
    key: tuple[str, ...] = ()
    sample: float | None = None
    every: float | None = None
    zone: str | None = None

    @property
    def content(self) -> dict[str, Any]:
        """As JSON can hold it."""
        reading = self.reading and {"plan": stored(self.reading.plan), "names": list(self.reading.names)}
        return {
            "text": self.text, "reading": reading, "policy": self.policy, "key": list(self.key), "sample": self.sample,
            "every": self.every, "zone": self.zone,
        }  # fmt: skip


def read_definition(read: Any) -> ViewDefinition:
    """The definition of which `content` was made."""
    reading = read["reading"] and Reading(restored(read["reading"]["plan"]), tuple(read["reading"]["names"]))
    zone = read.get("zone")
    return ViewDefinition(read["text"], reading, read["policy"], tuple(read["key"]), read["sample"], read["every"], zone)
