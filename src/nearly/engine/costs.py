"""What work costs: seconds of a plan, from constants of the machine and about how many rows each step has.

    seconds = fixed + (sum over the steps of rows * columns * constant) / cores

The constants are usual ones until `measure` takes those of this machine, which needs less than a second, once for a catalog. What
work then really took corrects the expectation, by kind of work: the ratio of the two, of which an exponential mean is kept.
"""

from __future__ import annotations

import os
import platform
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import duckdb

from nearly.engine.storage.durable import write_durably
from nearly.engine.storage.serialise import opened, sealed
from nearly.errors import EngineError
from nearly.plan.expressions import AggregateCall
from nearly.plan.nodes import GroupBy, Input, Join, Limit, Plan, Scan, SetOperation, Sort, Window
from nearly.plan.quoting import native_text
from nearly.plan.schema import FindTable
from nearly.rewrite.logical.sizes import Size, size

FILE = "costs.json"
"""Where a catalog has the constants of its machine, and the corrections."""

MEMORY = 0.8
"""The weight of what was expected so far against one observation."""

FARTHEST = 8.0
"""A correction lies between this factor and its inverse: beyond it, something else was measured."""

LEAST_SECONDS = 0.1
"""What is expected to take less tells of fixed costs, of Spark's jobs above all, not of the machine."""

PRODUCT_ROWS = 100.0
"""A table of so few rows is really joined with every row of another."""

Rows = Mapping[Plan, float]
"""Rows of subplans that are known, as of stages that have run."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Seconds that one core takes for a value (scan, kept, write) or a row (build, probe, group, sort), and for a query at all.

    `fixed` is the simplest query, `stage` one that joins and groups a few rows and keeps them: mostly planning.
    """

    scan: float = 1.2e-8
    kept: float = 3e-9
    build: float = 5e-8
    probe: float = 8e-9
    group: float = 1.6e-8
    sort: float = 7e-8
    write: float = 2.7e-8
    fixed: float = 1e-3
    stage: float = 4e-3


class Costs:
    """The costs of one machine, as far as a catalog knows them."""

    def __init__(self, catalog: Path | None = None) -> None:
        self._path = None if catalog is None else catalog / FILE
        self._ratios: dict[str, float] = {}
        self._lock = threading.Lock()
        self.constants = Constants()
        self._measured = False
        self._read()

    def seconds(self, plan: Plan, find_table: FindTable, cores: int = 1, rows: Rows | None = None, kind: str = "exact") -> float:
        """About how long a plan takes on so many cores; `kind` is the kind of work by which it is corrected."""
        known = {each: Size(count, count) for each, count in (rows or {}).items()}
        nodes, sizes = _not_known(plan, known), dict(known)
        for each in reversed(nodes):  # children first, so that each is looked at once
            sizes[each] = _at_most(each, size(each, find_table, sizes), sizes)
        work = sum(self._step(each, sizes, each in known) for each in nodes)
        return self.corrected(kind, self.constants.fixed + work / max(cores, 1))

    def writing(self, rows: float, columns: int) -> float:
        """Seconds to write rows as Parquet."""
        return self.constants.fixed + rows * columns * self.constants.write

    def indexing(self, rows: float, columns: int) -> float:
        """Seconds to read keys and put them in order."""
        return self.constants.fixed + rows * (columns * self.constants.scan + self.constants.sort)

    def corrected(self, kind: str, seconds: float) -> float:
        """What is expected of a kind of work, after what it took before."""
        return seconds * self._ratios.get(kind, 1.0)

    def observe(self, kind: str, expected: float, took: float) -> None:
        """Learn from work that took some seconds, of which `expected`, corrected, were expected."""
        if expected < LEAST_SECONDS:
            return
        with self._lock:
            before = self._ratios.get(kind, 1.0)
            ratio = before * (took / expected) ** (1 - MEMORY)
            self._ratios[kind] = min(max(ratio, 1 / FARTHEST), FARTHEST)

    def measure(self) -> Constants:
        """The constants of this machine: measured where the catalog has none of it, and kept there."""
        if not self._measured:
            self.constants, self._measured = measured(), True
            self.save()
        return self.constants

    def save(self) -> None:
        """Keep what was measured and learnt; without it, the next session begins with less."""
        if self._path is not None and self._measured:
            content = {"machine": _machine(), "constants": asdict(self.constants), "ratios": self._ratios}
            with suppress(EngineError):
                write_durably(self._path, sealed(content).encode())

    def _read(self) -> None:
        if self._path is None or not self._path.exists():
            return
        with suppress(OSError, EngineError, UnicodeDecodeError):  # it is measured again then
            found = opened(self._path.read_text(encoding="utf-8"), dict)
            if found["machine"] == _machine():
                self.constants, self._ratios, self._measured = Constants(**found["constants"]), dict(found["ratios"]), True

    def _step(self, plan: Plan, sizes: Mapping[Plan, Size], known: bool) -> float:
        """Seconds that one core spends in a node itself; the rows of one that is known are there."""
        each = self.constants

        def rows(node: Plan) -> float:
            return sizes[node].rows

        match plan:
            case _ if known or isinstance(plan, Input):
                return rows(plan) * max(1, len(plan.columns)) * each.kept
            case Scan():
                return rows(plan) * max(1, len(plan.fields)) * each.scan
            case Join():
                sides = sorted((rows(plan.left), rows(plan.right)))
                return sides[0] * each.build + sides[1] * each.probe
            case GroupBy():
                return rows(plan.child) * (each.group * _groupings(plan) + each.kept * len(plan.aggregates))
            case Limit(child=Sort() as ordered):
                return rows(ordered.child) * each.probe - rows(ordered.child) * each.sort  # the first rows need no whole order
            case Sort() | Window():
                return rows(plan.child) * each.sort
            case SetOperation() if plan.kind != "union" or not plan.every:
                return (rows(plan.left) + rows(plan.right)) * each.group
        return 0.0


def _not_known(plan: Plan, known: Mapping[Plan, Size]) -> list[Plan]:
    """The nodes of a plan down to those whose rows are there."""
    below = [] if plan in known else [each for child in plan.children for each in _not_known(child, known)]
    return [plan, *below]


def _at_most(plan: Plan, found: Size, sizes: Mapping[Plan, Size]) -> Size:
    """Joins are taken to be by keys, so that none has more rows than the larger side; guesses of several would multiply.

    A product of two large tables stands in a plan only where a later join has the keys of both, which the engine joins first.
    """
    if not isinstance(plan, Join):
        return found
    fewer, more = sorted((sizes[plan.left].rows, sizes[plan.right].rows))
    product = plan.kind == "cross" and fewer <= PRODUCT_ROWS
    return Size(min(found.rows, more * fewer if product else more), found.base)


def _groupings(plan: GroupBy) -> int:
    """How often rows are hashed: for the keys, for each set of them, and for values that count once."""
    once = sum(isinstance(each.expression, AggregateCall) and each.expression.distinct for each in plan.aggregates)
    return (0 if not plan.keys else len(plan.sets or (1,))) + once


def _machine() -> str:
    return f"{platform.node()} {platform.machine()} {os.cpu_count()}"


_ROWS, _BUILT = 100_000, 50_000
_QUERIES = {
    "fixed": "SELECT count(*) FROM one",
    "stage": "CREATE OR REPLACE TEMP TABLE kept_stage AS SELECT g, b, sum(n) AS n FROM ("
    "SELECT x.g, x.b, 1 AS n FROM (SELECT g, b FROM one) AS x JOIN (SELECT a, g FROM one) AS y ON x.g = y.g UNION ALL "
    "SELECT x.g, y.b, 1 FROM (SELECT g FROM one) AS x JOIN (SELECT b FROM one) AS y ON x.g = y.b) GROUP BY g, b HAVING sum(n) <> 0",
    "kept": "SELECT sum(a + b) FROM kept",
    "scan": "SELECT sum(a + b) FROM read_parquet({file})",
    "group": "SELECT count(*) FROM (SELECT g, count(*) FROM kept GROUP BY g)",
    "sort": "SELECT max(p) FROM (SELECT a, row_number() OVER (ORDER BY b) AS p FROM kept)",
    "write": "COPY kept TO {file} (FORMAT parquet)",
    "probe": "SELECT count(*) FROM kept SEMI JOIN one ON kept.g = one.g",
    "build": "SELECT count(*) FROM few JOIN built ON few.b = built.b",
}
_VALUES = {"kept": 2 * _ROWS, "scan": 2 * _ROWS, "write": 3 * _ROWS, "build": _BUILT}
"""Values of which a query of a constant tells; of the others, rows."""


@cache
def measured() -> Constants:
    """The constants of this machine: each the quickest of some runs on one core, since others only make it slower."""
    with tempfile.TemporaryDirectory(prefix="nearly-costs-") as directory, duckdb.connect() as connection:
        file = native_text(str(Path(directory) / "values.parquet"))
        connection.execute("SET threads = 1")
        kept = f"SELECT i AS a, hash(i) % 1000003 AS b, hash(i + 1) % 20000 AS g FROM range({_ROWS}) AS r(i)"
        connection.execute(f"CREATE TABLE kept AS {kept}")
        connection.execute("CREATE TABLE one AS SELECT * FROM kept LIMIT 1")
        connection.execute("CREATE TABLE few AS SELECT * FROM kept")
        connection.execute(f"CREATE TABLE built AS SELECT * FROM kept LIMIT {_BUILT}")
        taken = {name: _quickest(connection, _QUERIES[name].format(file=file)) for name in ("write", *_QUERIES)}
    fixed, stage = taken.pop("fixed"), taken.pop("stage")
    found = {name: max(seconds - fixed, 1e-6) / _VALUES.get(name, _ROWS) for name, seconds in taken.items()}
    found["build"] = max(found["build"] - found["probe"] * _ROWS / _BUILT, found["probe"])
    return Constants(fixed=fixed, stage=stage, **found)


def _quickest(connection: duckdb.DuckDBPyConnection, sql: str, runs: int = 3) -> float:
    """Seconds that this thread, which does the work, has computed; so others who use the machine count little."""
    found = []
    for _ in range(runs):
        began = time.thread_time()
        connection.execute(sql).fetchall()
        found.append(time.thread_time() - began)
    return min(found)
