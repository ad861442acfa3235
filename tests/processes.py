"""Real Spark processes on loopback for the tests: a standalone master with workers, and a Connect server."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from nearly.engine.java import ensure_java

SPARK_HOME = Path(pyspark.__file__).parent
HUNG = 900
"""Seconds after which a process is taken for hung; a machine that is busy with other work can be slow."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment() -> dict[str, str]:
    """What the processes need to find Java, this Python and this project."""
    root = Path(__file__).resolve().parents[1]
    paths = [str(root / "src"), str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "JAVA_HOME": str(ensure_java()),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),
        "SPARK_NO_DAEMONIZE": "1",
    }


def _start(log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-class"), *arguments],
            stdout=output, stderr=subprocess.STDOUT, env=environment(), start_new_session=True,
        )  # fmt: skip


def _await(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + HUNG
    while time.monotonic() < deadline and process.poll() is None:
        if re.search(pattern, log.read_text(errors="replace")):
            return
        time.sleep(0.2)
    raise RuntimeError(f"{log.name} did not start:\n{log.read_text(errors='replace')[-2000:]}")


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in reversed(processes):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def standalone_cluster(directory: Path, workers: int = 2) -> Iterator[str]:
    """A master and workers of one core each, in processes of their own; gives the master's URL."""
    port = free_port()
    processes = []
    try:
        log = directory / "master.log"
        master = _start(
            log, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"
        )
        processes.append(master)
        _await(log, "I have been elected leader|New state: ALIVE", master)
        for number in range(workers):
            log = directory / f"worker-{number}.log"
            worker = _start(
                log, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g",
                "--webui-port", "0", "--work-dir", str(directory / f"work-{number}"), f"spark://127.0.0.1:{port}",
            )  # fmt: skip
            processes.append(worker)
            _await(log, "Successfully registered with master", worker)
        yield f"spark://127.0.0.1:{port}"
    finally:
        _stop(processes)


@contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    """A Spark Connect server; gives its URL."""
    port = free_port()
    log = directory / "connect.log"
    server = _start(
        log, "org.apache.spark.deploy.SparkSubmit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--master", "local[2]", "--conf", f"spark.connect.grpc.binding.port={port}",
        "--conf", "spark.driver.bindAddress=127.0.0.1", "--conf", "spark.driver.host=127.0.0.1",
        "--conf", "spark.ui.enabled=false", "--conf", f"spark.sql.warehouse.dir={directory / 'warehouse'}",
        "--conf", "spark.sql.session.timeZone=UTC", "spark-internal",
    )  # fmt: skip
    try:
        _await(log, "Spark Connect server started", server)
        yield f"sc://127.0.0.1:{port}"
    finally:
        _stop([server])
