"""All 22 TPC-H queries equal Spark SQL's answers: both kernels, one site and several, every kind of Spark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nearly
from benchmarks.agreement import difference
from benchmarks.tpch.data import ensure_tables
from benchmarks.tpch.queries import NUMBERS, query
from tests.answer_tpch import SCALE
from tests.fixtures.long import first_quick
from tests.processes import HUNG, connect_server, environment, standalone_cluster

ROOT = Path(__file__).resolve().parents[1]
Expected = dict[int, pa.Table]
Numbers = Sequence[int]


@pytest.fixture(scope="module")
def expected(tpch_expected: Expected) -> Expected:
    return tpch_expected


def _session(spark: Any, path: Path, **sites: int) -> nearly.Session:
    db = nearly.connect(spark, path=path, **sites)
    for name, table in ensure_tables(SCALE).items():
        db.register(name, table)
    return db


@pytest.fixture(scope="module")
def one_site(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    with _session(spark, tmp_path_factory.mktemp("one")) as db:
        yield db


@pytest.fixture(scope="module")
def three_sites(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    with _session(spark, tmp_path_factory.mktemp("three"), executors=3, cores=1) as db:
        yield db


@pytest.mark.parametrize("number", NUMBERS)
def test_one_site(number: int, one_site: nearly.Session, expected: Expected) -> None:
    answer = one_site.sql(query(number, SCALE), kernel="native").exact()
    assert answer.source == "native"
    assert difference(expected[number], answer.table, query(number, SCALE)) is None


@pytest.mark.parametrize("number", first_quick(sorted(NUMBERS, key=lambda number: number % 3), 8))
def test_plans_as_spark_sql(number: int, one_site: nearly.Session, expected: Expected) -> None:
    answer = one_site.sql(query(number, SCALE), kernel="spark").exact()
    assert answer.source == "spark"
    assert difference(expected[number], answer.table, query(number, SCALE)) is None


@pytest.mark.parametrize("number", NUMBERS)
def test_three_sites(number: int, three_sites: nearly.Session, expected: Expected) -> None:
    answer = three_sites.sql(query(number, SCALE), kernel="native").exact()
    assert answer.source == "native"
    assert difference(expected[number], answer.table, query(number, SCALE)) is None


def _answers(url: str, directory: Path, numbers: Numbers, *options: str) -> tuple[Expected, str]:
    """The answers of a process of its own that connects to the URL."""
    output = directory / "answers"
    output.mkdir()
    arguments = [url, str(directory / "catalog"), str(output), ",".join(map(str, numbers)), *options]
    script = [sys.executable, str(ROOT / "tests" / "answer_tpch.py"), *arguments]
    done = subprocess.run(script, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=HUNG, check=False)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    answers = {int(file.stem): pa.ipc.open_file(file.read_bytes()).read_all() for file in output.glob("*.arrow")}
    return answers, done.stdout


def _assert_equal(answers: Expected, expected: Expected, numbers: Numbers) -> None:
    assert set(answers) == set(numbers)
    differences = {number: difference(expected[number], answers[number], query(number, SCALE)) for number in numbers}
    assert not {number: text for number, text in differences.items() if text}


@pytest.mark.long
def test_standalone_cluster(tmp_path: Path, expected: Expected) -> None:
    """A master and two workers in processes of their own."""
    with standalone_cluster(tmp_path) as url:
        answers, printed = _answers(url, tmp_path, NUMBERS)
    assert "executors=2" in printed
    _assert_equal(answers, expected, NUMBERS)


@pytest.mark.long
@pytest.mark.parametrize(("numbers", "how"), [((3, 9, 18), "kill"), ((1, 5), "kill-streaming")], ids=["exact", "progressive"])
def test_killed_executors(numbers: Numbers, how: str, tmp_path: Path, expected: Expected) -> None:
    """An executor of a cluster dies in the middle of each query, and nothing changes in the answers."""
    with standalone_cluster(tmp_path) as url:
        answers, printed = _answers(url, tmp_path, numbers, how)
    assert "executors=2" in printed
    assert printed.count("killing executor") == len(numbers)
    _assert_equal(answers, expected, numbers)


@pytest.mark.parametrize("numbers", first_quick([(1, 13, 18), NUMBERS], 1), ids=["some", "all"])
def test_spark_connect(numbers: Numbers, tmp_path: Path, expected: Expected) -> None:
    with connect_server(tmp_path) as url:
        answers, _ = _answers(url, tmp_path, numbers)
    _assert_equal(answers, expected, numbers)
