"""Which object the present cell of a notebook has drawn itself: it is not shown a second time as the value of the cell."""

from __future__ import annotations

import sys

_drawn: list[tuple[object, int]] = []


def drew(thing: object) -> None:
    """A face has drawn this."""
    _drawn[:] = [(thing, _cell())]


def echo_is_due(thing: object) -> bool:
    """Whether the value of a cell is still to be shown; what was drawn is remembered until the next question."""
    known = any(each is thing and cell == _cell() for each, cell in _drawn)
    _drawn.clear()
    return not known


def _cell() -> int:
    """The number of the cell that runs; -1 outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return int(getattr(shell, "execution_count", -1))
