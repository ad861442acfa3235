"""`./run` works from anywhere, says what is missing, sets up once, and repairs what was interrupted.

The set-up itself runs here with a stand-in for Python that records what it is asked to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import HUNG

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("cat", "cksum", "dirname", "grep", "rm", "sed", "sh", "sleep", "mkdir", "cp", "chmod")

STAND_IN = """#!/bin/sh
case "$*" in
    *nearly.engine.java*) echo /some/java ;;
    "-c "*) exec '{real}' "$@" ;;
    *"-m venv"*)
        echo venv >>'{log}'
        for directory; do :; done
        rm -rf "$directory"
        mkdir -p "$directory/bin"
        cp "$0" "$directory/bin/python" ;;
    *"--require-hashes"*) echo dependencies >>'{log}'; sleep 1; exit $(cat '{exit_code}') ;;
    *"--editable"*) echo project >>'{log}' ;;
    *"pytest --quiet"*) echo "tests $*" >>'{log}' ;;
    *pytest*) echo "pytest $JAVA_HOME" >>'{log}' ;;
    --version) echo "Python 3.11.0" ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project's set-up files in a directory with a space in its name."""
    copy = tmp_path / "a project"
    copy.mkdir()
    for name in ("run", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A PATH with plain commands only, and no Python."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in COMMANDS:
        (directory / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    return directory


@pytest.fixture
def log(tmp_path: Path, commands: Path) -> Path:
    """Puts the stand-in on the PATH as python3; the file it writes its log to."""
    written, exit_code = tmp_path / "log", tmp_path / "exit"
    exit_code.write_text("0")
    text = STAND_IN.replace("{real}", sys.executable).replace("{log}", str(written))
    _script(commands / "python3", text.replace("{exit_code}", str(exit_code)))
    return written


def test_help_works_from_another_directory(tmp_path: Path) -> None:
    done = subprocess.run([ROOT / "run", "help"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    for verb in ("demo", "test", "lint", "bench", "help"):
        assert f"\n  {verb}" in done.stdout


def test_an_unknown_verb_is_refused(project: Path, commands: Path) -> None:
    done = _run(project, commands, "tset")
    assert done.returncode == 2
    assert "unknown verb 'tset'" in done.stderr


def test_an_unknown_benchmark_is_refused_before_any_set_up(project: Path, commands: Path) -> None:
    done = _run(project, commands, "bench", "nonsense")
    assert done.returncode == 2
    assert "no benchmark 'nonsense'" in done.stderr


def test_no_python_says_which_one_to_install(project: Path, commands: Path) -> None:
    done = _run(project, commands, "test")
    assert done.returncode == 2
    assert "Python 3.11 or newer is needed" in done.stderr


def test_an_old_python_counts_as_none(project: Path, commands: Path) -> None:
    _script(commands / "python3", "#!/bin/sh\nexit 1\n")
    done = _run(project, commands, "test")
    assert done.returncode == 2
    assert "Python 3.11 or newer is needed" in done.stderr


def test_a_python_without_venv_says_which_package_to_install(project: Path, commands: Path) -> None:
    _script(
        commands / "python3",
        '#!/bin/sh\ncase "$*" in *ensurepip*) exit 1 ;; *print*) echo 3.11 ;; esac\n',
    )
    done = _run(project, commands, "test")
    assert done.returncode == 2
    assert "apt install python3.11-venv" in done.stderr


def test_the_second_time_sets_nothing_up(project: Path, commands: Path, log: Path) -> None:
    for _ in range(2):
        assert _run(project, commands, "test", "-q").returncode == 0
    once = ["venv", "dependencies", "project"]
    assert log.read_text().splitlines() == [*once, "pytest /some/java", "pytest /some/java"]


@pytest.mark.parametrize("more", [(), ("--all",)])
def test_all_is_the_whole_command_with_the_long_tests(project: Path, commands: Path, log: Path, more: tuple[str, ...]) -> None:
    """Both lint and then test; the linters are not there, so they fail, and the tests run nevertheless."""
    done = _run(project, commands, "test", *more)
    assert done.returncode == 1
    assert "FAILED: ruff-check" in done.stderr
    tests = log.read_text().splitlines()[-1].split()
    assert tests[0] == "tests"
    assert ("--all" in tests) == ("--all" in more)


def test_a_changed_lock_file_sets_up_again(project: Path, commands: Path, log: Path) -> None:
    _run(project, commands, "test", "-q")
    with project.joinpath("requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    _run(project, commands, "test", "-q")
    assert log.read_text().count("dependencies") == 2


def test_a_moved_project_sets_up_again(project: Path, commands: Path, log: Path) -> None:
    _run(project, commands, "test", "-q")
    moved = project.rename(project.with_name("elsewhere"))
    _run(moved, commands, "test", "-q")
    assert log.read_text().count("dependencies") == 2


def test_an_interrupted_set_up_is_repaired(project: Path, commands: Path, log: Path) -> None:
    log.with_name("exit").write_text("1")
    failed = _run(project, commands, "test", "-q")
    assert failed.returncode == 2
    assert "could not be installed" in failed.stderr
    log.with_name("exit").write_text("0")
    assert _run(project, commands, "test", "-q").returncode == 0
    assert log.read_text().splitlines()[-1] == "pytest /some/java"


def test_two_at_once_set_up_once(project: Path, commands: Path, log: Path) -> None:
    both = [subprocess.Popen([project / "run", "test", "-q"], env=_environment(commands)) for _ in range(2)]
    assert [each.wait(timeout=HUNG) for each in both] == [0, 0]
    assert log.read_text().count("dependencies") == 1
    assert log.read_text().count("pytest") == 2


def test_a_browser_is_installed_where_that_is_allowed(project: Path, commands: Path, log: Path) -> None:
    """And its absence is said elsewhere; an installation that fails stops no test."""
    installed = log.with_name("installed")
    _script(commands / "apt-get", f"#!/bin/sh\necho \"$@\" >>'{installed}'\nexit 1\n")
    done = _run(project, commands, "test")
    assert installed.exists() == os.access("/var/lib/dpkg", os.W_OK)
    assert "the tests of the page are skipped" in done.stderr
    assert log.read_text().splitlines()[-1].startswith("tests ")
    installed.unlink(missing_ok=True)
    _script(commands / "chromedriver", "#!/bin/sh\n")
    assert "the tests of the page" not in _run(project, commands, "test").stderr
    assert not installed.exists()


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _environment(commands: Path) -> dict[str, str]:
    return {"PATH": str(commands), "LANG": os.environ.get("LANG", "C")}


def _run(project: Path, commands: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [project / "run", *arguments],
        env=_environment(commands),
        capture_output=True,
        text=True,
        timeout=HUNG,
        check=False,
    )
