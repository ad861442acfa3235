"""A view of which some tickets are clean: what changed there, as rows of its stored table.

Law of correspondence: the stored rows with tickets below the bound, without those whose key changed, and the clean rows are exactly
the fresh view's rows with these tickets; superfluous rows are gone, missing ones are there as often as tickets fall on them, and
what did not change has its key in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import FALSE, TRUE, Column, Expression, Literal, same
from nearly.plan.nodes import Field, Input, Join, Output, Plan, Project, Scan, SetOperation
from nearly.plan.types import BOOLEAN, INT, from_arrow
from nearly.rewrite.sample.sampled_query import UNIT
from nearly.views.sampling.strata import STORED, SURE_NEW, SURE_OLD, Strata

Integers = NDArray[np.int64]

CHANGED, NEW, PIECES, DRAWN = "sample_changed", "sample_new", "sample_pieces", "sample_drawn"
"""Inputs: keys that changed, clean rows of them, old and new rows with units, and stored rows that were drawn with units."""

STALE_ROW = Column(BOOLEAN, "sample_stale_row")


@dataclass(frozen=True, slots=True)
class SampledRows:
    """Stored rows, their tickets, and which of them are known for sure."""

    table: pa.Table
    tickets: Integers
    sure: NDArray[np.bool_]

    @classmethod
    def drawn(cls, table: pa.Table, tickets: Integers) -> SampledRows:
        return cls(table, tickets, np.zeros(len(tickets), dtype=bool))

    def and_of(self, other: SampledRows) -> SampledRows:
        table = pa.concat_tables([self.table, other.table.select(self.table.column_names)])
        return SampledRows(table, np.concatenate([self.tickets, other.tickets]), np.concatenate([self.sure, other.sure]))

    def units(self, strata: Strata, part: slice, sure: int) -> pa.Table:
        """The rows with their units."""
        units = np.where(self.sure, sure, strata.units_of(part, self.tickets)).astype(np.int32)
        return self.table.append_column(UNIT.name, pa.array(units, pa.int32()))


@dataclass(frozen=True, slots=True)
class CleanSample:
    """`new` are the clean rows of keys that changed, `old` the stored ones; `changed` are these keys.

    `key` identifies a stored row, `drawn_by` are the columns that tickets are drawn for. `sure` are keys of rows that are clean
    whatever their ticket: the outliers. All columns have the names of the stored table. No row has gone as
    far as its columns in `lasting` tell.
    """

    share: float
    key: tuple[str, ...]
    drawn_by: tuple[str, ...]
    new: SampledRows
    old: SampledRows
    changed: pa.Table
    sure: pa.Table | None = None
    lasting: frozenset[str] = frozenset()
    _inputs: dict[str, pa.Table] = field(default_factory=dict, compare=False, repr=False)

    @property
    def strata(self) -> Strata:
        return Strata(self.share)

    @property
    def inputs(self) -> dict[str, pa.Table]:
        """What plans over the sample read beside the stored rows."""
        if not self._inputs:
            strata = self.strata
            pieces = [self.new.units(strata, strata.new, SURE_NEW), self.old.units(strata, strata.old, SURE_OLD)]
            self._inputs.update({CHANGED: self.changed, NEW: self.new.table, PIECES: pa.concat_tables(pieces)})
        return self._inputs

    def weighted(self, scan: Scan) -> Plan:
        """The stored rows, those that were drawn, and the old and new ones, with the scan's columns and the unit of each."""
        fresh = FreshNames("weighted")
        stored = Project(scan, (*_renamed(scan, scan.columns, fresh), Output(fresh("unit"), Literal(INT, STORED))))
        found: Plan = stored
        for source in (PIECES, DRAWN):
            found = SetOperation(found, given(scan, source, fresh, (UNIT,)), "union", True, (*scan.columns, UNIT))
        return found

    def clean(self, scan: Scan, drawn: bool = False) -> Plan:
        """Stored rows without those of keys that changed, and the clean ones for these: all of them, or those that were drawn.

        The last column, `STALE_ROW`, tells which are stored ones.
        """
        fresh = FreshNames("clean")
        own = {each.source: each for each in scan.fields}
        types = {each.name: each.type for each in _columns(self.changed)}
        extra = tuple(Field(fresh(name), name, types[name]) for name in self.key if name not in own)
        whole = replace(scan, fields=(*scan.fields, *extra))
        rows: Plan = given(whole, DRAWN, fresh, ()) if drawn else whole
        columns = dict(zip((each.source for each in whole.fields), rows.columns, strict=True))
        keys = [Output(fresh(name), Column(types[name], name)) for name in self.key]
        gone = Project(Input(CHANGED, tuple(Column(types[name], name) for name in self.key)), tuple(keys))
        condition = same([columns[name] for name in self.key], [each.column for each in keys])
        assert condition is not None  # noqa: S101  there is a key
        shown = _renamed(scan, rows.columns[: len(scan.fields)], fresh)
        kept = Project(Join(rows, gone, "anti", condition), (*shown, Output(fresh("stale"), TRUE)))
        new = given(scan, NEW, fresh, ())
        clean = Project(new, (*_renamed(scan, new.columns, fresh), Output(fresh("stale"), FALSE)))
        return SetOperation(kept, clean, "union", True, (*scan.columns, STALE_ROW))


def given(scan: Scan, source: str, fresh: FreshNames, extra: tuple[Column, ...]) -> Plan:
    """Rows that are given under the names of the stored table, under names of their own."""
    fields = tuple(dict.fromkeys(Column(each.type, each.source) for each in scan.fields))
    values: list[Expression] = [Column(each.type, each.source) for each in scan.fields]
    outputs = [Output(fresh(each.name), value) for each, value in zip(scan.fields, values, strict=True)]
    return Project(Input(source, (*fields, *extra)), (*outputs, *(Output(fresh(each.name), each) for each in extra)))


def _renamed(scan: Scan, columns: Sequence[Column], fresh: FreshNames) -> tuple[Output, ...]:
    return tuple(Output(fresh(each.name), column) for each, column in zip(scan.fields, columns, strict=True))


def _columns(table: pa.Table) -> list[Column]:
    return [Column(from_arrow(each.type), each.name) for each in table.schema]
