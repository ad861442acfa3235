"""The wheel, in an environment that has nothing but it and what it says it needs.

The packages it needs are those of the environment of the tests, linked one by one as the wheel's metadata names them: what that
forgets is missing here, and nothing is fetched.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.fixtures.terminals import on_terminal
from tests.processes import HUNG

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing of an earlier build gets in."""
    copy, out = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", out, copy]
    subprocess.run(command, check=True, capture_output=True, timeout=HUNG)
    (found,) = out.glob("nearly-*.whl")
    return found


@pytest.fixture(scope="module")
def commands(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the commands of a new environment with the wheel and its extra `serve`."""
    home = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True, timeout=HUNG)
    python = home / "bin" / "python"
    asked = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel]
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # where pip would find the project itself
    subprocess.run(asked, check=True, capture_output=True, timeout=HUNG, env=alone)
    (site,) = home.glob("lib/python*/site-packages")
    for package in needed(Requirement("nearly[serve]"), site):
        link(package, site)
    return home / "bin"


def needed(root: Requirement, site: Path) -> list[Distribution]:
    """All that a requirement needs, by the metadata of the wheel and of what is installed; without itself."""
    found: dict[str, Distribution] = {}
    waiting = _requirements(next(iter(Distribution.discover(name=root.name, path=[str(site)]))), root)
    while waiting:
        each = waiting.pop()
        if each.name.lower() in found:
            continue
        try:
            found[each.name.lower()] = distribution(each.name)
        except PackageNotFoundError:
            pytest.skip(f"the environment of the tests lacks {each.name}, which the wheel needs")
        waiting += _requirements(found[each.name.lower()], each)
    return list(found.values())


def _requirements(of: Distribution, asked: Requirement) -> list[Requirement]:
    extras = ["", *asked.extras]
    every = [Requirement(text) for text in of.requires or ()]
    return [each for each in every if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)]


def link(package: Distribution, site: Path) -> None:
    """Put the files and directories of a package into an environment."""
    for name in {file.parts[0] for file in package.files or () if file.parts[0] != ".."}:
        here = site / name
        if not here.exists():
            here.symlink_to(Path(str(package.locate_file(name))))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "rides.csv").write_text("city,fare\nRome,3.5\nOslo,4\nRome,1\n")
    return tmp_path


def settings(place: Path) -> dict[str, str]:
    """Of a user who has neither this project nor Java."""
    return {"HOME": str(place), "PATH": "/usr/bin:/bin", "JAVA_HOME": str(place / "none"), "LANG": "C.UTF-8"}


def run(commands: Path, place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    asked = [commands / "nearly", *arguments]
    return subprocess.run(asked, cwd=place, env=settings(place), capture_output=True, text=True, timeout=HUNG, check=False)


def test_the_files_of_the_page_and_the_types_are_in_it(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "nearly/py.typed" in names
    static = ROOT / "src" / "nearly" / "web" / "static"
    assert {f"nearly/web/static/{file.name}" for file in static.iterdir()} <= names
    assert not [name for name in names if not name.startswith(("nearly/", "nearly-"))]


def test_the_wheel_is_what_is_imported(commands: Path, place: Path) -> None:
    script = "import nearly, sys; print(nearly.__file__); sys.exit('pytest' in sys.modules)"
    done = subprocess.run(
        [commands / "python", "-c", script], cwd=place, env=settings(place), capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()).is_relative_to(commands.parent)


def test_version(commands: Path, place: Path) -> None:
    done = run(commands, place, "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("nearly ")
    assert "missing" not in done.stdout


def test_a_query_over_a_csv_file(commands: Path, place: Path) -> None:
    query = "select city, sum(fare) as s from 'rides.csv' group by city order by city"
    done = run(commands, place, "sql", query, "--format", "csv")
    assert (done.returncode, done.stdout, done.stderr) == (0, '"city","s"\n"Oslo",4\n"Rome",4.5\n', "")


def test_the_shell_on_a_terminal(commands: Path, place: Path) -> None:
    steps = [
        ("nearly>", ".mode markdown\r"),
        ("nearly>", "select max(fare) as m from rides;\r"),
        ("| 4 |", ""),
        ("nearly>", "\x04"),
    ]
    done = on_terminal([commands / "nearly", "--data", place], settings(place), steps, directory=place)
    assert (done.left, done.code) == ([], 0), done.output[-2000:]


@pytest.fixture
def page(commands: Path, place: Path) -> Iterator[str]:
    """The address that `nearly serve` prints."""
    asked = [commands / "nearly", "serve", "--data", place, "--port", "0", "--pg-port", "0"]
    server = subprocess.Popen(asked, cwd=place, env=settings(place), stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().split()[1]
    finally:
        server.terminate()
        assert server.wait(timeout=60) == 0


def test_a_server_answers(page: str) -> None:
    base, _, token = page.partition("?token=")
    visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())  # the token becomes a cookie
    with visitor.open(page, timeout=60) as reply:
        assert b"<title>nearly</title>" in reply.read()
    body = json.dumps({"sql": "select count(*) as n from rides"}).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{base}api/query", body, headers), timeout=60) as reply:
        answer = json.load(reply)
    assert answer["columns"][0]["values"] == [3]
    assert answer["exact"]
