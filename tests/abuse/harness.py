"""`OPERATION FAULT [POINT ...]`: disturb an operation at its n-th write, for every n until it passes undisturbed, or for some.

Every act and every look afterwards is a process of its own, forked from this one, which has everything imported and nothing open.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

from faults import KILL, Faults
from operations import OPERATIONS, Operation, drafts, session
from without_spark import replace_spark

import nearly  # noqa: F401  imported before the first fork
from nearly.errors import NearlyError

PASSED, REFUSED, FAILED = 0, 3, 1
FULL = "full-disk"
"""Files may not grow beyond some bytes, from the start."""
SIZES = (0, 100, 3_000)
SECONDS = 60.0
MOST = 400


def in_a_child(work: Callable[[], int]) -> int:
    """The exit code of some work in a process of its own; a negative one is the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            code = work()
        except BaseException:  # noqa: BLE001  shown, and told by the exit code
            traceback.print_exc()
            code = FAILED
        sys.stderr.flush()
        os._exit(code)
    until = time.monotonic() + SECONDS
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(child, signal.SIGABRT)
            os.waitpid(child, 0)
            raise TimeoutError("a process hangs")
        time.sleep(0.005)


def begin(operation: Operation, home: Path) -> int:
    with session(home) as db:
        operation.begin(home, db)
    return PASSED


def act(operation: Operation, home: Path, fault: str, point: int) -> int:
    """The act and the end of its session under faults; an error on purpose is fine, any other is not."""
    faults = Faults(home / "catalog", fault, point)
    try:
        with session(home) as db:
            faults.armed = True
            operation.act(home, db)
    except NearlyError:
        return REFUSED
    return REFUSED if faults.hit else PASSED


def act_on_a_full_disk(operation: Operation, home: Path, size: int) -> int:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with session(home) as db:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            operation.act(home, db)
        except NearlyError:
            return REFUSED
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    return PASSED


def look(operation: Operation, home: Path) -> int:
    """A fresh session finds an allowed state; the act, done again, leads to the last one, and nothing else is left."""
    with session(home) as db:
        found = operation.state(db)
        assert found in operation.allowed, f"found {found}, allowed are {operation.allowed}"
        operation.act(home, db)
        found = operation.state(db)
        assert found == operation.allowed[-1], f"after the act again: {found}"
    with session(home) as db:
        assert operation.state(db) == operation.allowed[-1]
    assert drafts(home) == [], drafts(home)
    return PASSED


def disturbed(operation: Operation, fault: str, points: list[int]) -> Iterator[tuple[int, int]]:
    """What became of the act at each point."""
    with tempfile.TemporaryDirectory() as directory:
        home, fresh = Path(directory, "home"), Path(directory, "fresh")
        home.mkdir()
        assert in_a_child(partial(begin, operation, home)) == PASSED
        shutil.copytree(home, fresh)
        for point in points or (SIZES if fault == FULL else count(1)):
            shutil.rmtree(home)
            shutil.copytree(fresh, home)  # times of change are part of what a table is; they are copied, too
            work = partial(act_on_a_full_disk, size=point) if fault == FULL else partial(act, fault=fault, point=point)
            code = in_a_child(partial(work, operation, home))
            yield point, code
            assert in_a_child(partial(look, operation, home)) == PASSED, f"{fault} at {point}"
            if code == PASSED and fault != FULL:
                return
            assert points or fault == FULL or point < MOST, "the act never passes"


def main(name: str, fault: str, points: list[int]) -> None:
    replace_spark()
    wanted = {PASSED, -signal.SIGKILL} if fault == KILL else {PASSED, REFUSED}
    codes = []
    for point, code in disturbed(OPERATIONS[name], fault, points):
        assert code in wanted, f"{name}, {fault} at {point}: ended with {code}"
        codes.append(code)
    hit = sum(code != PASSED for code in codes)
    sys.stdout.write(f"{name}: {fault} at {hit} of {len(codes)} points\n")
    assert hit or fault == FULL, "nothing was disturbed"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], [int(each) for each in sys.argv[3:]])
