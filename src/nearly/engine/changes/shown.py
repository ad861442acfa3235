"""What users see of a table whose stored rows are not theirs: the rows of a view, and what changed in them.

Law: between two versions, what is shown of the earlier one, without the rows that are told to have gone and with those that came,
is what is shown of the later one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from nearly.engine.changes.positions import run_here
from nearly.engine.engine import Engine
from nearly.engine.storage.layouts import Table
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import Column
from nearly.plan.nodes import Field, Filter, Input, Output, Plan, Project, Scan
from nearly.plan.reading import STORED, Reading
from nearly.plan.render import NATIVE, render
from nearly.plan.schema import SchemaColumn
from nearly.plan.types import LONG

_NUMBER = Column(LONG, "nearly_number")


def shown_table(table: Table) -> Table:
    """The table with the columns that users see."""
    reading = table.schema.reading
    if reading is None:
        return table
    columns = tuple(SchemaColumn(name, column.type) for name, column in zip(reading.names, reading.plan.columns, strict=True))
    return replace(table, columns=columns)


def shown_sql(engine: Engine, table: Table) -> str:
    """A query of the driver's engine whose rows are what users see of a table."""
    reading = table.schema.reading
    if reading is None:
        return str(engine.native.reader.whole(table, table.base, table.column_names).sql(dialect="duckdb"))
    fields = tuple(Field(f"{STORED}_{place}", each.name, each.type) for place, each in enumerate(table.columns))
    rows = Scan(table.name, fields)
    read = reading.over(rows, FreshNames("shown"))
    named = Project(read, tuple(Output(name, column) for name, column in zip(reading.names, read.columns, strict=True)))
    kernel = engine.at([table]).native
    return render(named, NATIVE, lambda _: kernel.stored(rows))


def shows_rows(reading: Reading) -> bool:
    """Whether what is shown of a stored row depends on this row alone."""
    return all(isinstance(node, Project | Filter | Input) for node in reading.plan.walk())


def shown_rows(engine: Engine, reading: Reading, stored: pa.Table) -> tuple[pa.Table, NDArray[np.int64]]:
    """What users see of some stored rows, one by one, and the number of the stored row that each is."""
    rows = stored.rename_columns([column.name for column in reading.columns])
    rows = rows.append_column(_NUMBER.name, pa.array(np.arange(rows.num_rows), pa.int64()))
    given = exp.Table(this=exp.to_identifier(STORED, quoted=True))
    found = run_here(engine, render(_carrying(reading.plan), NATIVE, lambda _: given.copy()), {STORED: rows}).sort_by(_NUMBER.name)
    shown = found.drop_columns([_NUMBER.name]).rename_columns(list(reading.names))
    return shown, found[_NUMBER.name].to_numpy()


def _carrying(plan: Plan) -> Plan:
    """The plan with the number of the stored row as one more column."""
    match plan:
        case Input():
            return replace(plan, given=(*plan.given, _NUMBER))
        case Project():
            return Project(_carrying(plan.child), (*plan.outputs, Output(_NUMBER.name, _NUMBER)))
    return plan.map_children(_carrying)
