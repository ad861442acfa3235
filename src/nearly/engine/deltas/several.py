"""The changes of several parts of one plan at once: for whoever keeps rows of some of them and must bring all up to date.

    with moving(engine, plan, parts, before, after, stored) as found:
        found.changes[part]       # rows with the part's columns and their weight, or what is added to groups; None where nothing is
        found.rows_of(plan)       # the rows of any plan over these tables, or over inputs that the engine has by name

It is open in one cursor of the driver's engine, whose tables of stages are gone when it is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from nearly.engine.deltas.reading import TableReader
from nearly.engine.deltas.sites import DeltaSites
from nearly.engine.deltas.stages import StageRun, StageRunner
from nearly.engine.deltas.versions import Moved, Tables, versions_of
from nearly.engine.deltas.workspace import Workspace
from nearly.engine.engine import Engine
from nearly.engine.jobs.native_kernel import STATIC_ROWS
from nearly.engine.storage.layouts import Table
from nearly.plan.depth import deep_recursion
from nearly.plan.nodes import Input, Plan
from nearly.plan.quoting import native_name
from nearly.rewrite.delta.additions import Addition
from nearly.rewrite.delta.changed import DeltaStage, TableChange
from nearly.rewrite.delta.delta import PartDelta, deltas_of
from nearly.rewrite.delta.waiting import Renewal

TableKeys = tuple[tuple[str, tuple[str, ...]], ...]
"""The columns that tell the rows of tables apart, by their names in lower case."""
UNCHECKED = frozenset({"append", "refresh"})
"""Operations that take rows as they are: nobody looks whether a key of theirs is there already."""


@dataclass(frozen=True, slots=True)
class PartChange:
    """The change of a part: what to put into a FROM clause, its columns in order, and that of the weights; all 1, where `ones`."""

    source: str
    columns: tuple[str, ...]
    weight: str
    ones: bool = False


@dataclass(frozen=True, slots=True)
class PartAddition:
    """What is added to kept groups: a query for it, with the columns of the groups, and the tables that it reads as they were."""

    query: str
    added: Addition
    reads: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PartRenewal:
    """All rows of a part as they are now: a query for them, with the part's columns, and the tables that it reads as they were.

    The query is made when it is asked for: that may mean looking up keys, for which no answer should wait that does not need them.
    """

    query: Callable[[], str]
    columns: tuple[str, ...]
    reads: frozenset[str]


PartMove = PartChange | PartAddition | PartRenewal | None


@dataclass(slots=True)
class Moving:
    """The changes that were found, as long as they are open."""

    tables: Tables
    changes: Mapping[Plan, PartMove]
    _runner: StageRunner

    @property
    def stages(self) -> tuple[StageRun, ...]:
        return tuple(self._runner.runs)

    def make(self, name: str, plan: Plan) -> int:
        """Have the rows of a plan over the new versions in a temporary table; how many there are."""
        self._runner.run(name, plan)
        return self._runner.runs[-1].rows

    def rows_of(self, plan: Plan) -> pa.Table:
        """The rows of a plan over the new versions, in its order."""
        return self._runner.rows(plan)

    def sql(self, plan: Plan) -> str:
        """The query of a plan over the new versions, for a statement of its own."""
        return self._runner.sql(plan)

    def aside(self, name: str, query: str) -> str:
        """Have the rows of a query now; a query for them, which no table that changes later has a part in."""
        self._runner.space.keep(name, query)
        return f"SELECT * FROM {native_name(name)}"

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """What a statement beside the stages gives."""
        return self._runner.space.execute(sql)


@contextmanager
def moving(
    engine: Engine, plan: Plan, parts: Sequence[Plan], before: Mapping[str, Table], after: Mapping[str, Table],
    stored: Mapping[Plan, Plan], few: Collection[Plan] = (),
) -> Iterator[Moving]:  # fmt: skip
    """The changes of parts of a plan between two sets of versions, whose old rows lie where `stored` tells.

    Parts that have `few` rows may be told as a whole.
    A `NativeFailure` or `Unsupported` is for whoever asks to judge: nothing is tried in another way.
    """
    with deep_recursion():
        tables = versions_of(engine, plan, before, after, stored.values())
    pinned = engine.at(tables.all)
    with engine.reading(tables.all), ExitStack() as opened:
        pinned.native.local.configure(pinned.native.settings)
        cursor = opened.enter_context(pinned.native.local.cursor())
        sites = None
        if pinned.cluster.sites.executors > 1:
            own = (*tables.moved.values(), *(None,))[0]
            name = own.after.plain_name if own is not None else tables.same[0].plain_name
            sites = DeltaSites(pinned.native, tables.all, opened.enter_context(pinned.catalog.temporary(name)))
        runner = StageRunner(TableReader.of(pinned.native, tables, plan, stored.values()), Workspace(cursor), sites)
        opened.callback(runner.close)
        with deep_recursion():
            keys = _checked_keys(engine, tables)
            yield Moving(tables, _run(runner, tables, tuple(parts), stored, keys, frozenset(few)), runner)


def _checked_keys(engine: Engine, tables: Tables) -> TableKeys:
    """The keys of tables to which no row came without a look whether its key was there."""
    return tuple((name, key) for name, key in tables.keys if name not in tables.moved or _is_checked(engine, tables.moved[name]))


def _is_checked(engine: Engine, moved: Moved) -> bool:
    """Whether all files that came did with commits that looked at keys: those that a registration found came with none."""
    logged = engine.catalog.batches(moved.after.plain_name, moved.before.version, moved.after.version)
    checked = {file for batch in logged.values() if batch.operation not in UNCHECKED for file in batch.base.files}
    return checked.issuperset(file for part in moved.parts if part.weight > 0 for file in part.files)


def _run(
    runner: StageRunner, tables: Tables, parts: tuple[Plan, ...], stored: Mapping[Plan, Plan], keys: TableKeys, few: frozenset[Plan]
) -> dict[Plan, PartMove]:
    if not tables.moved or not parts:
        return dict.fromkeys(parts)
    large = frozenset(table.name.lower() for table in tables.all if table.rows > STATIC_ROWS)
    stages, found = _deltas(parts, tables.changes, tuple(stored.items()), large, keys, few)
    runner.read_changes((*(stage.plan for stage in stages), *(change.plan for change in found if change is not None)))
    for stage in stages:
        runner.run(stage.name, stage.plan)
    kept = frozenset[str]().union(*map(_sources, stored.values()))
    return {part: _part(runner, change, kept) for part, change in zip(parts, found, strict=True)}


def _part(runner: StageRunner, change: PartDelta, kept: frozenset[str]) -> PartMove:
    """Rows that came and went read nothing that is kept: whoever changes that need not ask who reads it."""
    if isinstance(change, Renewal):
        return _renewal(runner, change.plan)
    query = None if change is None else runner.query(change.plan)
    if change is None or query is None:
        return None
    if isinstance(change, Addition):
        return PartAddition(query, change, _sources(change.plan))
    source = native_name(change.plan.source) if isinstance(change.plan, Input) else f"({query})"
    if not kept.isdisjoint(_sources(change.plan)):
        source = native_name(f"change {len(runner.runs)}")
        runner.run(f"change {len(runner.runs)}", change.plan)
    return PartChange(source, tuple(column.name for column in change.columns), change.weight.name, change.ones)


def _renewal(runner: StageRunner, plan: Plan) -> PartRenewal:
    def query() -> str:
        found = runner.query(plan)
        return runner.sql(plan) if found is None else found

    return PartRenewal(query, tuple(column.name for column in plan.columns), _sources(plan))


def _sources(plan: Plan) -> frozenset[str]:
    return frozenset(node.source for node in plan.walk() if isinstance(node, Input))


@lru_cache(maxsize=256)
def _deltas(
    parts: tuple[Plan, ...],
    changes: tuple[tuple[str, TableChange], ...],
    stored: tuple[tuple[Plan, Plan], ...],
    large: frozenset[str],
    keys: TableKeys,
    few: frozenset[Plan],
) -> tuple[tuple[DeltaStage, ...], tuple[PartDelta, ...]]:
    """The same from refresh to refresh: stages name tables, not versions."""
    return deltas_of(parts, dict(changes), dict(stored), large, dict(keys), few)
