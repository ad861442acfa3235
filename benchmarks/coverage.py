"""Whether early answers can be trusted: random queries in four layouts, every number held against the exact one.

Queries of many kinds are drawn at random over real and made-up tables and asked with several seeds through the public interface.
DuckDB alone gives the exact answers. Told are, by kind and layout: how many numbers have an interval and how many of these hold,
how many have no width and are wrong, which certain bounds are broken, which rows are missing or superfluous and whether the answer
says so, and whether `run(error=0.05)` ends with an answer that is right as a whole. Numbers that are known for sure do not count.

`--estimators` tries the estimators themselves instead, over thousands of orders of reading.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.random_queries.asking import KINDS, Asked, draw
from benchmarks.random_queries.families import FAMILIES, LAYOUTS, Family
from benchmarks.random_queries.judging import Truth
from benchmarks.random_queries.storing import Oracle, write
from benchmarks.random_queries.telling import COLUMNS, by_kind_and_layout, offenders, summarize
from benchmarks.random_queries.trying import Asker, Task, Trial
from benchmarks.report import Record, print_summary, print_table, write_json
from benchmarks.sampling import estimators

TASK_QUERIES = 7
"""Queries that a process takes at a time."""
TINY = 0.15
"""The share of the rows in a tiny run."""

_asker: Asker | None = None
"""Of this process."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when a promise is broken that holds for sure."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "--estimators" in given:
        return estimators.main([each for each in given if each != "--estimators"])
    options = parse(given)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="nearly-coverage-") as directory:
        found = tried(options, Path(directory))
    rows, summary = by_kind_and_layout(found), summarize(found)
    bad = offenders(found)
    print_table(COLUMNS, rows)
    print()
    for each in bad[: options.shown]:
        print(each.line)
    for trial in found:
        for fault in trial.faults:
            print(f"{trial.layout} seed {trial.seed}, {fault}")
    print()
    print_summary(summary)
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    if options.json:
        settings: Record = {
            "benchmark": "coverage", "queries": options.queries, "seeds": options.seeds, "data_seed": options.data_seed,
            "layouts": ",".join(options.layouts), "kinds": ",".join(options.kinds),
        }  # fmt: skip
        write_json(options.json, settings, summary, [*rows, *({"offender": each.line} for each in bad)])
    return 1 if summary["zero_wrong"] or summary["hard_broken"] or summary["exact_wrong"] or summary["failures"] else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run bench coverage", description=__doc__)
    parser.add_argument("--queries", type=int, default=400, help="random queries (default 400)")
    parser.add_argument("--seeds", type=int, default=5, help="random orders of reading for each query and layout (default 5)")
    parser.add_argument(
        "--layouts", type=_names(LAYOUTS), default=LAYOUTS, help=f"such as shuffled,sorted (default {','.join(LAYOUTS)})"
    )
    parser.add_argument("--kinds", type=_names(tuple(KINDS)), default=tuple(KINDS), help=f"some of {','.join(KINDS)} (default all)")
    parser.add_argument(
        "--data", type=_names(tuple(FAMILIES)), default=tuple(FAMILIES), help=f"some of {','.join(FAMILIES)} (default all)"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="at a time (default as many as cores)")
    parser.add_argument("--data-seed", type=int, default=11, help="seed of tables and queries (default 11)")
    parser.add_argument("--only", type=int, help="just the query of this number, with every fault of its answers")
    parser.add_argument("--tiny", action="store_true", help="small tables, and one query of each kind with two seeds")
    parser.add_argument("--shown", type=int, default=60, help="the worst so many answers are listed (default 60)")
    parser.add_argument("--json", type=Path, help="write the report to this file")
    options = parser.parse_args(arguments)
    if options.queries < 1 or options.seeds < 1 or options.processes < 1:
        parser.error("--queries, --seeds and --processes must be at least 1")
    if options.tiny:
        options.queries, options.seeds = min(options.queries, len(options.kinds)), min(options.seeds, 2)
    return options


def _names(known: tuple[str, ...]) -> _Names:
    return _Names(known)


@dataclass(frozen=True, slots=True)
class _Names:
    """Reads a list of known names."""

    known: tuple[str, ...]

    def __call__(self, text: str) -> tuple[str, ...]:
        names = self.known if text == "all" else tuple(text.split(","))
        if unknown := set(names) - set(self.known):
            raise argparse.ArgumentTypeError(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(self.known)}")
        return names


def tried(options: argparse.Namespace, directory: Path) -> list[Trial]:
    """All trials of a run."""
    families = _families(options)
    for layout in options.layouts:
        for family in families:
            write(family, layout, directory, options.data_seed)
    questions = draw(families, options.kinds, options.queries, options.data_seed)
    if options.only is not None:
        questions = [each for each in questions if each.number == options.only]
    tasks = _tasks(options, _answered(questions, Oracle(families, options.layouts[0], directory)))
    found: list[Trial] = []
    begun = time.monotonic()
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    for done, trials in enumerate(_run(options, families, directory, tasks), start=1):
        found += trials
        print(f"{done} of {len(tasks)} tasks, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        if interrupted.is_set():
            print("interrupted: what follows is from the tasks that were done", file=sys.stderr)
            break
    return sorted(found, key=lambda trial: (trial.asked.number, trial.layout, trial.seed))


def _families(options: argparse.Namespace) -> list[Family]:
    return [FAMILIES[name](np.random.default_rng(options.data_seed), TINY if options.tiny else 1.0) for name in options.data]


def _answered(questions: Sequence[Asked], oracle: Oracle) -> list[tuple[Asked, Truth]]:
    return [(asked, Truth.of(oracle.answer(asked.oracle), asked.keys)) for asked in questions]


def _tasks(options: argparse.Namespace, questions: Sequence[tuple[Asked, Truth]]) -> list[Task]:
    seeds = tuple(range(options.seeds))
    return [
        Task(layout, tuple(questions[start : start + TASK_QUERIES]), seeds)
        for start in range(0, len(questions), TASK_QUERIES)
        for layout in options.layouts
    ]


def _run(options: argparse.Namespace, families: list[Family], directory: Path, tasks: list[Task]) -> Iterator[list[Trial]]:
    if min(options.processes, len(tasks)) == 1:
        _begin(families, directory, options.only is not None)
        yield from map(_done, tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        options.processes, context, initializer=_begin, initargs=(families, directory, options.only is not None)
    ) as pool:
        try:
            for each in as_completed([pool.submit(_done, task) for task in tasks]):
                yield each.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(families: list[Family], directory: Path, detailed: bool) -> None:
    global _asker  # noqa: PLW0603
    if multiprocessing.parent_process() is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends after the tasks at hand
    _asker = Asker(families, directory, detailed=detailed)


def _done(task: Task) -> list[Trial]:
    assert _asker is not None
    return list(_asker.trials(task))


if __name__ == "__main__":
    sys.exit(main())
