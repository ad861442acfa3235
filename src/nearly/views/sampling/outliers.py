"""Rows of a view that come from outliers of a table are always clean: a stratum of its own, in which every row weighs 1.

A sample says little of few large values, and most of the error of sums comes from them. Which rows are apart must not hang on
tickets, and may be any others: those whose key has a record beyond a threshold in the table, as it was or as it is. The index
goes up with the plan: the view's plan over the outlying records alone gives the keys, joined with all rows of the other tables
(SVC, section 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearly.engine.deltas.net_change import net_change
from nearly.engine.engine import Engine
from nearly.engine.storage.layouts import Table
from nearly.errors import SchemaError, unknown
from nearly.plan import functions
from nearly.plan.expressions import AggregateCall, Call, Column, Expression, Literal, SortKey
from nearly.plan.functions.casting import coerce
from nearly.plan.nodes import Field, Filter, GroupBy, Limit, Output, Plan, Project, Scan, Sort
from nearly.plan.types import BOOLEAN, DOUBLE, is_numeric
from nearly.rewrite.delta.changed import WEIGHT
from nearly.rewrite.passes import rewrite
from nearly.views.sampling.cleaning import StaleView, drawn_rows, untouched
from nearly.views.sampling.sample import CleanSample, SampledRows

DEFAULT_SIZE = 100
MOST_KEYS = 20_000


@dataclass(frozen=True, slots=True)
class OutlierIndex:
    """Records of a table whose column lies beyond a threshold: the `size` largest ones of the table as the view knows it, or those
    more than so many standard deviations from the mean, on both sides, or those outside of a range.
    """

    table: str
    column: str
    size: int | None = None
    deviations: float | None = None
    outside: tuple[float | None, float | None] | None = None

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.size, self.deviations, self.outside)) != 1:
            raise SchemaError(
                "an outlier index has a size, a number of standard deviations, or a range that is not outlying: one of them"
            )
        if self.size is not None and (not isinstance(self.size, int) or self.size < 1):
            raise SchemaError(f"an outlier index of {self.size!r} records is none")
        if self.deviations is not None and (not isinstance(self.deviations, int | float) or not self.deviations >= 0):
            raise SchemaError(f"deviations={self.deviations!r} must be a number that is not negative")

    def range(self, engine: Engine, table: Table) -> tuple[float | None, float | None]:
        """The values that are not outlying lie between these."""
        if self.outside is not None:
            return self.outside
        known = next((each for each in table.columns if each.name.lower() == self.column.lower()), None)
        if known is None:
            raise unknown("column", self.column, [each.name for each in table.columns])
        if not is_numeric(known.type):
            raise SchemaError(f"column {self.column!r} is {known.type}; outliers are numbers")
        field = Field("indexed", known.name, known.type)
        rows = Scan(table.name, (field,), version=table.version)
        value = coerce(Column(known.type, "indexed"), DOUBLE)
        if self.size is not None:
            top = Limit(
                Sort(Project(rows, (Output("value", value),)), (SortKey(Column(DOUBLE, "value"), False, False),)), 1, self.size - 1
            )
            found = engine.native.run_here(rewrite(top))["value"].to_pylist()
            return None, found[0] if found else None
        calls = [Output(name, AggregateCall(DOUBLE, name, (value,))) for name in ("avg", "stddev_pop")]
        row = engine.native.run_here(rewrite(GroupBy(rows, (), tuple(calls)))).to_pylist()[0]
        if row["avg"] is None or self.deviations is None:
            return None, None
        reach = self.deviations * row["stddev_pop"]
        return row["avg"] - reach, row["avg"] + reach


@dataclass(frozen=True, slots=True)
class SureRows:
    """Keys of a view that are clean whatever their tickets: all of them, those that changed, and their new and old rows."""

    keys: pa.Table
    changed: pa.Table
    new: SampledRows
    old: SampledRows


def sure_rows(engine: Engine, view: StaleView, index: OutlierIndex) -> SureRows:
    """The rows of the view that hang on outlying records."""
    name = index.table.lower()
    now = next((table for each, table in view.after.items() if each.lower() == name), None)
    if now is None:
        raise unknown("table", index.table, sorted(view.after))
    was = next((table for each, table in view.before.items() if each.lower() == name), now)
    low, high = index.range(engine.at([was]), was)
    keys = (
        pa.concat_tables([_keys(engine, view, name, index.column, (low, high), tables) for tables in (view.before, view.after)])
        .group_by(list(view.key))
        .aggregate([])
    )
    if keys.num_rows > MOST_KEYS:
        raise SchemaError(f"the outliers of {index.table}.{index.column} are in {keys.num_rows:,} rows of the view; index fewer")
    if not keys.num_rows:
        nothing = untouched(view)
        return SureRows(keys, keys, nothing.new, nothing.old)
    first = max(view.key, key=lambda each: len(pc.unique(keys[each])))
    column = view.column(first)
    values = pc.unique(keys[first]).to_pylist()
    test: Expression = Call(BOOLEAN, "in", (column, *(Literal(column.type, value) for value in values if value is not None)))
    if None in values:
        test = functions.call("or", (test, Call(BOOLEAN, "isnull", (column,))))
    found = net_change(engine, rewrite(Filter(view.plan, test)), view.before, view.after)
    rows = found.rows.rename_columns([*view.columns, WEIGHT])
    rows = rows.take(_among(rows, keys, view.key))
    new, old = (_sure(drawn_rows(engine, view, rows.filter(test(rows[WEIGHT], 0)))) for test in (pc.greater, pc.less))
    changed = rows.select(list(view.key)).group_by(list(view.key)).aggregate([])
    return SureRows(keys, changed, new, old)


def with_sure(sample: CleanSample, sure: SureRows | None) -> CleanSample:
    """The sample with these rows apart from it: membership among them wins."""
    if sure is None or not sure.keys.num_rows:
        return sample
    new, old = (
        _without(mine, sure.keys, sample.key).and_of(theirs) for mine, theirs in ((sample.new, sure.new), (sample.old, sure.old))
    )
    changed = pa.concat_tables([sample.changed, sure.changed]).group_by(list(sample.key)).aggregate([])
    return CleanSample(sample.share, sample.key, sample.drawn_by, new, old, changed, sure.keys, sample.lasting)


def _sure(rows: SampledRows) -> SampledRows:
    return replace(rows, sure=np.ones(len(rows.tickets), dtype=bool))


def _without(rows: SampledRows, keys: pa.Table, key: tuple[str, ...]) -> SampledRows:
    others = np.setdiff1d(np.arange(rows.table.num_rows), _among(rows.table, keys, key))
    return SampledRows(rows.table.take(others), rows.tickets[others], rows.sure[others])


def _among(rows: pa.Table, keys: pa.Table, key: tuple[str, ...]) -> NDArray[np.int64]:
    """The places of the rows whose key is among some."""
    wanted = set(zip(*(map(comparable, keys[name].to_pylist()) for name in key), strict=True))
    found = zip(*(map(comparable, rows[name].to_pylist()) for name in key), strict=True)
    return np.array([place for place, each in enumerate(found) if each in wanted], dtype=np.int64)


def comparable(value: Any) -> Any:
    """A value that is equal to itself: in a key, NaN is NaN."""
    return value if value == value else "NaN"  # noqa: PLR0124


def _keys(
    engine: Engine, view: StaleView, name: str, column: str, inside: tuple[float | None, float | None], tables: Mapping[str, Table]
) -> pa.Table:  # fmt: skip
    """The keys of the view's rows that are made of outlying records, over its tables in one version."""

    def outlying(node: Plan) -> Plan:
        if not isinstance(node, Scan) or node.table.lower() != name:
            return node
        field = next((each for each in node.fields if each.source.lower() == column.lower()), None)
        if field is None:
            raise SchemaError(f"the view does not read column {column!r} of {name!r}, so that its outliers do not matter")
        value = coerce(Column(field.type, field.name), DOUBLE)
        tests = [
            functions.call(sign, (value, Literal(DOUBLE, end)))
            for sign, end in zip(("<=", ">="), inside, strict=True)
            if end is not None
        ]
        test = functions.call("or", tuple(tests)) if len(tests) == 2 else tests[0] if tests else Literal(BOOLEAN, False)
        return Filter(node, test)

    wanted = tuple(Output(each, view.column(each)) for each in view.key)
    plan = GroupBy(view.plan.transform(outlying), wanted, ())
    pinned = engine.at([replace(table, name=each) for each, table in tables.items()])
    return pinned.native.run_here(rewrite(plan))
