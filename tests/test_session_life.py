"""The life of a session, without Spark: what runs ends with it, nothing begins after it, and a stop is never lost."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.native.engine import Native
from nearly.engine.native.running import Running
from nearly.engine.spark.process import SparkProcess
from nearly.engine.stream import query_logs
from nearly.engine.stream.job import StreamJob
from nearly.engine.stream.result_log import DRIVER, ResultLog
from nearly.engine.stream.task import Pace
from nearly.engine.stream.unit_state import UnitState
from nearly.errors import EngineError
from nearly.progressive.run import Request, Run
from nearly.progressive.user_aggregate import opened, signed
from tests.fixtures.driver_only import driver_only

TEXT = "select k % 50 as g, count(*) as n, sum(v) as v from t group by k % 50"
SLOW = "select count(*) as n from range(3000000) a, range(300000) b where (a.range * b.range) % 7 = 3"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("life") / "t.parquet"
    pq.write_table(pa.table({"k": np.arange(200_000), "v": np.arange(200_000) % 1000}), path, row_group_size=4_000)
    return path


@pytest.fixture
def db(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[nearly.Session]:
    """A session in which starting a Spark is an error."""
    monkeypatch.setattr(SparkProcess, "begin", lambda _: (_ for _ in ()).throw(AssertionError("Spark is started")))
    with driver_only(tmp_path / "catalog", eager=True) as session:
        session.register("t", file)
        yield session


_elsewhere: set[threading.Thread] = set()
"""Threads of sessions that other tests in this process still use."""


@pytest.fixture(autouse=True)
def threads_of_others() -> None:
    _elsewhere.clear()
    _elsewhere.update(threading.enumerate())


def run_in_batches(db: nearly.Session, text: str = TEXT) -> Run:
    """A run of many batches, so that something can happen between them."""
    return Run(db._engine, db._engine.prepare(text), Request(pace=Pace(sizes=(2,) * 20)))


def nothing_left(db: nearly.Session) -> bool:
    """Whether no query has a log, or a thread, any more."""
    directory = db._engine.catalog.path / "queries"
    until = time.monotonic() + 20
    while time.monotonic() < until:
        own = [each.name for each in threading.enumerate() if each not in _elsewhere]
        busy = [name for name in own if name.startswith("nearly-") and "keep" not in name]
        if not busy and not (directory.exists() and any(directory.iterdir())):
            return True
        time.sleep(0.01)
    return False


# --- closing ---------------------------------------------------------------------------------------------------------


def test_law_nothing_answers_after_close(db: nearly.Session) -> None:
    """Whatever was made before: queries that were asked or not, frames, iterations under way."""
    asked, fresh, half = db.sql(TEXT), db.sql(TEXT), run_in_batches(db).answers()
    asked.exact()
    next(half)
    frame = db.table("t").filter("k < 10")
    uses: list[Callable[[], Any]] = [
        asked.exact, asked.run, fresh.exact, fresh.explain, lambda: list(fresh), lambda: next(half), frame.get, frame.get_final,
        lambda: list(frame), lambda: db.sql(TEXT), lambda: db.table("t"), lambda: db.tables, lambda: db.unfinished,
        lambda: db.verify("t"),
    ]  # fmt: skip
    db.close()
    for use in uses:
        with pytest.raises(EngineError, match="session is closed"):
            use()
    assert nothing_left(db)


def test_close_breaks_off_what_runs(db: nearly.Session) -> None:
    troubles: list[Exception] = []

    def ask(work: Callable[[], Any]) -> None:
        try:
            work()
        except Exception as trouble:  # noqa: BLE001  looked at below
            troubles.append(trouble)

    slow = "select max(a.k * b.v) as m from t a join t b on a.v = b.v"
    works: list[Callable[[], Any]] = [db.sql(slow).exact, lambda: list(run_in_batches(db).answers()), db.table("t").get_final]
    threads = [threading.Thread(target=ask, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    db.close()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert [str(trouble) for trouble in troubles if "session is closed" not in str(trouble)] == []
    assert nothing_left(db)


def test_every_part_is_closed_although_one_fails(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    def failing(name: str) -> Callable[[], None]:
        def close() -> None:
            closed.append(name)
            raise EngineError(f"{name} cannot be closed")

        return close

    engine = db._engine
    monkeypatch.setattr(db._synopses, "close", failing("synopses"))
    monkeypatch.setattr(engine.native.samples, "close", failing("samples"))
    monkeypatch.setattr(engine.cluster, "close", failing("cluster"))
    with pytest.raises(EngineError, match="cannot be closed"):
        db.close()
    assert closed == ["synopses", "samples", "cluster"]
    monkeypatch.undo()
    engine.native.samples.close()
    engine.cluster.close()


def test_first_queries_at_once_need_no_spark(db: nearly.Session) -> None:
    """Threads that use a fresh engine at the same time: none of them finds it busy, so none is sent to Spark."""
    sources: list[str] = []
    threads = [threading.Thread(target=lambda: sources.append(db.sql(TEXT).exact().source)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sources == ["native"] * 6


def test_a_forked_child_is_told(db: nearly.Session) -> None:
    """It neither hangs nor ends what is its parent's."""
    query, frame = db.sql(TEXT), db.table("t").filter("k < 10")
    query.exact()
    child = os.fork()
    if child == 0:
        outcome = 0
        for use in (query.exact, query.run, frame.get, lambda: db.sql(TEXT), lambda: db.tables):
            try:
                use()
                outcome = 1
            except EngineError as error:
                outcome = outcome or 2 * ("another process" not in str(error))
            except BaseException:  # noqa: BLE001  told by the exit code
                outcome = 3
        db.close()
        os._exit(outcome)
    until = time.monotonic() + 30
    done, status = 0, 0
    while not done and time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.02)
    if not done:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert done, "the child hangs"
    assert os.waitstatus_to_exitcode(status) == 0
    assert query.exact().table.num_rows == 50, "the child closed its parent's session"


# --- stopping --------------------------------------------------------------------------------------------------------


def test_a_stop_before_the_iteration_ends_it(db: nearly.Session) -> None:
    query = db.sql(TEXT)
    query.stop()
    assert list(query) == []
    assert list(query)[-1].exact, "the next iteration is a run of its own"
    query = db.sql(TEXT)
    query.stop()
    with pytest.raises(EngineError, match="stopped before its first answer"):
        query.run()


def leave_the_rest_to_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver reads the first batch alone, and is never so quick that the task finds nothing to do."""
    claim = ResultLog.claim

    def claims(log: ResultLog, site: int, start: int, reader: str) -> bool:
        return not (reader == DRIVER and start) and claim(log, site, start, reader)

    monkeypatch.setattr(ResultLog, "claim", claims)


PLACES = [
    (ResultLog, "describe"), (ResultLog, "allow"), (ResultLog, "claim"), (ResultLog, "write"), (ResultLog, "say_ready"),
    (StreamJob, "__init__"), (StreamJob, "go_on"), (UnitState, "open"), (Native, "run"), (ResultLog, "end"),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "name"), PLACES, ids=[f"{owner.__name__}.{name}" for owner, name in PLACES])
def test_law_a_stop_is_never_lost(db: nearly.Session, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    """Wherever in the run it comes: the iteration ends without the exact answer, and nothing is left."""
    run = run_in_batches(db)
    troubles: list[BaseException] = []
    stoppers: list[threading.Thread] = []
    original = getattr(owner, name)

    def stop() -> None:
        try:
            run.stop()
        except BaseException as trouble:  # noqa: BLE001  looked at below
            troubles.append(trouble)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = original(*args, **kwargs)
        if not stoppers:
            stoppers.append(threading.Thread(target=stop))
            stoppers[0].start()
            stoppers[0].join(0.3)
        return found

    monkeypatch.setattr(owner, name, wrapped)
    if name == "say_ready":
        leave_the_rest_to_the_task(monkeypatch)
    answers = list(run.answers())
    for each in stoppers:
        each.join(20)
    assert stoppers
    assert not any(each.is_alive() for each in stoppers)
    assert troubles == []
    assert not any(answer.exact for answer in answers)
    assert nothing_left(db)


def test_stops_from_many_threads_at_random_moments(db: nearly.Session) -> None:
    chance = np.random.default_rng(1)
    for _ in range(12):
        run = run_in_batches(db)
        timers = [threading.Timer(float(wait), run.stop) for wait in chance.uniform(0, 0.25, 3)]
        for timer in timers:
            timer.start()
        for _answer in run.answers():
            pass
        for timer in timers:
            timer.join()
    assert nothing_left(db)


def test_an_interrupt_hits_only_its_query() -> None:
    engine = Native()
    mine, outcomes = Running(), {}

    def ask(name: str, running: Running | None, sql: str) -> None:
        try:
            outcomes[name] = engine.run(sql, (), {}, running).num_rows
        except duckdb.InterruptException:
            outcomes[name] = "interrupted"

    quick = "select count(*) as n from range(30000) a, range(10000) b where (a.range * b.range) % 7 = 3"
    threads = [threading.Thread(target=ask, args=each) for each in (("mine", mine, SLOW), ("another", Running(), quick))]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    while threads[0].is_alive():
        mine.interrupt()
        time.sleep(0.01)
    threads[1].join()
    engine.close()
    assert outcomes == {"mine": "interrupted", "another": 1}


def test_a_log_that_vanishes_is_an_error(db: nearly.Session, tmp_path: Path) -> None:
    """It used to be made again, and the run went on for ever."""
    run = run_in_batches(db)
    answers = run.answers()
    next(answers)
    (db._engine.catalog.path / "queries" / run.id).rename(tmp_path / "removed")
    with pytest.raises(EngineError, match="was removed while it ran"):
        list(answers)
    assert nothing_left(db)


# --- logs of queries -------------------------------------------------------------------------------------------------


def left_by_a_killed_process(db: nearly.Session) -> str:
    """The log of a query as it is after a kill: described, with a batch and a draft, locked by nobody."""
    run = run_in_batches(db)
    answers = run.answers()
    next(answers)
    log = db._engine.catalog.path / "queries" / run.id
    copy = log.with_name("killed")
    shutil.copytree(log, copy, ignore=shutil.ignore_patterns(".*"))  # drafts come and go while it runs
    (copy / ".0123456789abcdef").write_bytes(b"half a batch")
    answers.close()
    return copy.name


def test_a_running_query_is_not_unfinished(db: nearly.Session, tmp_path: Path) -> None:
    run = run_in_batches(db)
    answers = run.answers()
    next(answers)
    with nearly.connect(path=tmp_path / "catalog", lazy=True) as other:
        for session in (db, other):
            assert session.unfinished == ()
            with pytest.raises(EngineError, match="is running"):
                session.forget(run.id)
    assert list(answers)[-1].exact


def test_what_a_killed_query_left_goes_on_or_is_forgotten(db: nearly.Session) -> None:
    left = left_by_a_killed_process(db)
    assert db.unfinished == (left,)
    assert db.resume(left).run().table.num_rows == 50
    assert db.unfinished == ()
    left = left_by_a_killed_process(db)
    db.forget(left)
    assert db.unfinished == ()
    assert nothing_left(db)
    for name in (left, "..", "", "../tables"):
        with pytest.raises(nearly.UnknownName):
            db.forget(name)


def test_old_logs_that_nobody_drives_are_swept(db: nearly.Session, tmp_path: Path) -> None:
    left = left_by_a_killed_process(db)
    run = run_in_batches(db)
    answers = run.answers()
    next(answers)
    queries = db._engine.catalog.path / "queries"
    (queries / "undescribed").mkdir()
    for name, age in ((left, 2 * query_logs.KEPT_SECONDS), (run.id, 2 * query_logs.KEPT_SECONDS), ("undescribed", 3600.0)):
        os.utime(queries / name, (time.time() - age,) * 2)
    with nearly.connect(path=tmp_path / "catalog", lazy=True):
        assert [each.name for each in queries.iterdir()] == [run.id], "one that runs stays however old it is"
    assert list(answers)[-1].exact


# --- places on disk, functions, contents -----------------------------------------------------------------------------


def test_the_spill_directory_is_private_quoted_and_removed(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "it's a place"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with nearly.connect(path=tmp_path / "catalog", lazy=True) as db:
        db.register("t", file)
        assert db.sql(TEXT).exact().table.num_rows == 50
        (mine,) = place.glob("nearly-spill-*")
        assert stat.S_IMODE(mine.stat().st_mode) == 0o700
        with nearly.connect(path=tmp_path / "catalog", lazy=True):
            assert len([*place.glob("nearly-spill-*")]) == 2, "two engines would use the same file names"
    assert not [*place.glob("nearly-spill-*")]
    dead = place / "nearly-spill-dead"
    dead.mkdir()
    os.utime(dead, (0, 0))
    Native().close()
    assert dead.exists(), "this process has swept already"


def test_functions_are_let_go_with_their_frames(db: nearly.Session) -> None:
    table = db.table("t")
    schema = {"k": "bigint"}
    for shift in range(5):
        frame = table.filter("k < 100").map(
            lambda rows, shift=shift: {"k": [k + shift for k in rows["k"].to_pylist()]}, schema=schema
        )
        assert frame.get_final().table["k"].to_pylist()[0] == shift
        after = frame.filter("k > 3")
        del frame
        gc.collect()
        assert after.get_final().table.num_rows > 90, "a frame made from it keeps the function"
        del after
        gc.collect()
    assert len(db._engine.functions.travelling) <= 1
    db.sql(TEXT).exact()
    assert len(db._engine.native.local._functions) <= 2


class Bomb:
    """Something whose loading can be noticed."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("a state that nobody signed was loaded",))


def test_states_that_this_process_did_not_write_are_refused() -> None:
    ours, theirs = b"a" * 32, b"b" * 32
    assert opened(signed({"n": 3}, ours), ours) == {"n": 3}
    for forged in (pickle.dumps(Bomb()), signed(Bomb(), theirs), b"", signed(3, ours)[:32] + pickle.dumps(Bomb())):
        with pytest.raises(ValueError, match="not written by this query"):
            opened(forged, ours)


def test_bit_rot_is_found_on_demand(file: Path, tmp_path: Path, db: nearly.Session) -> None:
    """A page changes while size and time stay: the quick check cannot see it, the full one does."""
    copy = tmp_path / "copy.parquet"
    shutil.copy(file, copy)
    db.register("hashed", copy, verify="full")
    db.verify("hashed")
    db.verify("hashed", full=True)
    with pytest.raises(EngineError, match="without hashes"):
        db.verify("t", full=True)
    with pytest.raises(nearly.SchemaError, match="verify='most'"):
        db.register("other", copy, verify="most")
    before = copy.stat()
    content = bytearray(copy.read_bytes())
    content[1000] ^= 1
    copy.write_bytes(bytes(content))
    os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    db.verify("hashed")
    with pytest.raises(EngineError, match=r"copy\.parquet was damaged"):
        db.verify("hashed", full=True)
