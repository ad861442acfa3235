"""Answer TPC-H queries in a process of its own, as a Connect client or a second driver must: `URL CATALOG OUTPUT NUMBERS [HOW]`.

Each answer is written as an Arrow file. With `kill`, an executor dies in the middle of each query; with `kill-streaming`, queries
are answered step by step, and one dies after the first answer.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pyarrow as pa

import nearly
from benchmarks.tpch.data import ensure_tables
from benchmarks.tpch.queries import query
from nearly.engine.stream.task import Pace
from nearly.progressive.run import Request, Run

SCALE = "0.1"


def main(url: str, catalog: str, output: str, numbers: str, how: str = "") -> None:
    with nearly.connect(url, path=catalog) as db:
        for name, path in ensure_tables(SCALE).items():
            db.register(name, path)
        for number in map(int, numbers.split(",")):
            text = query(number, SCALE)
            answer = streamed(db, text) if how == "kill-streaming" else at_once(db, text, kill=how == "kill")
            assert answer.source == "native", answer.source
            write(answer.table, Path(output) / f"{number}.arrow")
        print(f"sites: {db._engine.cluster.sites}")


def at_once(db: nearly.Session, text: str, *, kill: bool) -> nearly.Answer:
    killer = threading.Timer(0.4, kill_one_executor, [db]) if kill else None
    if killer:
        killer.start()
    answer = db.sql(text, kernel="native").exact()
    if killer:
        killer.join()
    return answer


def streamed(db: nearly.Session, text: str) -> nearly.Answer:
    answers = Run(db._engine, db._engine.prepare(text), Request(pace=Pace(sizes=(2,) * 100))).answers()
    first = next(answers)
    kill_one_executor(db)
    last = [first, *answers][-1]
    assert last.exact
    assert not first.exact
    return last


def write(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)


def kill_one_executor(db: nearly.Session) -> None:
    """An executor of this session: other tests may have theirs at the same time."""
    application = db._engine.cluster.given.sparkContext.applicationId.encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command and application in command.split(b"\0"):
            print(f"killing executor {process.name}", flush=True)
            os.kill(int(process.name), signal.SIGKILL)
            return


if __name__ == "__main__":
    main(*sys.argv[1:6])
