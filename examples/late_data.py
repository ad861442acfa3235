"""Late data: most readings of sensors are there at once, the rest comes late; the averages by place are kept current.

    python examples/late_data.py

Nine of ten readings that are missing arrive in each interval. The query knows how many there will be, keeps only what the next
delta needs, and ends by itself when the last reading is there.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nearly
from nearly.standing.arrivals import Geometric

READINGS, SENSORS, PLACES = 200_000, 2_000, 20
ARRIVED = (0.9, 0.99, 0.999, 1.0)


def main() -> None:
    """Show each answer and what is kept for the next one."""
    random = np.random.default_rng(0)
    readings = pa.table({
        "id": np.arange(READINGS), "sensor": random.integers(0, SENSORS, READINGS), "value": random.integers(0, 1000, READINGS),
    })  # fmt: skip
    sensors = pa.table({"id": np.arange(SENSORS), "place": [f"place {each % PLACES:02}" for each in range(SENSORS)]})
    order = random.permutation(READINGS)
    with tempfile.TemporaryDirectory() as directory, nearly.connect(lazy=True, path=Path(directory) / "catalog") as db:
        begin = int(ARRIVED[0] * READINGS)
        for name, rows in (("readings", readings.take(order[:begin])), ("sensors", sensors)):
            pq.write_table(rows, Path(directory) / f"{name}.parquet")
            db.register(name, str(Path(directory) / f"{name}.parquet"), key=["id"])
        s = db.standing(
            "select place, count(*) as n, avg(value) as mean from readings r join sensors s on r.sensor = s.id group by place",
            every="200ms", memory="64MB", arrivals=Geometric({"readings": READINGS}),
        )  # fmt: skip
        late = iter(ARRIVED[1:])
        for answer in s:
            total = sum(answer.table["n"].to_pylist())
            print(f"{total:,} of {READINGS:,} readings, refreshed by {answer.stats['refresh']} in {answer.stats['run']:.3f} s")
            print(s.status())
            if (share := next(late, None)) is not None:
                db.insert("readings", readings.take(order[begin : int(share * READINGS)]))
                begin = int(share * READINGS)
        print("complete")


if __name__ == "__main__":
    main()
