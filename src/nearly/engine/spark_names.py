"""PySpark's names, each imported when it is used first: a query that needs no Spark does not wait for its import either."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext, cloudpickle
    from pyspark.errors import AnalysisException, PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.logger import PySparkLogger
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.pandas.functions import arrow_udf

__all__ = [
    "AnalysisException", "Py4JError", "PySparkException", "PySparkLogger", "SparkConf", "SparkContext", "SparkSession", "arrow_udf",
    "cloudpickle", "is_data_frame", "launch_gateway", "load", "troubles",
]  # fmt: skip

_HOMES = {
    "Py4JError": "py4j.protocol",
    "SparkConf": "pyspark",
    "SparkContext": "pyspark",
    "cloudpickle": "pyspark",
    "AnalysisException": "pyspark.errors",
    "PySparkException": "pyspark.errors",
    "launch_gateway": "pyspark.java_gateway",
    "PySparkLogger": "pyspark.logger",
    "SparkSession": "pyspark.sql",
    "arrow_udf": "pyspark.sql.pandas.functions",
}


_loading = threading.RLock()


def load() -> None:
    """Import PySpark, in one thread at a time.

    Python lets a thread import a module of a package that another thread is still importing; PySpark's modules import each other
    in circles, and then break. Whoever starts a thread that needs PySpark loads it before.
    """
    with _loading:
        import_module("pyspark.sql")


def __getattr__(name: str) -> Any:
    """What a module of PySpark calls so."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    load()
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def troubles() -> tuple[type[Exception], ...]:
    """What Spark raises: an error of its own, or one of the bridge to its process."""
    names: Any = __getattr__
    return (names("PySparkException"), names("Py4JError"))


def is_data_frame(thing: Any) -> TypeGuard[DataFrame]:
    """Whether this is a DataFrame of Spark's, classic or Connect; nobody has one who has not imported PySpark."""
    return type(thing).__module__.startswith("pyspark.sql.") and hasattr(thing, "toArrow")
