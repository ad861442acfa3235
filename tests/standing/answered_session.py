"""Has an answer from changes, and is held up before what is kept is brought up to date: `answered_session.py CATALOG TEXT`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow as pa

import nearly
from nearly.standing import refresh
from nearly.standing.upkeep import CHANGE, Upkeep


def _wait_for_the_end(*_: object) -> None:
    sys.stdout.write("answered\n")
    sys.stdout.flush()
    time.sleep(600)


def main(catalog: str, text: str) -> None:
    Upkeep.expected = lambda *_: 0.0  # type: ignore[method-assign]  # changes always pay
    db = nearly.connect(path=Path(catalog), lazy=True)
    s = db.standing(text, name="held", arrivals={"orders": 5})
    for first in (1000, 1005):
        db.insert("orders", pa.table({"id": range(first, first + 5), "customer": range(5), "price": range(5)}))
        if first > 1000:
            refresh._keep_up = _wait_for_the_end
        s.refresh()
        assert s.states
        assert s.history[-1].strategy == CHANGE


if __name__ == "__main__":
    main(*sys.argv[1:])
