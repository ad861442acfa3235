"""Cleaning a sample of a stale view: how its rows with certain tickets changed, without a look at the others.

The view's own plan is sampled by tickets, pushed down as far as it goes, and the change of the sampled plan is the change of the
sample (SVC's C = M under the hash operator): change(sample(P)) = sample(change(P)), since a test of tickets treats every row by
itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearly.engine.changes.positions import run_here
from nearly.engine.deltas.net_change import net_change
from nearly.engine.engine import Engine
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.ticket_order import files_below
from nearly.errors import Unsupported
from nearly.plan.expressions import FALSE, TRUE, Call, Column, Expression, same
from nearly.plan.functions.tickets import TICKETS, drawn, ticket
from nearly.plan.nodes import Field, Filter, GroupBy, Input, Join, Output, Plan, Project, Scan
from nearly.plan.types import BOOLEAN, to_arrow
from nearly.rewrite.delta.changed import WEIGHT
from nearly.rewrite.passes import rewrite
from nearly.rewrite.sample.push_hash import push_hash
from nearly.views.sampling.sample import CleanSample, SampledRows

_ROWS, _SURE, _PREFIX = "sample_rows_found", "sample_sure_keys", "sample_prefix"


@dataclass(frozen=True, slots=True)
class StaleView:
    """A view between two refreshes: its stored rows, the plan they are the rows of, and its tables as they were and as they are.

    `columns` are the names of the plan's columns in the stored table, `key` those that identify a row.
    No row is gone, or has other values, as far as its columns in `lasting` tell; where that is not known, there are none.
    """

    table: Table
    plan: Plan
    columns: tuple[str, ...]
    key: tuple[str, ...]
    before: Mapping[str, Table]
    after: Mapping[str, Table]
    drawn_by: tuple[str, ...] = ()
    lasting: frozenset[str] = frozenset()
    changes: int | None = None
    """How many rows of the tables changed, where that is known."""

    @property
    def ticket_columns(self) -> tuple[str, ...]:
        return self.drawn_by or self.key

    def column(self, name: str) -> Column:
        """The plan's column that is stored under a name."""
        return self.plan.columns[self.columns.index(name)]


def untouched(view: StaleView) -> CleanSample:
    """A sample of which nothing is clean yet."""
    if not view.key:
        raise Unsupported(
            f"the rows of view {view.table.name!r} have no key, so that no sample of it can be cleaned; give key= to create_view"
        )
    schema = pa.schema([(name, to_arrow(column.type)) for name, column in zip(view.columns, view.plan.columns, strict=True)])
    nothing = SampledRows.drawn(schema.empty_table(), np.empty(0, np.int64))
    keys = nothing.table.select(list(view.key))
    return CleanSample(0.0, view.key, view.ticket_columns, nothing, nothing, keys, lasting=view.lasting)


def cleaned(engine: Engine, view: StaleView, share: float, before: CleanSample | None = None) -> CleanSample:
    """The view with its first share of tickets clean; what was clean before is taken over."""
    known = before or untouched(view)
    if share <= known.share:
        return known
    columns = [view.column(name) for name in view.ticket_columns]
    plan = push_hash(view.plan, columns, share, known.share)
    found = net_change(engine, plan, view.before, view.after, _stored(view, plan, share, known.share))
    rows = found.rows.rename_columns([*view.columns, WEIGHT])
    new, old = (drawn_rows(engine, view, rows.filter(test(rows[WEIGHT], 0))) for test in (pc.greater, pc.less))
    keys = rows.select(list(view.key)).group_by(list(view.key)).aggregate([])
    return CleanSample(
        share, known.key, known.drawn_by, known.new.and_of(new), known.old.and_of(old),
        pa.concat_tables([known.changed, keys]), lasting=known.lasting,
    )  # fmt: skip


def drawn_rows(engine: Engine, view: StaleView, rows: pa.Table) -> SampledRows:
    """Rows of the stored table with their tickets."""
    return SampledRows.drawn(rows.select(list(view.columns)), tickets_of(engine, rows, view))


def drawn_stored(engine: Engine, view: StaleView, sample: CleanSample, columns: Iterable[str]) -> SampledRows:
    """Some columns of the stored rows with tickets in the sample, those of rows that are known for sure apart from it."""
    names = tuple(dict.fromkeys((*columns, *view.key, *view.ticket_columns)))
    fields = tuple(Field(f"drawn_{name}", name, view.column(name).type) for name in names)
    scan = Scan(view.table.name, fields, version=view.table.version)
    known = dict(zip(names, scan.columns, strict=True))
    by = [known[name] for name in view.ticket_columns]
    number = Output("drawn_ticket", ticket(by))
    test: Expression = drawn(by, sample.share)
    inputs: dict[str, pa.Table] = {}
    plan: Plan = scan
    files = files_below(view.table.base, view.ticket_columns, ceil(sample.share * TICKETS)) if not _any(sample.sure) else None
    if files is not None:
        plan = Project(Input(_PREFIX, tuple(Column(known[name].type, name) for name in names)), _named(names, known))
        inputs[_PREFIX] = run_here(engine, engine.native.reader.of_files(view.table, names, files), {})
    sure: Expression = FALSE
    if sample.sure is not None and _any(sample.sure):
        keys = Input(_SURE, tuple(Column(known[name].type, name) for name in view.key))
        renamed = tuple(Output(f"sure_{each.name}", each) for each in keys.columns)
        condition = same([known[name] for name in view.key], [each.column for each in renamed])
        assert condition is not None  # noqa: S101  there is a key
        mark = Output("sure_mark", TRUE)
        plan = Join(plan, Project(keys, (*renamed, mark)), "left", condition)
        inputs[_SURE], sure = sample.sure, Call(BOOLEAN, "isnotnull", (mark.column,))
        test = Call(BOOLEAN, "or", (sure, test))
    outputs = tuple(Output(f"{column.name}_", column) for column in scan.columns)
    found = Project(Filter(plan, test), (*outputs, number, Output("drawn_sure", sure)))
    rows = engine.native.run_here(rewrite(found), inputs)
    table = rows.select(range(len(names))).rename_columns(list(names))
    tickets = np.asarray(rows["drawn_ticket"].to_numpy(), dtype=np.int64)
    return SampledRows(table, tickets, np.asarray(rows["drawn_sure"].to_numpy(zero_copy_only=False), dtype=bool))


def _any(rows: pa.Table | None) -> bool:
    return rows is not None and rows.num_rows > 0


def _named(names: Sequence[str], known: Mapping[str, Column]) -> tuple[Output, ...]:
    return tuple(Output(known[name].name, Column(known[name].type, name)) for name in names)


def tickets_of(engine: Engine, rows: pa.Table, view: StaleView) -> NDArray[np.int64]:
    """The tickets of stored rows."""
    if not rows.num_rows:
        return np.empty(0, np.int64)
    columns = [Column(view.column(name).type, name) for name in view.ticket_columns]
    given = tuple(dict.fromkeys(columns))
    plan = Project(Input(_ROWS, given), (Output("ticket", ticket(columns)),))
    found = engine.native.run_here(plan, {_ROWS: rows.select([column.name for column in given])})
    return np.asarray(found["ticket"].to_numpy(), dtype=np.int64)


def _stored(view: StaleView, plan: Plan, share: float, start: float) -> dict[Plan, Plan]:
    """Where the old rows of the sampled plan lie: in the view, as far as their tickets are asked for."""
    if not isinstance(plan, GroupBy):
        return {}
    fields = tuple(
        Field(f"{column.name}_old", name, column.type) for column, name in zip(view.plan.columns, view.columns, strict=True)
    )
    scan = Scan(view.table.name, fields, version=view.table.version)
    known = dict(zip(view.columns, scan.columns, strict=True))
    rows = Filter(scan, drawn([known[name] for name in view.ticket_columns], share, start))
    outputs = tuple(Output(column.name, old) for column, old in zip(view.plan.columns, scan.columns, strict=True))
    return {plan: Project(rows, outputs)}
