"""The Spark that this process starts itself: once, if need be in the background, shared, and stopped by the last who uses it."""

from __future__ import annotations

import os
import re
import sys
import threading
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearly.engine import spark_names
from nearly.engine.java import ensure_java
from nearly.errors import CLOSED, EngineError, SchemaError

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

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

TIME_ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
LAST_LINES = 8


class SparkProcess:
    """A Spark session that may still be starting. Those who claim it release it once; the last of them stops it."""

    def __init__(self, url: str, log: Path | None = None) -> None:
        self.url = url
        self.users = 0
        self.foreseen = foreseen_settings(url)
        """Settings that are known before Spark is there."""
        self._log = log
        self._session: Future[SparkSession] = Future()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Have it started, in a thread of its own; nobody would stop it who has released it."""
        with _lock:
            if self._thread is None:
                if not self.users:
                    raise EngineError(CLOSED)
                spark_names.load()
                self._thread = threading.Thread(target=self._start, name="nearly-spark", daemon=True)
                self._thread.start()

    @property
    def session(self) -> SparkSession:
        """The session, as soon as it is there."""
        self.begin()
        return self._session.result()

    @property
    def is_up(self) -> bool:
        return self._session.done() and self._session.exception() is None

    @property
    def trouble(self) -> BaseException | None:
        """Why it could not be started, if that is known."""
        return self._session.exception() if self._session.done() else None

    def release(self) -> None:
        """Stop Spark when nobody else uses it; one that is still starting is stopped when it is there."""
        global _current  # noqa: PLW0603  a process has one Spark
        with _lock:
            self.users -= 1
            if self._thread is None:
                if self.users == 0 and _current is self:
                    _current = None
                return
        self._session.add_done_callback(self._stop_unused)

    def _start(self) -> None:
        try:
            session = _from_url(self.url, self.foreseen, self._log)
        except BaseException as trouble:  # noqa: BLE001  raised where the session is asked for
            self._session.set_exception(trouble)
        else:
            self._session.set_result(session)

    def _stop_unused(self, started: Future[SparkSession]) -> None:
        global _current  # noqa: PLW0603  a process has one Spark
        with _lock:
            if self.users == 0 and _current is self:
                _current = None
                if started.exception() is None:
                    started.result().stop()


_current: SparkProcess | None = None
"""The Spark that was started here and not stopped yet."""
_lock = threading.RLock()


def claimed(url: str | None, log: Path | None) -> SparkProcess | SparkSession:
    """The Spark for a master, which is released after use; or the session that the user runs in this process already.

    A process has one Spark, so that one which runs, or starts, is shared.
    """
    global _current  # noqa: PLW0603  a process has one Spark
    with _lock:
        if _current is not None and (_current.trouble is not None or _was_stopped(_current)):
            _current = None
        if _current is None:
            running = _running()
            if running is not None:
                _refuse_other_master(str(running.conf.get("spark.master", "")), url)
                return running
            _current = SparkProcess(url or f"local[{os.cpu_count() or 1}]", log)
        _refuse_other_master(_current.url, url)
        _current.users += 1
        return _current


def session_of_this_process() -> SparkSession | None:
    """The session that was started here, as soon as it is there, or that the user runs."""
    known = _current
    return _running() if known is None or known.trouble is not None else known.session


def remote_session(url: str) -> SparkSession:
    """A Connect session of its own."""
    return _started(lambda: spark_names.SparkSession.builder.remote(url).create(), url, None)


def _was_stopped(known: SparkProcess) -> bool:
    """Whether the user has stopped this Spark, and perhaps started another."""
    if not known.is_up:
        return False
    running = _running()
    return running is None or running.conf.get("spark.app.id", None) != known.session.conf.get("spark.app.id", None)


def _running() -> SparkSession | None:
    if "pyspark.sql" not in sys.modules:  # then nobody runs one
        return None
    try:
        return spark_names.SparkSession.active()
    except spark_names.PySparkException:
        return None


def _refuse_other_master(master: str, url: str | None) -> None:
    if url is not None and master != url:
        raise EngineError(f"this process runs Spark on {master} already; stop that session, or pass it to connect(spark)")


def check_master(url: str) -> None:
    """Refuse what is no master of Spark's."""
    if not re.match(r"(local(\[.*\])?|spark://.*|k8s://.*|yarn)$", url):
        raise SchemaError(f"{url!r} is neither a Spark master (local[*], spark://host:port, yarn) nor a Connect URL (sc://host)")


def _from_url(url: str, foreseen: dict[str, str], log: Path | None) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    ensure_java()
    settings = QUIET | foreseen | (LOOPBACK if re.match(r"local|spark://(127\.|localhost)", url) else {})
    conf = spark_names.SparkConf().setMaster(url).setAppName("nearly").setAll(list(settings.items()))
    return _started(lambda: _with_log(conf, log), f"Spark on {url}", log)


def _with_log(conf: SparkConf, log: Path | None) -> SparkSession:
    """Start Spark; what Java writes to standard error goes to the log where there is one."""
    if log is not None:
        with log.open("ab") as file:
            launch: Any = spark_names.launch_gateway
            spark_names.SparkContext(conf=conf, gateway=launch(conf, {"stderr": file}))
    return spark_names.SparkSession.builder.config(conf=conf).getOrCreate()


def _started(start: Any, what: str, log: Path | None) -> SparkSession:
    try:
        session: SparkSession = start()
    except Exception as trouble:
        said = "" if log is None or not log.exists() else "\n".join(log.read_text(errors="replace").splitlines()[-LAST_LINES:])
        raise EngineError(f"cannot reach or start {what}: {trouble}{said and f'; Java said: {said}'}") from trouble
    return session


def foreseen_settings(url: str) -> dict[str, str]:
    """The settings of a local Spark that answers depend on, where nothing but nearly and the machine decides them.

    They are then given to Spark, so that both agree; where a file or an argument of Spark's may say otherwise there are none.
    """
    zone = local_time_zone()
    if not url.startswith("local") or zone is None or _is_configured():
        return {}
    return {TIME_ZONE: zone, ANSI: "false" if os.environ.get("SPARK_ANSI_SQL_MODE", "").lower() == "false" else "true"}


def _is_configured() -> bool:
    """Whether somebody has written settings for Spark on this machine."""
    found = find_spec("pyspark")
    homes = [os.environ.get("SPARK_HOME"), *(found.submodule_search_locations or () if found is not None else ())]
    places = [os.environ.get("SPARK_CONF_DIR"), *(f"{home}/conf" for home in homes if home)]
    files = any(Path(place, "spark-defaults.conf").exists() for place in places if place)
    options = " ".join(os.environ.get(name, "") for name in ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"))
    return files or "PYSPARK_SUBMIT_ARGS" in os.environ or "user.timezone" in options


def local_time_zone(link: Path = Path("/etc/localtime")) -> str | None:
    """The name of this machine's time zone, as Java finds it; None where that cannot be told for sure."""
    given = os.environ.get("TZ")
    if given is not None:
        return given if re.fullmatch(r"UTC|GMT|[A-Z][A-Za-z_]+/[A-Za-z_/+\-0-9]+", given) else None
    if not link.exists():
        return "UTC"
    found = re.search(r"/zoneinfo/(?:posix/)?(.+)$", os.path.realpath(link)) if link.is_symlink() else None
    return found[1] if found else None
