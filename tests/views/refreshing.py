"""Changing a table and refreshing a view in a process of its own: `CATALOG NUMBER SECONDS`."""

from __future__ import annotations

import sys
import time

import nearly

TEXT = "select k % 5 as g, count(*) as n, sum(v) as s from t group by k % 5"


def is_right(db: nearly.Session) -> bool:
    """Whether the view and the one above it are of the versions that they name."""
    for name, text in (("w", TEXT), ("above", "select count(*) as n, sum(v) as s from t")):
        table, notes = db._engine.catalog.noted(name)
        version = notes["leaves"]["t"][0]
        told = text.replace("from t", f"from t version as of {version}")
        found, expected = (
            sorted(db.sql(each, kernel="native").exact().table.to_pylist(), key=str)
            for each in (f"select * from {name} version as of {table.version}", told)
        )
        if found != expected:
            return False
    return True


def main(catalog: str, writer: str, seconds: str) -> None:
    number, batch, until = int(writer), 0, time.monotonic() + float(seconds)
    with nearly.connect(path=catalog, lazy=True) as db:
        while not batch or time.monotonic() < until:
            first = 1_000_000 * (number + 1) + batch * 10
            db.insert("t", [{"k": first + place, "v": place} for place in range(10)])
            if batch % 3 == 2:
                db.delete("t", where=f"k >= {first}")
            db.view("above" if batch % 2 else "w").refresh()
            if not is_right(db):
                sys.exit("a view that never was")
            batch += 1
        sys.stdout.write(f"{batch}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
