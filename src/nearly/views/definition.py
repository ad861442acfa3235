"""A view's text as plans: what it stores and how that is read, over tables in one version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

from nearly.engine.changes.positions import OWN_NAMES
from nearly.engine.deltas.versions import scans_of
from nearly.engine.engine import Engine
from nearly.engine.planner import Prepared
from nearly.engine.storage.catalog import Catalog, Snapshot
from nearly.engine.storage.layouts import AT, Table
from nearly.errors import NearlyError, SchemaError, Unsupported, unknown
from nearly.plan.nodes import Plan, Scan
from nearly.plan.remembered import Remembered
from nearly.plan.schema import SchemaColumn
from nearly.plan.types import IntervalType, is_simple
from nearly.rewrite.delta.changed import WEIGHT
from nearly.rewrite.views.split_view import StoredView, split_view
from nearly.rewrite.views.time_zones import hangs_on_zone

REMEMBERED = 256
"""Views whose plans are remembered."""


@dataclass(frozen=True, slots=True)
class PlannedView:
    """A view over tables in one version; `stored` is None where only Spark knows what the text means, and all is kept.

    `zone` is the session's time zone, where the rows hang on it.
    """

    prepared: Prepared
    stored: StoredView | None
    columns: tuple[SchemaColumn, ...]
    key: tuple[str, ...]
    zone: str | None = None

    @property
    def inputs(self) -> tuple[Table, ...]:
        """The tables and views that it is made of."""
        return self.prepared.snapshot

    @property
    def reads(self) -> dict[str, list[str]]:
        """The columns that its query reads, by table; none where that only Spark knows."""
        found: dict[str, dict[str, None]] = {}
        for scan in scans_of(self.stored.kept) if self.stored is not None else ():
            found.setdefault(scan.table.partition(AT)[0], {}).update(dict.fromkeys(each.source for each in scan.fields))
        return {table: list(columns) for table, columns in found.items()}

    @property
    def is_plain(self) -> bool:
        """Whether rows can be changed one by one: of types that are not nested."""
        return all(is_simple(column.type) for column in self.columns)


def plan_view(engine: Engine, text: str, tables: Iterable[Table] = (), key: tuple[str, ...] = ()) -> PlannedView:
    """The plans of a query to be kept, over some tables as they are given and all others as they are now."""
    given = tuple(tables)
    planner = engine.planner
    prepared = planner.over(_Loosened(engine.catalog, given)).prepare(text)
    if prepared.query is None:  # over columns that hold no null the native kernel may take it
        prepared = planner.over(Snapshot(engine.catalog, given)).prepare(text)
    prepared = engine.named(prepared)
    names = tuple(name for name, _ in engine.columns(prepared))
    _refuse_names(names)
    _refuse_own(names, [column for table in prepared.snapshot for column in table.column_names])
    stored = None
    if prepared.query is not None and prepared.kernel == "native":
        snapshot = Snapshot(engine.catalog, prepared.snapshot)
        stored = split_view(_in_any_version(prepared.query.plan), names, snapshot.schema)
        kinds = [(name, column.type) for name, column in zip(stored.columns, stored.maintained.columns, strict=True)]
    else:
        kinds = list(engine.columns(prepared))
    for name, kind in kinds:
        if isinstance(kind, IntervalType) or kind.name == "void":
            raise Unsupported(f"column {name!r} is {kind}, which no table can hold; cast it to another type")
    columns = tuple(SchemaColumn(name, kind) for name, kind in kinds)
    local = stored is None or prepared.query is None or hangs_on_zone(prepared.query.plan)
    return PlannedView(prepared, stored, columns, _key(stored, columns, key), engine.cluster.time_zone if local else None)


class _Loosened(Snapshot):
    """A catalog whose tables may hold nulls everywhere but in their keys: what a view stores must not hang on whether they do."""

    def __init__(self, catalog: Catalog, tables: Iterable[Table]) -> None:
        super().__init__(catalog, tables)
        self._made: dict[int, tuple[Table, Table]] = {}

    def table(self, name: str) -> Table:
        found = super().table(name)
        if id(found) not in self._made:
            columns = tuple(replace(each, nullable=each.nullable or each.name not in found.key) for each in found.columns)
            self._made[id(found)] = found, replace(found, columns=columns)
        return self._made[id(found)][1]


def _in_any_version(plan: Plan) -> Plan:
    """The plan without the versions of its tables, so that it is the same from refresh to refresh."""
    return plan.transform(lambda node: replace(node, version=0) if isinstance(node, Scan) else node)


def planned_again(engine: Engine, name: str, text: str, tables: Iterable[Table], key: tuple[str, ...]) -> PlannedView:
    """The plans of a view that exists; where its tables no longer fit its text, the error says whose it is."""
    try:
        return plan_view(engine, text, tables, key)
    except NearlyError as trouble:
        raise type(trouble)(f"view {name!r} does not fit its tables any more: {trouble}") from trouble


class RememberedPlans:
    """The plans of views, made once for tables whose columns stay the same. Law: what is given is what planning again would give.

    What a user's function is, or who would run a query that the native kernel leaves to Spark, may change without the tables.
    """

    def __init__(self) -> None:
        self._known: Remembered[Hashable, PlannedView] = Remembered(REMEMBERED)

    def of(self, engine: Engine, name: str, text: str, tables: Iterable[Table], key: tuple[str, ...]) -> PlannedView:
        given = {table.name.lower(): table for table in tables}
        asked = (
            text,
            key,
            engine.cluster.time_zone,
            tuple((each.name, each.columns, each.key, each.view) for each in given.values()),
        )
        found = self._known.get(asked)
        if found is not None:
            snapshot = tuple(replace(given[each.name.lower()], columns=each.columns) for each in found.inputs)
            return replace(found, prepared=replace(found.prepared, snapshot=snapshot))
        planned = planned_again(engine, name, text, given.values(), key)
        lasts = planned.stored is not None and not planned.prepared.functions
        if lasts and all(each.name.lower() in given for each in planned.inputs):
            self._known.add(asked, planned)
        return planned


def stored_groups(table: Table, stored: StoredView) -> dict[Plan, Plan]:
    """Where the groups of a view can be read, in the form in which they are brought up to date."""
    return dict(zip((stored.kept,), stored.groups_in(table.schema).values(), strict=False))


def loosened(table: Table, was: Table | None) -> Table:
    """The table with columns that may be null where they may in either version."""
    known = {} if was is None else {column.name: column.nullable for column in was.columns}
    columns = tuple(replace(each, nullable=each.nullable or known.get(each.name, False)) for each in table.columns)
    return table if columns == table.columns else replace(table, columns=columns)


def is_stored_so(table: Table, planned: PlannedView) -> bool:
    """Whether a view's stored table has the columns that its plan gives."""
    mine = [(column.name, column.type) for column in table.columns]
    return mine == [(column.name, column.type) for column in planned.columns] and table.key == planned.key


def _refuse_names(names: tuple[str, ...]) -> None:
    twice = [name for name, count in Counter(name.lower() for name in names).items() if count > 1]
    if twice:
        raise SchemaError(
            f"two columns of the view are called {twice[0]!r} (case does not count); give one of them another name by AS"
        )
    if not names:
        raise SchemaError("a view needs at least one column")


def _refuse_own(names: Iterable[str], read: Iterable[str]) -> None:
    """Changes have a column of their own beside those of a table, and stored rows have some when they are looked for."""
    if any(name.lower() == WEIGHT for name in (*names, *read)):
        raise Unsupported(f"no view can have or read a column {WEIGHT!r}: nearly needs the name for itself; give it another")
    for name in names:
        if name.lower() in OWN_NAMES:
            raise Unsupported(f"no view can have a column {name!r}: nearly needs the name for itself; give it another")


def _key(stored: StoredView | None, columns: tuple[SchemaColumn, ...], declared: tuple[str, ...]) -> tuple[str, ...]:
    """The stored columns that identify a row: those the user named, else what the plan tells."""
    if not declared:
        return () if stored is None else stored.key
    names = {column.name.lower(): column.name for column in columns}
    shown = None if stored is None or stored.reading is None else {name.lower() for name in stored.reading.names}
    for name in declared:
        if not isinstance(name, str):
            raise SchemaError(f"key={declared!r} must be names of the view's columns")
        if name.lower() not in names or (shown is not None and name.lower() not in shown):
            raise unknown("column", name, [column.name for column in columns if shown is None or column.name.lower() in shown])
    if len({name.lower() for name in declared}) < len(declared):
        raise SchemaError(f"key={declared!r} names a column twice")
    return tuple(names[name.lower()] for name in declared)
