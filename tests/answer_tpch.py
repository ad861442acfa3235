"""Answer TPC-H queries in a process of its own, which a Connect client or a second driver needs: `URL CATALOG OUTPUT [kill]`.

Each answer is written as an Arrow file. With `kill`, only some queries are asked, and an executor dies in the middle of each.
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
from benchmarks.tpch.queries import NUMBERS, query

SCALE = "0.1"
INTERRUPTED = (3, 9, 18)


def main(url: str, catalog: str, output: str, kill: bool) -> None:
    with nearly.connect(url, path=catalog) as db:
        for name, path in ensure_tables(SCALE).items():
            db.register(name, path)
        for number in INTERRUPTED if kill else NUMBERS:
            killer = threading.Timer(0.4, kill_one_executor) if kill else None
            if killer:
                killer.start()
            answer = db.sql(query(number, SCALE), kernel="native").exact()
            if killer:
                killer.join()
            assert answer.source == "native", answer.source
            with pa.OSFile(str(Path(output) / f"{number}.arrow"), "wb") as sink, pa.ipc.new_file(sink, answer.table.schema) as file:
                file.write_table(answer.table)
        print(f"sites: {db._engine.cluster.sites}")


def kill_one_executor() -> None:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command:
            print(f"killing executor {process.name}", flush=True)
            os.kill(int(process.name), signal.SIGKILL)
            return


if __name__ == "__main__":
    main(*sys.argv[1:4], kill=sys.argv[4:] == ["kill"])
