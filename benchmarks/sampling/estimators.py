"""How often the intervals of progressive answers cover, stopped early or not, and how wide they are, on six data sets.

Answers are measured for many seeds, in the order in which the product reads: estimates, replicates and intervals of thousands of
answers are computed at once. For the first seeds of every run (`--verified`) the product itself answers the same queries, from SQL
text to `Answer`, with Spark's tasks run in this process; every estimate and every end of an interval must be the same. The certain
bounds are those of the product's answers.

Where values are whole numbers, as medians of such and distinct counts are, the final one is often just an end of the interval. Rows
that cover in 95 % of the seeds only because their ends belong to them could not have shorter intervals, and may cover much more
often. They count for `lowest` but not for `highest`; `on_the_end` tells how many they are, and the column `inside` how often the
final value lies inside the interval without its ends.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Record, print_summary, print_table, write_json
from benchmarks.sampling.answers import Stored
from benchmarks.sampling.measures import asked
from benchmarks.sampling.orders import positions_of, reading, units_read
from benchmarks.sampling.populations import POPULATIONS
from benchmarks.sampling.trials import CONFIDENCE, Trial
from benchmarks.sampling.verified import Verified, certain_bounds, verified

SHARES = (0.02, 0.05, 0.1, 0.3, 0.6)
TARGETS = (0.01, 0.02, 0.05, 0.1)
"""Relative half-widths at which a user would stop."""
LEAST_GIVEN = 0.01
"""A row of which a smaller share of intervals is given says too little about their coverage."""
LOWEST_COVER, ENOUGH_SEEDS = 0.9, 500
"""A lower coverage is a wrong result; with fewer seeds it may be chance."""
NORMAL_WIDTH = 2 * 1.959964
COLUMNS = ("data", "statistic", "read", "cover", "below", "above", "withheld", "width", "inside")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when the product answers differently, a certain bound fails or intervals cover far too rarely."""
    options = parse(arguments)
    found = Measured()
    for each in _all_measured(options):
        found += each
    summary = summarize(found.rows, found.stopped, found.verified)
    print_table(COLUMNS, found.rows)
    print()
    print_table(("data", "statistic", "anytime"), found.stopped)
    print()
    print_summary(summary)
    if options.json:
        settings: Record = {
            "benchmark": "coverage", "seeds": options.seeds, "data_seed": options.data_seed, "confidence": CONFIDENCE
        }  # fmt: skip
        write_json(options.json, settings, summary, [*found.rows, *found.stopped])
    wrong = found.verified.different or found.verified.hard_failures
    return 1 if wrong or (options.seeds >= ENOUGH_SEEDS and _too_low(summary)) else 0


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows of the table, those of runs that were stopped early, and how the product's own answers compare."""

    rows: tuple[Record, ...] = ()
    stopped: tuple[Record, ...] = ()
    verified: Verified = field(default_factory=Verified)

    def __add__(self, other: Measured) -> Measured:
        return Measured(self.rows + other.rows, self.stopped + other.stopped, self.verified + other.verified)


def _all_measured(options: argparse.Namespace) -> Iterator[Measured]:
    """The data sets in their order, several at a time."""
    one = partial(measured, options=options)
    processes = min(options.processes, len(options.data))
    if processes == 1:
        yield from map(one, options.data)
        return
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(one, options.data)


def measured(name: str, options: argparse.Namespace) -> Measured:
    """One data set."""
    with tempfile.TemporaryDirectory(prefix="nearly-coverage-") as directory:
        found = _measured(name, options, Path(directory))
    print(f"{name} done", file=sys.stderr, flush=True)
    return found


def _measured(name: str, options: argparse.Namespace, directory: Path) -> Measured:
    population = POPULATIONS[name](np.random.default_rng(options.data_seed))
    stored = Stored.of(population, directory)
    orders = stored.orders(options.seeds)
    positions = tuple(positions_of(order) for order in orders)
    counts = [units_read(orders, share) for share in SHARES]
    readings = [reading(positions, count) for count in counts]
    seeds = min(options.verified, options.seeds)
    found = Measured(verified=certain_bounds(stored, population, counts, seeds))
    for query in asked(population, positions):
        trials = {
            statistic: [measure(read, look) for look, read in enumerate(readings, start=1)]
            for statistic, measure in query.measures.items()
        }
        rows = tuple(
            _row(name, statistic, share, trial)
            for statistic, each in trials.items()
            for share, trial in zip(SHARES, each, strict=True)
        )
        stopped: tuple[Record, ...] = tuple(
            {"data": name, "statistic": statistic, "anytime": _anytime(each)} for statistic, each in trials.items()
        )
        found += Measured(rows, stopped, verified(stored, query, trials, counts, seeds))
    return found


def _too_low(summary: Record) -> bool:
    """Whether intervals cover far more rarely than they promise."""
    return any(isinstance(value := summary[name], float) and value < LOWEST_COVER for name in ("lowest", "anytime_lowest"))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run bench coverage --estimators", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="random orders of reading for each data set (default 1000)")
    parser.add_argument("--data", type=_names, default=tuple(POPULATIONS), help="such as ordered,flights (default all)")
    parser.add_argument("--verified", type=int, default=3, help="seeds for which the product itself answers, too (default 3)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="data sets at a time (default as many as cores)")
    parser.add_argument("--data-seed", type=int, default=7, help="seed of the generated data (default 7)")
    parser.add_argument("--json", type=Path, help="write the report to this file")
    options = parser.parse_args(arguments)
    if options.seeds < 2 or options.verified < 1 or options.processes < 1:
        parser.error("--seeds must be at least 2, --verified and --processes at least 1")
    return options


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := set(names) - set(POPULATIONS):
        raise argparse.ArgumentTypeError(f"no such data: {sorted(unknown)}; they are {', '.join(POPULATIONS)}")
    return names


def _row(data: str, statistic: str, share: float, trial: Trial) -> Record:
    """Coverage over all seeds and cells where an interval is given; width relative to that of the true sampling variance."""
    given = ~(np.isnan(trial.low) | np.isnan(trial.high))
    below, above = (trial.truth < trial.low)[given], (trial.truth > trial.high)[given]
    enough = given.mean() >= LEAST_GIVEN
    return {
        "data": data,
        "statistic": statistic,
        "read": share,
        "cover": float(1 - below.mean() - above.mean()) if enough else None,
        "below": float(below.mean()) if enough else None,
        "above": float(above.mean()) if enough else None,
        "withheld": float(1 - given.mean()),
        "width": _width(trial, given) if enough else None,
        "inside": float(((trial.low < trial.truth) & (trial.truth < trial.high))[given].mean()) if enough else None,
    }


def _width(trial: Trial, given: NDArray[np.bool_]) -> float | None:
    """Median width over that of a normal interval which knows the sampling variance; None for cells without any."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        spread = np.nanstd(trial.estimate, axis=0)
        ratios = (trial.high - trial.low) / (NORMAL_WIDTH * spread)
    usable = given & (spread > 1e-9 * np.abs(trial.truth))
    return float(np.median(ratios[usable])) if usable.any() else None


def _anytime(trials: Sequence[Trial]) -> float:
    """The lowest share, over the targets, of cells that hold when one stops at the first look that is narrow enough.

    Who never stops reads everything and is right.
    """
    lowest = 1.0
    for target in TARGETS:
        going = np.ones(trials[0].estimate.shape, dtype=bool)
        wrong = np.zeros(trials[0].estimate.shape, dtype=bool)
        for trial in trials:
            half = (trial.anytime_high - trial.anytime_low) / 2
            stops = going & (half <= target * np.abs(trial.estimate))
            wrong |= stops & ((trial.truth < trial.anytime_low) | (trial.truth > trial.anytime_high))
            going &= ~stops
        lowest = min(lowest, float(1 - wrong.mean()))
    return lowest


def summarize(rows: Sequence[Record], stopped: Sequence[Record], verified_: Verified) -> Record:
    """The figures: extremes of coverage over rows, failures, share withheld, and the median of the widths."""
    covers = [value for each in rows if isinstance(value := each["cover"], float)]
    on_the_end = [_on_the_end(each) for each in rows]
    others = [value for each, on in zip(rows, on_the_end, strict=True) if isinstance(value := each["cover"], float) and not on]
    widths = [value for each in rows if isinstance(value := each["width"], float)]
    return {
        "lowest": min(covers, default=None),
        "highest": max(others, default=None),
        "on_the_end": sum(on_the_end),
        "anytime_lowest": min((value for each in stopped if isinstance(value := each["anytime"], float)), default=None),
        "hard_failures": verified_.hard_failures,
        "withheld_fraction": float(np.mean([value for each in rows if isinstance(value := each["withheld"], float)])),
        "width_ratio": float(np.median(widths)) if widths else None,
        "compared": verified_.compared,
        "different": verified_.different,
    }


def _on_the_end(row: Record) -> bool:
    """Whether the intervals cover as often as they promise only with their ends."""
    cover, inside = row["cover"], row["inside"]
    return isinstance(cover, float) and isinstance(inside, float) and inside < CONFIDENCE <= cover


if __name__ == "__main__":
    sys.exit(main())
