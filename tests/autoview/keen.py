"""Automatic views over small tables: whatever can be made is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import nearly
from nearly.autoview import attention, making, mining
from nearly.autoview.autoview import AutoView


@contextmanager
def keen() -> Iterator[None]:
    """Views are made however small a query is and however long that takes, and questions are mined while they run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "ENOUGH", 0.0)
        patch.setattr(mining, "SHARE", 1e9)
        patch.setattr(making, "PATIENCE", 1e9)
        patch.setattr(making.Making, "fits", lambda *_: True)
        yield


def held_still(auto: AutoView) -> AutoView:
    """Without its thread: what it would do when it is quiet is done by `settle`."""
    auto._worker.stop()
    return auto


def rows_on_disk(path: Path) -> int:
    """Bytes of the files that automatic views have below a catalog."""
    return sum(each.stat().st_size for each in (path / "autoview" / "rows").rglob("*") if each.is_file())


def both(db: nearly.Session, text: str) -> tuple[object, object, str]:
    """A query's answer with automatic views and without, and who gave it."""
    found = db.sql(text).exact()
    return found.table, db.sql(text, kernel="native").exact().table, found.source
