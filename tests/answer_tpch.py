"""Answer TPC-H queries in a process of its own, as a Connect client or a second driver must: `URL CATALOG OUTPUT NUMBERS [kill]`.

Each answer is written as an Arrow file. With `kill`, an executor dies in the middle of each query.
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

SCALE = "0.1"


def main(url: str, catalog: str, output: str, numbers: str, kill: bool) -> None:
    with nearly.connect(url, path=catalog) as db:
        for name, path in ensure_tables(SCALE).items():
            db.register(name, path)
        for number in map(int, numbers.split(",")):
            killer = threading.Timer(0.4, kill_one_executor, [db]) if kill else None
            if killer:
                killer.start()
            answer = db.sql(query(number, SCALE), kernel="native").exact()
            if killer:
                killer.join()
            assert answer.source == "native", answer.source
            write(answer.table, Path(output) / f"{number}.arrow")
        print(f"sites: {db._engine.cluster.sites}")


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
    main(*sys.argv[1:5], kill=sys.argv[5:] == ["kill"])
