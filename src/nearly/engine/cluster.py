"""The Spark that nearly runs on: started, joined or handed in, and never changed beyond a session of its own.

All work goes through a child session, so that views and settings of nearly do not show up in the session it was given.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from nearly.engine.java import ensure_java
from nearly.engine.worker import warm
from nearly.errors import EngineError, SchemaError

logger = logging.getLogger(__name__)

PROBE_TASKS_PER_CORE = 8
LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""For a Spark on this machine: reachable from nowhere else."""

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "8",
    "spark.log.level": "ERROR",
}
"""Settings of a Spark that nearly starts itself: small, and silent on the terminal."""


@dataclass(frozen=True, slots=True)
class Sites:
    """Where tasks run: `executors` processes with `cores` task slots each. One fat task per executor uses all its cores."""

    executors: int
    cores: int

    def __post_init__(self) -> None:
        if self.executors < 1 or self.cores < 1:
            raise SchemaError(f"executors={self.executors}, cores={self.cores}: both must be at least 1")


class Cluster:
    """A Spark session to run jobs on, and what is known of its executors.

    `given` is the session as it came, for reading the user's own views and frames; `spark` is the one nearly works in.
    """

    def __init__(self, spark: SparkSession, *, owned: bool, sites: Sites | None = None) -> None:
        self.given = spark
        self._owned = owned
        self._sites = sites
        self._sites_known = threading.Event()
        self.spark = child_session(spark)
        if sites is not None:
            self._sites_known.set()
        self._warm_up = threading.Thread(target=self._start_workers, name="nearly-warm-up", daemon=True)
        self._warm_up.start()

    @property
    def sites(self) -> Sites:
        """The executors, counted by the warm-up job when they were not told."""
        self._sites_known.wait()
        return self._sites or Sites(1, os.cpu_count() or 1)

    @property
    def time_zone(self) -> str:
        return str(self.spark.conf.get("spark.sql.session.timeZone"))

    @property
    def ansi(self) -> bool:
        return str(self.spark.conf.get("spark.sql.ansi.enabled", "true")).lower() == "true"

    def close(self) -> None:
        """Stop what was started here; a session that was handed in goes on."""
        with contextlib.suppress(RuntimeError):
            self._warm_up.join(timeout=30)
        if is_connect(self.spark):
            self.spark.stop()
        if self._owned:
            _release(self.given)

    def _start_workers(self) -> None:
        """Start Python workers and load the native engine into them before the first query; count executors on the way.

        Where the master tells the executors, nobody waits for that.
        """
        guess = sites_of_master(self.spark)
        if guess is not None:
            self._sites = self._sites or guess
            self._sites_known.set()
        try:
            probed = probe(self.spark, guess.cores if guess else 2)
        except PySparkException as trouble:
            logger.info("warm-up failed: %s", trouble)
            probed = None
        self._sites = self._sites or probed
        self._sites_known.set()


def open_cluster(where: Any, sites: Sites | None) -> Cluster:
    """A cluster from a SparkSession, a master URL, a Connect URL, or None for an embedded local Spark."""
    if where is None or isinstance(where, str):
        return _started_cluster(where, sites)
    if hasattr(where, "sql") and hasattr(where, "conf"):
        return Cluster(where, owned=False, sites=sites)
    raise SchemaError(f"connect() takes a SparkSession, a master URL or a Connect URL, not {type(where).__name__}")


_users: dict[int, int] = {}
"""How many clusters use each Spark that was started here, by the session's id; the last one to close stops it."""
_users_lock = threading.Lock()


def _started_cluster(url: str | None, sites: Sites | None) -> Cluster:
    """A Spark has one session per process: one that runs already is shared, and stopped only if it was started here."""
    with _users_lock:
        running = None if url is not None and url.startswith("sc://") else _running()
        if running is None:
            session = _from_url(url or f"local[{os.cpu_count() or 1}]")
            _users[id(session)] = 0
        else:
            session = running
            _refuse_other_master(session, url)
        owned = id(session) in _users
        if owned:
            _users[id(session)] += 1
    return Cluster(session, owned=owned, sites=sites)


def _release(session: SparkSession) -> None:
    with _users_lock:
        _users[id(session)] -= 1
        if _users[id(session)] == 0:
            del _users[id(session)]
            session.stop()


def _running() -> SparkSession | None:
    try:
        return SparkSession.active()
    except PySparkException:
        return None


def _refuse_other_master(session: SparkSession, url: str | None) -> None:
    master = str(session.conf.get("spark.master", ""))
    if url is not None and master != url:
        raise EngineError(f"this process runs Spark on {master} already; stop that session, or pass it to connect(spark)")


def _from_url(url: str) -> SparkSession:
    if url.startswith("sc://"):
        return _started(lambda: SparkSession.builder.remote(url).create(), url)
    if not re.match(r"(local(\[.*\])?|spark://.*|k8s://.*|yarn)$", url):
        raise SchemaError(f"{url!r} is neither a Spark master (local[*], spark://host:port, yarn) nor a Connect URL (sc://host)")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    ensure_java()
    builder = SparkSession.builder.master(url).appName("nearly")
    settings = QUIET | (LOOPBACK if re.match(r"local|spark://(127\.|localhost)", url) else {})
    for key, value in settings.items():
        builder = builder.config(key, value)
    return _started(builder.getOrCreate, f"Spark on {url}")


def _started(start: Any, what: str) -> SparkSession:
    try:
        session: SparkSession = start()
    except Exception as trouble:
        raise EngineError(f"cannot reach or start {what}: {trouble}") from trouble
    return session


def is_connect(spark: SparkSession) -> bool:
    """Whether this is a Connect session: stopping it ends the session alone, where a classic one would end all of Spark."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def child_session(spark: SparkSession) -> SparkSession:
    """A session with the same settings whose views and settings are its own."""
    child: SparkSession = spark.newSession()
    settings = dict(spark.conf.getAll)
    for key, value in settings.items():
        if key.startswith("spark.sql.") and child.conf.get(key, None) != value:
            with contextlib.suppress(PySparkException):
                child.conf.set(key, value)
    return child


def sites_of_master(spark: SparkSession) -> Sites | None:
    """In local mode the master says it all: one process with so many slots."""
    match = re.match(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?$", str(spark.conf.get("spark.master", "")))
    if match is None:
        return None
    cores = match.group(1)
    return Sites(1, (os.cpu_count() or 1) if cores == "*" else int(cores or 1))


def probe(spark: SparkSession, cores: int) -> Sites:
    """Count executors and their slots by looking where many short tasks run."""
    count = cores * PROBE_TASKS_PER_CORE
    table = spark.range(0, count, 1, count).mapInArrow(_where_am_i, "executor string, worker string").toArrow()
    pairs = set(zip(table["executor"].to_pylist(), table["worker"].to_pylist(), strict=True))
    executors = {executor for executor, _ in pairs}
    widest = max(sum(1 for executor, _ in pairs if executor == each) for each in executors)
    return Sites(len(executors), widest)


def _where_am_i(batches: Any) -> Any:
    warm()
    for _ in batches:
        time.sleep(0.02)
        place = f"{socket.gethostname()}/{os.getppid()}"
        yield pa.RecordBatch.from_pydict({"executor": [place], "worker": [str(os.getpid())]})
