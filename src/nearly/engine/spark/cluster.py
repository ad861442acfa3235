"""The Spark that nearly runs on: started, joined or handed in, and never changed beyond a session of its own.

All work goes through a child session, so that views and settings of nearly do not show up in the session it was given.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from nearly.engine import spark_names
from nearly.engine.native.engine import warm
from nearly.engine.native.running import Ending
from nearly.engine.spark.process import ANSI, TIME_ZONE, SparkProcess, check_master, claimed, remote_session
from nearly.errors import CLOSED, EngineError, SchemaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

PROBE_TASKS_PER_CORE = 8
WARM_UP = "nearly-warm-up"
WARM_SECONDS = 45.0
"""Spark lets Python workers go that nobody needed for a minute."""

READING = {
    "spark.sql.variable.substitute": "false",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "false",
}
"""Spark must read a query as it was checked: no variables put in, no paths as tables, one way of quoting."""

GetSpark: TypeAlias = "Callable[[], SparkSession]"
"""For work that may need Spark: who asks for the session waits until it is there."""


@dataclass(frozen=True, slots=True)
class Sites:
    """Where tasks run: `executors` processes with `cores` task slots each. One fat task per executor uses all its cores."""

    executors: int
    cores: int

    def __post_init__(self) -> None:
        if self.executors < 1 or self.cores < 1:
            raise SchemaError(f"executors={self.executors}, cores={self.cores}: both must be at least 1")


class Cluster:
    """A Spark to run jobs on, which may still be starting, and what is known of its executors.

    `given` is the session as it came, for reading the user's own views and frames; `spark` is the one nearly works in. Who asks for
    one of them waits for Spark.
    """

    def __init__(
        self, source: SparkProcess | SparkSession, *, sites: Sites | None = None, lazy: bool = False, owned: bool = False
    ) -> None:
        self._source = source
        self._owned = owned
        self._over = False
        self._tag = f"nearly-{uuid.uuid4().hex[:12]}"
        self._lock = threading.Lock()
        self._sites = sites or (sites_of_master(source.url) if isinstance(source, SparkProcess) else None)
        self._child: SparkSession | None = None
        self._sites_known = threading.Event()
        if self._sites is not None:
            self._sites_known.set()
        self._warm_up = None if lazy else threading.Thread(target=self._start_workers, name=WARM_UP, daemon=True)
        if self._warm_up is not None:
            spark_names.load()  # here, not in the thread: whoever called may import modules of PySpark meanwhile
            self._warm_up.start()

    @property
    def is_up(self) -> bool:
        """Whether Spark is there: on one machine the driver need not wait for it."""
        return not isinstance(self._source, SparkProcess) or self._source.is_up

    @property
    def given(self) -> SparkSession:
        self._refuse_over()
        session = self._source.session if isinstance(self._source, SparkProcess) else self._source
        self._refuse_over()  # one that was being started is stopped again
        return session

    @property
    def spark(self) -> SparkSession:
        with self._lock:
            self._refuse_over()
            if self._child is None:
                self._child = child_session(self.given)
            return self._child

    @contextlib.contextmanager
    def job(self, ending: Ending) -> Iterator[SparkSession]:
        """The session, for a job that is broken off when the cluster is closed, or at the end of its query."""
        spark = self.spark
        tags = (self._tag, ending.tag)
        for tag in tags:
            spark.addTag(tag)
        try:
            with ending.breaking(lambda: spark.interruptTag(ending.tag)):
                yield spark
        finally:
            with contextlib.suppress(*spark_names.troubles(), OSError):  # Spark may have been stopped meanwhile
                for tag in tags:
                    spark.removeTag(tag)

    def _refuse_over(self) -> None:
        if self._over:
            raise EngineError(CLOSED)

    @property
    def sites(self) -> Sites:
        """The executors, counted by the warm-up job when they were not told."""
        if isinstance(self._source, SparkProcess) and self._source.trouble is not None:
            raise self._source.trouble
        if not self._sites_known.is_set() and self._warm_up is None:
            self._start_workers()
        self._sites_known.wait()
        return self._sites or Sites(1, os.cpu_count() or 1)

    @property
    def time_zone(self) -> str:
        return self._setting(TIME_ZONE)

    def knows(self, name: str) -> bool:
        """Whether the session that was given has a table or a temporary view of this name; one that nearly starts has none."""
        if isinstance(self._source, SparkProcess):
            return False
        with contextlib.suppress(*spark_names.troubles()):
            return bool(self.given.catalog.tableExists(name))
        return False

    @property
    def foreseen_time_zone(self) -> str | None:
        """The time zone of a Spark that has no settings but nearly's and the machine's; None where others may have set some."""
        return self._source.foreseen.get(TIME_ZONE) if isinstance(self._source, SparkProcess) else None

    @property
    def ansi(self) -> bool:
        return self._setting(ANSI).lower() == "true"

    def _setting(self, key: str) -> str:
        foreseen = self._source.foreseen.get(key) if isinstance(self._source, SparkProcess) and not self._source.is_up else None
        return str(self.spark.conf.get(key)) if foreseen is None else foreseen

    def refuse_more(self) -> None:
        """Break off the jobs that run; from now on who asks for Spark gets an error, and none is started."""
        self._over = True
        child = self._child
        if child is not None and self.is_up:
            with contextlib.suppress(RuntimeError, *spark_names.troubles(), OSError):  # it may have been stopped by its owner
                child.interruptTag(self._tag)
                if self._warm_up is not None:
                    child.interruptTag(WARM_UP)
                    self._warm_up.join(timeout=30)

    def close(self) -> None:
        """Stop what was started here; a session that was handed in goes on."""
        self.refuse_more()
        with contextlib.ExitStack() as parts:
            if isinstance(self._source, SparkProcess):
                parts.callback(self._source.release)
            elif self._owned:
                parts.callback(release_session, self._source)
            if self._child is not None and is_connect(self._child):
                parts.callback(release_session, self._child)

    def _start_workers(self) -> None:
        """Start Python workers and load the native engine into them before the first query; count executors on the way.

        Where the master tells the executors, nobody waits for that, and workers that another session has just started will do.
        """
        try:
            self._sites = self._sites or sites_of_master(str(self.spark.conf.get("spark.master", "")))
            if self._sites is not None:
                self._sites_known.set()
                if _is_warm(self.spark):
                    return
            self.spark.addTag(WARM_UP)
            probed = probe(self.spark, self._sites.cores if self._sites else 2)
            _warmed[_application(self.spark)] = time.monotonic()
        except Exception as trouble:  # noqa: BLE001  whoever needs Spark is told
            logger.info("warm-up failed: %s", trouble)
            probed = None
        self._sites = self._sites or probed
        self._sites_known.set()


_warmed: dict[str, float] = {}
"""By Spark application, when its Python workers were started last."""


def _application(spark: SparkSession) -> str:
    """Its identifier; empty where Spark does not tell."""
    return str(spark.conf.get("spark.app.id", ""))


def _is_warm(spark: SparkSession) -> bool:
    application = _application(spark)
    return application != "" and time.monotonic() - _warmed.get(application, float("-inf")) < WARM_SECONDS


def open_cluster(where: Any, sites: Sites | None, *, lazy: bool = False, log: Path | None = None) -> Cluster:
    """A cluster from a SparkSession, a master URL, a Connect URL, or None for an embedded local Spark.

    An embedded Spark starts in the background, or only when it is needed (`lazy`); any other must be there when this returns.
    """
    if where is None or isinstance(where, str):
        return _cluster_at(where, sites, lazy, log)
    if hasattr(where, "sql") and hasattr(where, "conf"):
        return Cluster(where, sites=sites)
    raise SchemaError(f"connect() takes a SparkSession, a master URL or a Connect URL, not {type(where).__name__}")


def _cluster_at(url: str | None, sites: Sites | None, lazy: bool, log: Path | None) -> Cluster:
    if url is not None and url.startswith("sc://"):
        return Cluster(remote_session(url), sites=sites, owned=True)
    if url is not None:
        check_master(url)
    source = claimed(url, log)
    if isinstance(source, SparkProcess) and sites_of_master(source.url) is None:
        try:
            _ = source.session
        except BaseException:
            source.release()
            raise
    return Cluster(source, sites=sites, lazy=lazy)


def is_connect(spark: SparkSession) -> bool:
    """Whether this is a Connect session."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def release_session(spark: Any) -> None:
    """Give a Connect session back to its server, and nothing else.

    Its `stop` would also end a Connect server that runs in this process, which serves the user's own sessions, too.
    """
    kind = type(spark)
    if kind._default_session is spark:
        kind._default_session = None
    if getattr(kind._active_session, "session", None) is spark:
        kind._active_session.session = None
    with contextlib.suppress(Exception):  # a server that is gone has forgotten the session already
        spark.client.release_session()
        spark.client.close()


def child_session(spark: SparkSession) -> SparkSession:
    """A session with the same settings whose views and settings are its own; how it reads text is settled in `READING`."""
    child: SparkSession = spark.newSession()
    settings = dict(spark.conf.getAll)
    for key, value in settings.items():
        if key.startswith("spark.sql.") and child.conf.get(key, None) != value:
            with contextlib.suppress(spark_names.PySparkException):
                child.conf.set(key, value)
    for key, value in READING.items():
        child.conf.set(key, value)
    return child


def sites_of_master(master: str) -> Sites | None:
    """In local mode the master says it all: one process with so many slots."""
    match = re.match(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?$", master)
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
