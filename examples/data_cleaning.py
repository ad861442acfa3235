"""Data cleaning: one table after the other is corrected at a known rate; revenue by country is kept current meanwhile.

    python examples/data_cleaning.py

The cleaner tells which table it works on and how many rows a second it corrects. The query keeps what deltas of that table
need, and other rows when the cleaner moves on.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nearly
from nearly.standing.arrivals import Expected, Next, Past

CUSTOMERS, ORDERS, STEP, STEPS = 5_000, 200_000, 500, 4


class Cleaner:
    """Corrects rows of one table at a time, and tells what it will do next."""

    def __init__(self) -> None:
        self.table = "customers"
        self.done: set[str] = set()

    def predict(self, past: Past, next_: Next) -> Mapping[str, Expected]:
        del past, next_
        return {
            name: Expected(STEP, STEP) if name == self.table else Expected(last=name in self.done)
            for name in ("customers", "orders")
        }


def main() -> None:
    """Show how each correction changes the answer, and what is kept for the next one."""
    random = np.random.default_rng(0)
    customers = pa.table({"id": np.arange(CUSTOMERS), "country": [f"country {each % 7}" for each in range(CUSTOMERS)]})
    orders = pa.table({
        "id": np.arange(ORDERS), "customer": random.integers(0, CUSTOMERS, ORDERS), "price": random.integers(1, 500, ORDERS),
    })  # fmt: skip
    cleaner = Cleaner()
    with tempfile.TemporaryDirectory() as directory, nearly.connect(lazy=True, path=Path(directory) / "catalog") as db:
        for name, rows in (("customers", customers), ("orders", orders)):
            pq.write_table(rows, Path(directory) / f"{name}.parquet")
            db.register(name, str(Path(directory) / f"{name}.parquet"), key=["id"])
        s = db.standing(
            "select country, sum(price) as revenue from orders o join customers c on o.customer = c.id group by country",
            memory="64MB", arrivals=cleaner,
        )  # fmt: skip
        for table, change in (("customers", {"country": "'country 9'"}), ("orders", {"price": "price + 1"})):
            cleaner.table = table
            for step in range(STEPS):
                db.update(table, change, f"id >= {step * STEP} and id < {(step + 1) * STEP}")
                answer = s.refresh()
                took = f"by {answer.stats['refresh']} in {answer.stats['run']:.3f} s"
                print(f"{table}, step {step + 1}: {took}, keeps {s.bytes:,} bytes")
            cleaner.done.add(table)
            s.complete(table)
        print(s.answer)
        print("complete" if s.is_over else s.status())


if __name__ == "__main__":
    main()
