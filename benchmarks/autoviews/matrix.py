"""What is measured for real: every query alone, every view that could be made, and every query over every view that serves it.

    base[q]        seconds of a query without views, planning included
    pair[q][v]     seconds of a query over a view, planning included, all as a session does it
    making[v], bytes[v]     of a view, its files included
    expected ...   the same as the optimiser sees it

All answers over views are compared with those without.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

import nearly
from benchmarks.agreement import difference
from benchmarks.autoviews.workloads import Workload
from nearly.autoview.candidates import Candidate
from nearly.autoview.keeping import Keeping
from nearly.autoview.making import Intention
from nearly.autoview.options import Holding, Option
from nearly.autoview.rewriter import Rewriting
from nearly.autoview.store import MadeView
from nearly.engine.planner import Prepared
from nearly.engine.results import finished
from nearly.errors import NearlyError
from nearly.rewrite.views.use_stored import use_stored

RUNS = 3
PAIR_RUNS = 3
"""Of several runs the quickest counts: what disturbs one only makes it slower."""


@dataclass(slots=True)
class Matrix:
    """Measurements of one workload; views and queries are numbers."""

    texts: list[str] = field(default_factory=list)
    base: list[float] = field(default_factory=list)
    expected_base: list[float] = field(default_factory=list)
    pair: list[dict[str, float]] = field(default_factory=list)
    options: list[list[Option]] = field(default_factory=list)
    making: dict[str, float] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    mismatches: list[str] = field(default_factory=list)
    answers: dict[str, pa.Table] = field(default_factory=dict)

    def gain(self, query: int, view: str) -> float:
        return self.base[query] - self.pair[query].get(view, self.base[query])

    def creation(self, query: int, view: str) -> float:
        """What making a view costs the query that makes it."""
        return max(0.0, self.making[view] + self.pair[query].get(view, self.base[query]) - self.base[query])


def measured(db: nearly.Session, workload: Workload, most_options: int, most_views: int) -> Matrix:
    """Measure a workload; its session has automatic views with room for all, and makes none by itself."""
    keeping = db.autoview().keeping
    found = Matrix()
    prepared: list[Prepared] = []
    candidates: dict[str, Candidate] = {}
    for text in workload.queries:
        ready = _measure_base(db, text, found)
        if ready is None:
            continue
        mined = keeping.mining.mine(ready)
        worth = [each for each in mined.options if each.gain > 0][:most_options]
        candidates |= {each.id: mined.candidates[each.id] for each in worth}
        prepared.append(ready)
        found.options.append(worth)
        print(f"{workload.name}: {len(prepared)} queries, {len(candidates)} views", end="\r", file=sys.stderr)
    _keep_most_wanted(found, candidates, most_views)
    for place, (id_, candidate) in enumerate(candidates.items()):
        owner = next(number for number, options in enumerate(found.options) if any(each.id == id_ for each in options))
        kept = _make(keeping, prepared[owner], candidate, found)
        if kept is not None:
            _measure_pairs(db, keeping, prepared, kept, found)
            keeping.store.remove(kept.id)
        print(f"{workload.name}: {place + 1} of {len(candidates)} views measured", end="\r", file=sys.stderr)
    found.options = [[each for each in options if each.id in found.bytes and each.id in found.pair[number]]
                     for number, options in enumerate(found.options)]  # fmt: skip
    return found


def _keep_most_wanted(found: Matrix, candidates: dict[str, Candidate], most: int) -> None:
    """Leave out views beyond a number: of each query those that save it least, of these the ones that save least in all."""
    worth: dict[str, float] = {}
    place: dict[str, int] = {}
    for options in found.options:
        for number, each in enumerate(sorted(options, key=lambda option: -option.gain)):
            worth[each.id] = worth.get(each.id, 0.0) + each.gain
            place[each.id] = min(place.get(each.id, number), number)
    for id_ in sorted(candidates, key=lambda id_: (place[id_], -worth[id_]))[most:]:
        del candidates[id_]


def _measure_base(db: nearly.Session, text: str, found: Matrix) -> Prepared | None:
    try:
        ready = db._engine.prepare(text)
        if ready.query is None or not is_native(db, ready):
            return None
        seconds = []
        for _ in range(RUNS):
            began = time.perf_counter()
            db.sql(text).exact()
            seconds.append(time.perf_counter() - began)
    except NearlyError:
        return None
    found.texts.append(text)
    found.base.append(min(seconds))
    found.expected_base.append(db.autoview().keeping.estimates.seconds(ready.query.plan, ready.snapshot))
    found.pair.append({})
    return ready


def is_native(db: nearly.Session, prepared: Prepared) -> bool:
    """Whether a query is answered without Spark, which is not started for it."""
    if prepared.query is None or prepared.kernel != "native":
        return False
    with db._engine.reading(prepared.snapshot):
        return db._engine.at(prepared.snapshot).native_rows(prepared.query.plan) is not None


def _make(keeping: Keeping, prepared: Prepared, candidate: Candidate, found: Matrix) -> MadeView | None:
    source = Rewriting(candidate.stored.maintained, (), 0.0)
    option = Option(candidate.id, candidate.shape, 0.0, 0.0, 0.0, 0.0)
    began = time.perf_counter()
    rows = keeping.making.made(prepared, Intention(candidate, option, source, source.plan, 1.0, 0.0), None)
    if rows is None:
        return None
    tables = {table.name.lower(): table for table in prepared.snapshot}
    versions = {name: (tables[name].version, tables[name].content) for name in candidate.tables}
    kept = keeping.store.add(candidate, rows, versions, Holding(option, rows.bytes, 0.0, 0), keeping.engine.cluster.time_zone)
    found.making[candidate.id] = time.perf_counter() - began
    found.bytes[candidate.id] = rows.bytes
    found.tables[candidate.id] = candidate.shape.tables
    return kept


def _measure_pairs(db: nearly.Session, keeping: Keeping, prepared: Sequence[Prepared], kept: MadeView, found: Matrix) -> None:
    for number, ready in enumerate(prepared):
        tables = {table.name.lower(): table for table in ready.snapshot}
        if ready.query is None or not kept.fits(tables, kept.zone):
            continue
        plan = use_stored(ready.query.plan, kept.plan)
        if plan is None:
            continue
        sources = (*ready.snapshot, kept.table)
        expected = keeping.estimates.seconds(plan, sources)
        _check(db, ready, keeping, Rewriting(plan, (kept,), expected), found)
        over = [_asked(db, keeping, ready, Rewriting(plan, (kept,), expected)) for _ in range(PAIR_RUNS)]
        plain = [_asked(db, keeping, ready, Rewriting(ready.query.plan, (), 0.0)) for _ in range(PAIR_RUNS)]
        slower = max(1.0, min(plain) / found.base[number])  # than when the query was measured alone: others use the machine
        found.pair[number][kept.id] = max(1e-4, found.base[number] - (min(plain) - min(over)) / slower)
        if all(each.id != kept.id for each in found.options[number]):
            gain = found.expected_base[number] - expected
            if gain > 0:
                found.options[number].append(
                    Option(
                        kept.id, kept.candidate.shape, float(kept.holding.bytes), found.making[kept.id], gain, found.making[kept.id]
                    )
                )


def _asked(db: nearly.Session, keeping: Keeping, ready: Prepared, rewriting: Rewriting) -> float:
    """Seconds of a query as a session answers it, over the views that are chosen here: planned, compared with views, and run."""
    began = time.perf_counter()
    again = db._engine.prepare(ready.text)
    keeping.best(again)
    course = keeping.run(again, rewriting, creates=False)
    if course.rows is not None and ready.query is not None:
        finished(course.rows, ready.query)
    return time.perf_counter() - began


def _check(db: nearly.Session, ready: Prepared, keeping: Keeping, rewriting: Rewriting, found: Matrix) -> None:
    course = keeping._read(ready, rewriting)
    expected = found.answers.get(ready.text)
    if expected is None:
        expected = found.answers[ready.text] = db._engine.run(ready).table
    if course.rows is None or ready.query is None:
        found.mismatches.append(f"{rewriting.views[0].name}: no answer for {ready.text[:80]}")
        return
    problem = difference(expected, finished(course.rows, ready.query), ready.text)
    if problem:
        found.mismatches.append(f"{problem}: {ready.text[:80]}")
