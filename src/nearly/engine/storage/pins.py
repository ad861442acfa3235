"""What unfinished queries read: their logs say in which files their tables lie, and these are kept as long as the log is.

A log that is removed pins nothing any more, so there is nothing to keep in step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

QUERIES, QUERY, PINNED = "queries", "query.json", "pinned"
"""The directory of the logs in a catalog, the description in each, and what of it names the pins."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A table in one version, in the files that it had when a query began: the description of its epoch, and where they lie."""

    table: str
    home: str
    epoch: str
    version: int
    directories: tuple[str, ...]

    @property
    def log(self) -> str:
        """The file of the epoch's batches, where it is over."""
        return log_of(self.epoch)

    def content(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)


def read_pin(content: dict[str, Any]) -> Pin:
    return Pin(**(content | {"directories": tuple(content["directories"])}))


def log_of(epoch: str) -> str:
    """The name of the file that has the batches of an epoch which is over."""
    return epoch.replace("whole-", "log-")


def pins_of(catalog: Path) -> Iterator[Pin]:
    """All pins of the queries of a catalog."""
    for log in (catalog / QUERIES).glob(f"*/{QUERY}"):
        if not log.parent.name.startswith("."):
            with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # on its way out, or not a description
                yield from [read_pin(each) for each in json.loads(log.read_text(encoding="utf-8")).get(PINNED, [])]
