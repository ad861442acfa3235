"""A standing query as it is maintained: its plan in the form whose parts can be kept, right for all versions of its tables."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

from nearly.engine.engine import Engine
from nearly.engine.planner import Prepared
from nearly.engine.storage.catalog import Snapshot
from nearly.engine.storage.layouts import Table
from nearly.plan.nodes import BoundQuery, Plan, Scan
from nearly.plan.schema import FindTable
from nearly.plan.syntax.volatile import is_volatile
from nearly.plan.types import DataType
from nearly.rewrite.delta.changed import WEIGHT
from nearly.rewrite.delta.narrowed import narrowed
from nearly.rewrite.delta.strategy.drift import hangs_on_drift
from nearly.rewrite.delta.strategy.open_rows import has_open_rows, settle_ties
from nearly.rewrite.delta.with_partials import with_partials
from nearly.rewrite.logical.order_joins import order_joins
from nearly.rewrite.logical.prune import prune
from nearly.rewrite.views.split_view import is_of_session


@dataclass(frozen=True, slots=True)
class Maintained:
    """A query's text, the tables it reads, and its plan; without one, answers are computed as a whole, and `reason` says why."""

    text: str
    tables: tuple[str, ...]
    names: tuple[str, ...]
    plan: Plan | None
    reason: str | None

    @property
    def ages(self) -> bool:
        """Whether an answer is another one later on, though no table changed: the native kernel takes no such query."""
        return self.plan is None and is_volatile(self.text)

    @property
    def query(self) -> BoundQuery:
        if self.plan is None:
            raise AssertionError("a query without a plan is run by its text")
        return BoundQuery(self.plan, self.names)


def maintained(engine: Engine, text: str, tables: Iterable[Table] | None = None) -> Maintained:
    """A query over tables whose content will change: any of their columns may come to hold nulls.

    It is bound to these descriptions of its tables, else to the present ones.
    """
    prepared = engine.prepare(text) if tables is None else prepared_over(engine, text, tables)
    read = tuple(table.name for table in prepared.snapshot)
    plan, reason = _plan(engine, prepared)
    names = prepared.query.names if prepared.query is not None else ()
    return Maintained(prepared.text, read, names, plan, reason)


def prepared_over(engine: Engine, text: str, tables: Iterable[Table]) -> Prepared:
    """A query over tables as they are described here."""
    return engine.named(engine.planner.over(engine.at(tables).catalog).prepare(text))


def basis(engine: Engine, tables: Mapping[str, Table]) -> Hashable:
    """What a plan and its rows hang on beside the rows of tables: settings of Spark, and what tables are called, typed and read as.

    Law: a plan that is right for a version of its tables is right for all versions of the same basis.
    """
    described = ((name, table.key, table.schema.reading, _typed(table)) for name, table in sorted(tables.items()))
    return engine.cluster.time_zone, engine.cluster.ansi, tuple(described)


def _typed(table: Table) -> tuple[tuple[str, DataType], ...]:
    return tuple((column.name, column.type) for column in table.columns)


def _plan(engine: Engine, prepared: Prepared) -> tuple[Plan | None, str | None]:
    if prepared.query is None or prepared.kernel != "native":
        return None, prepared.reason
    if any(column.lower() == WEIGHT for table in prepared.snapshot for column in table.column_names):
        return None, f"a table has a column {WEIGHT!r}, by which changes are told"
    loose = Snapshot(engine.catalog, [_nullable(table) for table in prepared.snapshot])
    bound = engine.planner.over(loose).bound(prepared.text).plan
    if any(map(is_of_session, bound.walk())):
        return None, "a Python function may give another value for the same row"
    ordered = narrowed(settle_ties(prune(order_joins(bound, loose.schema)), loose.schema))
    plan = with_partials(ordered.transform(_of_any_version))
    refusal = engine.at(prepared.snapshot).native.refusal(plan)
    return (plan, None) if refusal is None else (None, refusal)


def is_settled(plan: Plan, find_table: FindTable) -> bool:
    """Whether a part of a plan has the same rows each time it is computed over the same tables.

    Only such rows are kept: the change of others is between rows that need not be those that are kept. What is above them is
    computed anew with each answer, in one go.
    """
    return not has_open_rows(plan, find_table) and not any(map(hangs_on_drift, plan.walk()))


def _nullable(table: Table) -> Table:
    return replace(table, columns=tuple(replace(column, nullable=True) for column in table.columns))


def _of_any_version(node: Plan) -> Plan:
    return replace(node, version=0) if isinstance(node, Scan) else node


def present(engine: Engine, query: Maintained) -> dict[str, Table]:
    """The tables of a query as they are now, by name in lower case, as some one transaction left them."""
    return {table.name.lower(): table for table in engine.catalog.together(query.tables)}


def versions(tables: Mapping[str, Table]) -> dict[str, int]:
    """The versions of tables, by name."""
    return {table.name: table.version for table in tables.values()}
