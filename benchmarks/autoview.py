"""Views that choose themselves: seconds of 10,000 queries beside other policies, no views, and the best set there is.

Every query is measured over every view that serves it; workloads of many queries are simulated from that, and some are then run for
real, to see whether the simulation tells the truth.
"""

from __future__ import annotations

import argparse
import atexit
import pickle
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import nearly
from benchmarks.autoviews.matrix import Matrix, measured
from benchmarks.autoviews.optimum import Clairvoyant, best_views
from benchmarks.autoviews.replay import compared_sessions, replayed
from benchmarks.autoviews.simulation import DELAY, Fixed, Rules, Simulated, Simulation
from benchmarks.autoviews.workloads import DISTRIBUTIONS, Workload, sequence, workload
from benchmarks.report import Record, median, print_summary, print_table, write_json
from nearly.autoview.options import Occasion, Option
from nearly.autoview.policies.known import policy_of
from nearly.autoview.policies.learned import Learned
from nearly.autoview.policies.policy import ViewPolicy
from nearly.autoview.policies.simple import Lfu

TINY = {"scale": "0.01", "most": 4, "views": 6, "length": 60, "seeds": 1, "sample": 12, "session": 12, "storage": 0.5}
AMPLE, TIGHT = "ample", "tight"
"""Storage as in the paper, a share of the largest table; and so little that hardly anything fits, where policies differ most."""
TIGHT_SHARE = 0.1
"""Of the bytes of the set of views that would be best without a limit."""
NAMES = ("retail", "cube", "movies")
MANY = 2_000
"""Queries of which a simulation is worth a process."""
BASELINES = ("lru", "lfu", "fifo", "hawc", "recycler")
COLUMNS = (
    "workload",
    "order",
    "seed",
    "storage",
    "policy",
    "seconds",
    "over none",
    "made",
    "evicted",
    "creation s",
    "most bytes",
    "policy s",
)

REPLAY_COLUMNS = ("workload", "policy", "part", "queries simulated", "queries run", "simulated s", "run s", "error", "all runs s")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when an answer differed, or more was kept than may be."""
    options = parse(arguments)
    rows: list[Record] = []
    replays: list[Record] = []
    figures = Figures()
    mismatches: list[str] = []
    exceeded = 0
    for name in options.workloads:
        chosen = workload(name, options.scale, options.most)
        catalog = tempfile.mkdtemp(prefix="nearly-bench-")
        atexit.register(shutil.rmtree, catalog, ignore_errors=True)
        found = _measurements(chosen, catalog, options)
        rooms = {AMPLE: options.storage * chosen.largest_bytes, TIGHT: TIGHT_SHARE * _wanted_bytes(found)}
        mismatches += found.mismatches
        told = ", ".join(f"{room} {capacity / 1e6:.3f} MB" for room, capacity in rooms.items())
        print(f"\n{chosen.name}: {len(found.base)} queries, {len(found.bytes)} views, {told}", file=sys.stderr)
        if options.sample:
            trial = replayed(chosen, found, rooms[AMPLE], options.sample, catalog)
            replays += [{"workload": chosen.name, **row} for row in trial.rows]
            figures.note("simulation_error", 0, trial.error("ilp"))
            figures.note("learned_simulation_error", 0, trial.error("learned"))
            mismatches += trial.problems
        for each in _all_compared(found, rooms, options):
            rows += [{"workload": chosen.name, **row} for row in each.rows]
            exceeded += sum(float(row["most bytes"] or 0) > rooms[each.room] for row in each.rows)
            for figure, value in each.figures.items():
                figures.note(figure, each.seed, value, f"{chosen.name}, {each.order}")
        rows += _studies(found, chosen.name, options.length, rooms[TIGHT]) if not options.tiny else []
    if options.session:
        mine, plain, different = compared_sessions(options.session, options.session_scale, options.workloads[0], options.tiny)
        figures.note("session", 0, mine.seconds / plain.seconds)
        figures.note("session work", 0, mine.worked / plain.worked)
        mismatches += different
    summary = summarize(figures, len(mismatches), exceeded)
    print_table(COLUMNS, rows)
    print_table(REPLAY_COLUMNS, replays)
    for problem in mismatches[:20]:
        print(f"differs: {problem}")
    print()
    print_summary(summary)
    if options.json:
        settings: Record = {
            "benchmark": "autoview", "scale": options.scale, "length": options.length, "seeds": options.seeds,
            "storage": options.storage,
        }  # fmt: skip
        write_json(options.json, settings, summary, [*rows, *replays])
    return 1 if mismatches or exceeded else 0


def _measurements(chosen: Workload, catalog: str, options: argparse.Namespace) -> Matrix:
    """What is measured of a workload, once: in another run with the same settings it is taken from where it was put."""
    settings = f"{chosen.name}-{options.scale}-{options.most}-{options.options}-{options.views}.pickle".replace(" ", "-")
    file = None if options.measured is None else options.measured / settings
    if file is not None and file.exists():
        found: Matrix = pickle.loads(file.read_bytes())
        return found
    with nearly.connect(lazy=True, path=catalog) as db:
        for table, path in chosen.tables.items():
            db.register(table, str(path))
        held = db.autoview("64GB", policy="off")
        held._worker.stop()
        found = measured(db, chosen, options.options, options.views)
        held.off()
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(found))
    return found


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run bench autoview", description=__doc__)
    parser.add_argument("--workloads", type=lambda text: tuple(text.split(",")), default=NAMES, help="of retail, cube, movies")
    parser.add_argument("--scale", default="1", help="of the generated tables (default 1)")
    parser.add_argument("--most", type=int, default=40, help="different queries of a workload (default 40)")
    parser.add_argument("--options", type=int, default=6, help="views that one query can make (default 6)")
    parser.add_argument("--views", type=int, default=80, help="different views of a workload that are measured (default 80)")
    parser.add_argument("--length", type=int, default=10_000, help="queries that are simulated (default 10,000)")
    parser.add_argument("--seeds", type=int, default=3, help="orders of each kind (default 3)")
    parser.add_argument(
        "--storage",
        type=float,
        default=0.2,
        help="share of the largest table's bytes that may be kept (default 0.2, as the paper's)",
    )
    parser.add_argument("--sample", type=int, default=150, help="queries simulated and run for real (default 150, 0: none)")
    parser.add_argument(
        "--session", type=int, default=300, help="queries of a real session with and without (default 300, 0: none)"
    )
    parser.add_argument("--session-scale", default=None, help="scale of that session's tables (default as --scale)")
    parser.add_argument("--measured", type=Path, help="a directory where measurements are put, and taken from if they are there")
    parser.add_argument("--tiny", action="store_true", help="hardly any data, to see that all works")
    parser.add_argument("--json", type=Path, help="write the report to this file")
    options = parser.parse_args(arguments)
    if options.tiny:
        vars(options).update(TINY)
    options.session_scale = options.session_scale or options.scale
    if set(options.workloads) - set(NAMES):
        parser.error(f"--workloads must be of {', '.join(NAMES)}")
    return options


def _wanted_bytes(matrix: Matrix) -> float:
    """Bytes of the views that would be best if storage had no limit and all queries came equally often."""
    every = [query for query in range(len(matrix.base)) for _ in range(100)]
    chosen = best_views(matrix, every, 1e18)
    return float(sum(matrix.bytes[view] for view in chosen)) or 1.0


@dataclass(frozen=True, slots=True)
class Compared:
    """All policies over one order of queries, and the figures of the summary."""

    order: str
    seed: int
    room: str
    rows: list[Record]
    figures: Mapping[str, float]


def _all_compared(matrix: Matrix, rooms: Mapping[str, float], options: argparse.Namespace) -> Iterator[Compared]:
    """All orders, seeds and storages, by as many processes as there are processors: nothing is timed but what policies need."""
    trials = [(order, seed, room) for seed, order, room in product(range(options.seeds), DISTRIBUTIONS, rooms)]
    compared = partial(_compared, matrix, dict(rooms), options.length)
    if options.length < MANY:
        yield from (compared(*each) for each in trials)
        return
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        yield from pool.map(compared, *zip(*trials, strict=True))


def _compared(matrix: Matrix, rooms: Mapping[str, float], length: int, order: str, seed: int, room: str) -> Compared:
    queries, capacity = sequence(order, matrix.base, length, seed), rooms[room]
    none = matrix.without_views(queries)
    found: dict[str, Simulated] = {}
    chosen = best_views(matrix, queries, capacity)
    trials: dict[str, tuple[Callable[[], ViewPolicy], Rules]] = {
        "learned": (lambda: Learned(seed), Rules(capacity)),
        **{name: (partial(policy_of, name, seed), Rules(capacity, told_costs=name == "recycler")) for name in BASELINES},
        "so recycler": (lambda: policy_of("recycler", seed), Rules(capacity)),
        "so learned": (lambda: Learned(seed), Rules(capacity, told_gains=False)),
        "ilp": (lambda: Fixed(chosen), Rules(capacity, told_all=True)),
        "noisy ilp 2": (lambda: Fixed(best_views(matrix, queries, capacity, 2.0, seed)), Rules(capacity, told_all=True)),
        "noisy ilp 5": (lambda: Fixed(best_views(matrix, queries, capacity, 5.0, seed)), Rules(capacity, told_all=True)),
        "belady": (lambda: Clairvoyant(matrix, queries), Rules(capacity, told_all=True)),
        "learned, tables change": (lambda: Learned(seed), Rules(capacity, maintained=100, seed=seed)),
        "recycler, tables change": (
            lambda: policy_of("recycler", seed), Rules(capacity, told_costs=True, maintained=100, seed=seed),
        ),
    }  # fmt: skip
    for name, (policy, rules) in trials.items():
        found[name] = Simulation(matrix, policy(), rules).run(queries)
    best = min(found[name].total for name in BASELINES)
    mine = found["learned"]

    prefix = "" if room == AMPLE else "tight_"
    figures = {
        f"{prefix}over_no_views": mine.total / none, f"{prefix}ilp_over_no_views": found["ilp"].total / none,
        "over_best_baseline": mine.total / best, "cpu": mine.policy_seconds / mine.total,
        "maintenance": found["learned, tables change"].total / found["recycler, tables change"].total,
    }  # fmt: skip
    if "blend" not in order:
        figures["over_ilp"] = mine.second_half / found["ilp"].second_half
    rows: list[Record] = [
        {
            "order": order, "seed": seed, "storage": room,
            "policy": name, "seconds": each.total, "over none": each.total / none, "made": each.made, "evicted": each.evicted,
            "creation s": each.creation, "most bytes": each.most_bytes, "policy s": each.policy_seconds,
        }
        for name, each in found.items()
    ]  # fmt: skip
    return Compared(order, seed, room, rows, figures)


def _studies(matrix: Matrix, name: str, length: int, capacity: float) -> list[Record]:
    """One thing varied at a time, over random ranks: storage, exploration, delay of experiments, eviction alone, learned before."""
    queries = sequence("rzipf", matrix.base, length, 0)
    none = matrix.without_views(queries)
    trained = Learned(0)
    Simulation(matrix, trained, Rules(capacity)).run(queries)
    trained.agent.least = 0.0
    trials: dict[str, tuple[ViewPolicy, Rules]] = {
        "learned before": (trained, Rules(capacity)),
        "eviction only": (EvictionOnly(0), Rules(capacity)),
        **{f"storage {share:g}": (Learned(0), Rules(capacity * share)) for share in (0.25, 0.5, 2.0, 4.0)},
        **{f"exploration {least:g}": (Learned(0, least), Rules(capacity)) for least in (0.2, 0.3, 0.4, 0.5)},
        **{f"delay {delay}": (Learned(0), Rules(capacity, delay=delay)) for delay in (DELAY * 25, DELAY * 50, DELAY * 250)},
    }  # fmt: skip
    rows: list[Record] = []
    for label, (policy, rules) in trials.items():
        each = Simulation(matrix, policy, rules).run(queries)
        rows.append({
            "workload": name, "order": "rzipf", "seed": 0, "storage": TIGHT, "policy": label, "seconds": each.total,
            "over none": each.total / none,
            "made": each.made, "evicted": each.evicted, "creation s": each.creation, "most bytes": each.most_bytes,
            "policy s": each.policy_seconds,
        })  # fmt: skip
    return rows


class EvictionOnly(Learned):
    """Random candidates, and the learner's eviction."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._any = Lfu(seed)

    def ranked(self, moment: Occasion) -> Sequence[Option]:
        super().ranked(moment)
        return self._any.ranked(moment)


class Figures:
    """Ratios by name and seed, one for each workload and order."""

    def __init__(self) -> None:
        self._found: dict[str, dict[int, list[float]]] = {}
        self._places: dict[str, dict[str, list[float]]] = {}

    def note(self, name: str, seed: int, value: float, place: str = "") -> None:
        """A ratio, found at some place: a workload and an order."""
        self._found.setdefault(name, {}).setdefault(seed, []).append(value)
        self._places.setdefault(name, {}).setdefault(place, []).append(value)

    def worst_place(self, name: str) -> str:
        """Where the greatest ratio was found."""
        places = self._places[name]
        return max(places, key=lambda place: max(places[place]))

    def at(self, name: str, place: str) -> float:
        """The greatest ratio at a place."""
        return max(self._places[name][place])

    def of(self, name: str) -> list[float]:
        return [value for values in self._found.get(name, {}).values() for value in values]

    def spread(self, name: str, over: Callable[[Sequence[float]], float]) -> str:
        """A figure of each seed alone, from the least to the greatest."""
        values = sorted(over(values) for values in self._found[name].values())
        return ", ".join(f"{value:.3f}" for value in values)


def _where(name: str, figures: Figures) -> Record:
    """The worst ratio to no views, where it is, and what the best fixed set of views reaches there."""
    place = figures.worst_place(name)
    ilp = name.replace("over", "ilp_over")
    return {name: figures.at(name, place), f"{name}_at": place, ilp: figures.at(ilp, place), f"{ilp}_worst": max(figures.of(ilp))}


def summarize(figures: Figures, mismatches: int, exceeded: int) -> Record:
    """The figures of all workloads, orders and seeds, the worst or the median; then some of them for each seed alone."""
    middle = statistics.median
    return {
        "mismatches": mismatches, "over_no_views_median": middle(figures.of("over_no_views")),
        **_where("over_no_views", figures), **_where("tight_over_no_views", figures),
        "over_best_baseline_worst": max(figures.of("over_best_baseline")),
        "over_best_baseline_median": middle(figures.of("over_best_baseline")),
        "over_ilp_median": middle(figures.of("over_ilp")), "storage_exceeded": exceeded,
        "maintenance_over_recycler": middle(figures.of("maintenance")),
        "simulation_error": max(figures.of("simulation_error"), default=None),
        "learned_simulation_error": max(figures.of("learned_simulation_error"), default=None),
        "learner_cpu_share": max(figures.of("cpu")), "session_over_plain": median(figures.of("session")),
        "session_work_over_plain": median(figures.of("session work")),
        "seeds_over_no_views": figures.spread("over_no_views", max),
        "seeds_over_best_baseline_worst": figures.spread("over_best_baseline", max),
        "seeds_over_best_baseline_median": figures.spread("over_best_baseline", middle),
        "seeds_over_ilp_median": figures.spread("over_ilp", middle),
        "seeds_maintenance_over_recycler": figures.spread("maintenance", middle),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
