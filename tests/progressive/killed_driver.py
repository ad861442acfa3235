"""A driver that is meant to be killed: `HOME EVENTS OUTPUT [drain]`.

It feeds a synopsis from a stream of files, and runs a query or goes on with one that was killed; it writes down every answer. With
`drain` it waits until the stream is read, and ends with a line about the synopsis.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import nearly
from nearly.engine.stream.task import Pace
from nearly.progressive.run import Request, Run, resumed
from nearly.synopsis.synopsis import Synopsis

TEXT = "select grp, sum(price) as total, count(*) as n from events where x > (select avg(x) from events) group by grp order by grp"
ID = "killed"
RIDES = 1_000


def main(home: Path, events: Path, output: Path, drain: bool) -> None:
    with nearly.connect(path=home / "catalog") as db:
        if "events" not in db.tables:
            db.register("events", events)
        fares = _fares(db, home)
        files = db._engine.cluster.spark.readStream.schema("op string, id bigint, day double, fare double")
        following = fares.follow(files.json(str(home / "inbox")))
        run = resumed(db._engine, ID) if ID in db.unfinished else _begun(db)
        for answer in run.answers():
            rows = [[str(value) for value in row.values()] for row in answer.table.to_pylist()]
            _write(output, [answer.stats["units"], answer.exact, rows])
            time.sleep(0.05)
        if drain:
            following.drain()
            found = fares.query("rows").table["rows"][0].as_py(), fares.query("sum").table["sum"][0].as_py()
            _write(output, ["synopsis", *map(float, found)])
        following.stop()


def _begun(db: nearly.Session) -> Run:
    """A query in many batches of fixed sizes, so that killed and undisturbed ones can be compared."""
    return Run(db._engine, db._engine.prepare(TEXT), Request(pace=Pace(sizes=(3,) * 40)), ID)


def _fares(db: nearly.Session, home: Path) -> Synopsis:
    if "fares" in db.synopses:
        return db.synopsis("fares")
    path = home / "rides.parquet"
    pq.write_table(pa.table({"id": range(RIDES), "day": [n % 30 + 0.5 for n in range(RIDES)], "fare": [1.0] * RIDES}), path)
    db.register("rides", path, key=["id"])
    return db.create_synopsis("fares", "rides", "fare", ["day"], leaves=8, sample=0.2)


def _write(output: Path, line: list[object]) -> None:
    with output.open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), "drain" in sys.argv[4:])
