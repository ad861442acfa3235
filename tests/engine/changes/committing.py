"""Changing a table in a process of its own: `CATALOG NUMBER SECONDS` commits again and again, and writes what was acknowledged."""

from __future__ import annotations

import sys
import time

import numpy as np
import pyarrow as pa

import nearly

ROWS = 200
"""In a batch: each has a range of keys of its own, and one value in all rows."""


def rows(writer: int, batch: int) -> pa.Table:
    first = 1_000_000 * (writer + 1) + batch * ROWS
    return pa.table({"k": np.arange(first, first + ROWS), "v": np.full(ROWS, batch)})


def main(catalog: str, writer: str, seconds: str) -> None:
    """Of three batches one is deleted again, one is merged again with other values; readers meanwhile see whole batches."""
    number, batch, until = int(writer), 0, time.monotonic() + float(seconds)
    with nearly.connect(path=catalog, lazy=True) as db:
        while not batch or time.monotonic() < until:
            db.insert("t", rows(number, batch), batch=(f"writer{number}", 2 * batch))
            if batch % 3 == 1:
                db.delete("t", rows(number, batch))
            if batch % 3 == 2:
                changed = rows(number, batch)
                db.merge("t", changed.set_column(1, "v", pa.array(np.full(ROWS, -1))), batch=(f"writer{number}", 2 * batch + 1))
            if batch % 10 == 9:
                db.compact("t")
            found = db.sql("select count(*) as n, count(distinct k) as d from t").exact().table.to_pylist()[0]
            if found["n"] % ROWS or found["n"] != found["d"]:
                sys.exit(f"a version that never was: {found}")
            batch += 1
            sys.stdout.write(f"{batch}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
