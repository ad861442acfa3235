"""Reading tables that change, also in a process of its own: `CATALOG SECONDS` opens the catalog again and again, and asks."""

from __future__ import annotations

import sys
import time

import numpy as np
import pyarrow as pa

import nearly

ROWS = 40_000
"""In a file, and in what is appended at a time. The k-th has the value k everywhere, so a sum tells which of them were read."""

TEXTS = (
    "select count(*) as n, sum(v) as s from {0}",
    "select sum(a.n) as n, sum(b.s) as s from (select count(*) as n from {0}) a cross join (select sum(v) as s from {0}) b",
    "select count(*) as n, sum(s) as s from (select k, sum(v) as s from {0} group by k) x",
)


def part(number: int) -> pa.Table:
    first = number * ROWS
    return pa.table({"k": np.arange(first, first + ROWS), "v": np.full(ROWS, number)})


def is_of_one_version(answer: nearly.Answer) -> bool:
    """Versions have the first so many parts, whole."""
    (row,) = answer.table.to_pylist()
    parts, rest = divmod(row["n"], ROWS)
    return rest == 0 and row["s"] == ROWS * parts * (parts - 1) // 2


def ask_for(db: nearly.Session, seconds: float, tables: tuple[str, ...]) -> tuple[int, list[str]]:
    """Ask queries anew, again, exactly and step by step; how many, and what was wrong."""
    kept = [db.sql(text.format(name)) for name in tables for text in TEXTS]
    asked, wrong, until = 0, list[str](), time.monotonic() + seconds
    while time.monotonic() < until and not wrong:
        for query in kept:
            wrong += [str(query.exact())] if not is_of_one_version(query.exact()) else []
        for name in tables:
            for answer in (list(db.sql(TEXTS[asked % 3].format(name)))[-1], list(kept[0])[-1]):
                wrong += [str(answer)] if not is_of_one_version(answer) else []
        asked += len(kept) + 2 * len(tables)
    return asked, wrong


def main(catalog: str, seconds: str) -> None:
    total = 0
    for _ in range(4):
        with nearly.connect(path=catalog, lazy=True, eager=True) as db:
            asked, wrong = ask_for(db, float(seconds) / 4, ("files", "rows"))
        total += asked
        if wrong:
            sys.exit(wrong[0])
    sys.stdout.write(f"{total}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
