"""Keeps a query standing while its table grows, until it is killed: `killed_session.py CATALOG ORDERS CUSTOMERS TEXT`."""

from __future__ import annotations

import sys

import pyarrow as pa

import nearly

ROWS = 20


def told(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(catalog: str, orders: str, customers: str, text: str) -> None:
    db = nearly.connect(path=catalog, lazy=True)
    if not db.tables:
        db.register("orders", orders, key=["id"])
        db.register("customers", customers, key=["id"])
    s = db.standing(name="killed") if db.standings else db.standing(text, name="killed", every="50ms", arrivals={"orders": 100})
    told("ready")
    while True:
        first = db.table("orders").info.rows
        ids = range(first, first + ROWS)
        db.insert("orders", pa.table({"id": ids, "customer": [each % 100 for each in ids], "price": [each % 7 for each in ids]}))
        told(str(s.refresh().table.num_rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
