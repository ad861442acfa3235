"""Where a native engine puts what does not fit into its memory: a directory of its own that no other user can read or foresee.

    <temporary directory>/nearly-spill-<random>/owner    locked as long as the engine's process lives
    <temporary directory>/nearly-spill-<random>/rows/    the engine's files

Two engines in one directory would use the same file names. What a killed process leaves is removed by the next one of its user.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

from nearly.engine.storage.locks import exclusive, is_free
from nearly.errors import EngineError

_PREFIX = "nearly-spill-"
_OWNER = "owner"
FRESH_SECONDS = 600
"""A directory this young may belong to an engine that has not locked it yet."""


class SpillDirectory:
    """A private directory, held until it is removed."""

    def __init__(self) -> None:
        _sweep_once(os.getpid())
        try:
            self._directory = Path(tempfile.mkdtemp(prefix=_PREFIX))  # readable by its owner only
        except OSError as error:
            raise EngineError(
                f"cannot make a directory to spill to: {error.strerror}; set TMPDIR to a place that can be used"
            ) from error
        self._process = os.getpid()
        self._owned = ExitStack()
        self._owned.enter_context(exclusive(self._directory / _OWNER))

    @property
    def path(self) -> Path:
        """For the engine, which makes it when it is needed."""
        return self._directory / "rows"

    def remove(self) -> None:
        """Done with; in a forked child it is still the parent's."""
        if self._process == os.getpid():
            shutil.rmtree(self._directory, ignore_errors=True)
            self._owned.close()


@cache
def _sweep_once(_process: int) -> None:
    """Remove what dead processes of this user left."""
    oldest = time.time() - FRESH_SECONDS
    for each in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError, EngineError):
            status = each.lstat()
            if status.st_uid == os.getuid() and status.st_mtime < oldest and is_free(each / _OWNER):
                shutil.rmtree(each, ignore_errors=True)
