"""A driver that is meant to be killed: run a query or go on with it, and write down every answer: `CATALOG DATA OUTPUT [ID]`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import nearly
from nearly.engine.stream_task import Pace
from nearly.progressive.run import Request, Run, resumed

TEXT = "select grp, sum(price) as total, count(*) as n from events where x > (select avg(x) from events) group by grp order by grp"


def main(catalog: str, data: str, output: str, id_: str | None) -> None:
    with nearly.connect(path=catalog) as db:
        if "events" not in db.tables:
            db.register("events", data)
        pace = Pace(sizes=(3,) * 40)
        if id_ is None or id_ not in db.unfinished:
            run = Run(db._engine, db._engine.prepare(TEXT), Request(pace=pace), id_ or "killed")
        else:
            run = resumed(db._engine, id_)
        for answer in run.answers():
            line = json.dumps(
                [answer.stats["units"], answer.exact, [[str(v) for v in row.values()] for row in answer.table.to_pylist()]]
            )
            with Path(output).open("a") as file:
                file.write(line + "\n")
            time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None)
