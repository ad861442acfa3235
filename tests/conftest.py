"""Fixtures shared by all tests: one Spark session in each worker, started only when a test needs it."""

from __future__ import annotations

import fcntl
import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
"""The tests start many JVMs that run for seconds: code compiled quickly serves them better than code compiled well, and a collector
without threads of its own better than one that wants more cores."""

os.fsync = lambda _: None
"""No test cuts the power, and the system has what a killed process wrote: thousands of waits for the disk would show nothing."""

settings.register_profile("fixed", derandomize=True)
settings.load_profile("fixed")
"""Generated examples are the same in every run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run the long tests as well as the quick ones")


def pytest_configure(config: pytest.Config) -> None:
    """Long tests run where all are asked for, or where `-m` chooses tests by their marks.

    While tests are collected, whatever is made stays: nobody need look for garbage in it.
    """
    gc.disable()
    if not config.getoption("--all") and not config.option.markexpr:
        config.option.markexpr = "not long"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that need Spark come first, and at either end of the order those that have long tests, then those that have many."""
    weights: Counter[Path] = Counter()
    for item in items:
        weights[item.path] += 1000 if item.get_closest_marker("long") else 1
    with_spark = {item.path for item in items if "spark" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: (0, -weights[item.path]) if item.path in with_spark else (1, weights[item.path]))


def pytest_collection_finish() -> None:
    """The tests themselves, and what their modules have imported, stay to the end: no search for garbage need look at them."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """At the end of the process they go like all else."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The first worker takes files from the beginning of the order, others from its end, so that they meet among small files.

    So one worker has most files that need Spark: a second Spark, which takes half a minute to warm up, starts late or never.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FromBothEnds(LoadFileScheduling):
        def _assign_work_unit(self, node: Any) -> None:
            if node is not self.nodes[0]:
                self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
            super()._assign_work_unit(node)

    return FromBothEnds(config, log)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A plain local Spark, the oracle of the tests and the session that is handed to `connect(spark)`."""
    from pyspark.sql import SparkSession

    home: Path = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("nearly-tests")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def run_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that all workers of this test run share, and no other run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def tpch_expected(request: pytest.FixtureRequest, run_directory: Path) -> dict[int, pa.Table]:
    """What Spark SQL itself answers to the TPC-H queries; the first worker that needs it asks Spark, the others read."""
    from benchmarks.tpch.queries import NUMBERS

    directory = run_directory / "tpch_expected"
    directory.mkdir(exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "complete").exists():
            _ask_spark(request.getfixturevalue("spark"), directory)
            (directory / "complete").touch()
    return {number: pa.ipc.open_file(directory.joinpath(f"{number}.arrow").read_bytes()).read_all() for number in NUMBERS}


def _ask_spark(spark: Any, directory: Path) -> None:
    from benchmarks.tpch.data import ensure_tables
    from benchmarks.tpch.queries import NUMBERS, query
    from tests.answer_tpch import SCALE, write

    for name, path in ensure_tables(SCALE).items():
        spark.read.parquet(str(path)).createOrReplaceTempView(name)
    for number in NUMBERS:
        write(spark.sql(query(number, SCALE)).toArrow(), directory / f"{number}.arrow")
