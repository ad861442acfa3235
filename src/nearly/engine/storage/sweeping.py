"""What of a table's directory nobody needs any more. What has another name than the catalog gives is not ours, and stays."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from nearly.engine.storage.durable import DRAFT
from nearly.engine.storage.locks import is_free, unshared
from nearly.engine.storage.pins import Pin
from nearly.engine.storage.versions import HEAD, PINS, Versions, directories_of

TEMPORARY, OWNER = ".tmp-", "owner"
"""How a directory that is being written is called, and the file in it that its writer has locked."""
_OUR_DIRECTORY = re.compile(r"[a-z0-9_]*-[0-9a-f]{12}")
_OUR_FILE = re.compile(r"(whole|log)-[0-9a-f]{12}\.json")
_OUR_UNFINISHED_FILE = re.compile(DRAFT.format(name=f"(?:{re.escape(HEAD)}|{_OUR_FILE.pattern})"))


def sweep(directory: Path, versions: Versions | None, pins: Callable[[], Iterable[Pin]]) -> None:
    """Remove what dead writers left and what neither a kept version nor a pin refers to; whoever calls has the catalog's lock."""
    used = set() if versions is None else _used(versions, directory)
    for draft in (directory / PINS).glob(".*.pin.*"):  # pins are written under the same lock
        draft.unlink(missing_ok=True)
    with unshared(directory) as unread:
        for pin in pins():  # of those who have read until now
            if pin.home == directory.name:
                used |= {pin.epoch, pin.log, *pin.directories}
        for each in list(directory.iterdir()):
            if each.name.startswith(TEMPORARY):
                if is_free(each / OWNER):
                    shutil.rmtree(each, ignore_errors=True)
            elif _OUR_DIRECTORY.fullmatch(each.name):
                if unread and each.name not in used:
                    shutil.rmtree(each, ignore_errors=True)
            elif _OUR_UNFINISHED_FILE.fullmatch(each.name) or (_OUR_FILE.fullmatch(each.name) and each.name not in used):
                each.unlink(missing_ok=True)
    if versions is None and not any(directory.iterdir()):
        directory.rmdir()


def _used(versions: Versions, directory: Path) -> set[str]:
    """Names of the files and directories that the kept versions of a table need."""
    used = directories_of(versions.present, directory) | {versions.present.file}
    for each in versions.past:
        used |= {each.file, each.log, *each.directories}
    return used
