"""Views whose tables changed: brought up to date from what changed where that is cheaper than making them again.

Law: the rows of a view are those of its plan over the tables in the versions that it names; where that cannot be had surely, as for
sums of doubles, whose last digits hang on the order of adding, it is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import duckdb
import pyarrow as pa

from nearly.autoview.estimates import ViewEstimates, finding
from nearly.autoview.store import Encoded, MadeView, NoRoom, encoded
from nearly.engine.deltas.net_change import net_change, planned_delta
from nearly.engine.deltas.versions import versions_of
from nearly.engine.engine import Engine
from nearly.engine.native.failures import NativeFailure, read_in_batches
from nearly.engine.native.running import Running
from nearly.engine.plans import BrokenOff
from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.layouts import Table
from nearly.errors import NearlyError, UnknownName
from nearly.plan.depth import deep_recursion
from nearly.plan.nodes import Limit, Plan
from nearly.plan.quoting import native_name
from nearly.plan.types import FRACTIONS
from nearly.rewrite.delta.strategy.open_rows import has_open_rows

STAGE_SECONDS = 0.004
"""What a stage of a change takes that has few rows."""
FEW = 0.2
"""So large a part of the tables may have changed; of more, making the view again is taken to be cheaper."""


class Lost(Exception):
    """Why a view is not brought up to date."""


def present(catalog: Catalog, view: MadeView) -> dict[str, Table] | None:
    """The tables of a view as they are now, by name in lower case; None where one is gone."""
    try:
        return {table.name.lower(): table for table in catalog.together(view.versions)}
    except UnknownName:
        return None


@deep_recursion()
def moved(
    estimates: ViewEstimates, view: MadeView, tables: Mapping[str, Table], making: float, most: int, running: Running
) -> Encoded:
    """The rows of a view over its tables as they are now; `Lost` where they cannot be had cheaper than by making it again.

    Interrupting `running` ends it with `BrokenOff`.
    """
    engine, stored = estimates.engine, view.candidate.stored
    if any(column.type in FRACTIONS for column in stored.maintained.columns):
        raise Lost("it has sums of doubles")
    if isinstance(stored.maintained, Limit):
        raise Lost("which rows come after those that go is not known")
    if has_open_rows(stored.maintained, finding(tables.values())):
        raise Lost("SQL leaves open which rows it has: what went, computed again, may not be what it stores")
    before = _before(engine.catalog, view, tables)
    pinned = engine.at([*tables.values(), view.table])
    groups = stored.groups_in(view.table.schema)
    try:
        expected = _expected(estimates, pinned, view, before, tables, groups)
        if expected >= making:
            raise Lost(f"following its tables is expected to take {expected:.3f} s, making it again {making:.3f} s")
        rows = net_change(pinned, stored.maintained, before, dict(tables), groups, background=running).rows
        return encoded(view.candidate, _applied(pinned, view, rows, running), most)
    except (NearlyError, NativeFailure, NoRoom) as trouble:
        engine.life.refuse_over()
        raise Lost(str(trouble)) from trouble


def _before(catalog: Catalog, view: MadeView, tables: Mapping[str, Table]) -> dict[str, Table]:
    """The tables that changed, as the view knows them."""
    found = {}
    changed = rows = 0
    for name, (version, content) in view.versions.items():
        rows += tables[name].rows
        if tables[name].content == content:
            continue
        try:
            was = catalog.at(tables[name].name, version)
        except NearlyError:
            raise Lost(f"what {name!r} was is not known any more") from None
        logged = catalog.batches(tables[name].name, version, tables[name].version)
        if was.content != content or len(logged) < tables[name].version - version:
            raise Lost(f"what changed in {name!r} is not known")
        changed += sum(each.came + each.gone for each in logged.values())
        found[name] = was
    if changed > FEW * max(rows, 1):
        raise Lost(f"{changed:,} rows changed")
    return found


def _expected(
    estimates: ViewEstimates,
    pinned: Engine,
    view: MadeView,
    before: Mapping[str, Table],
    after: Mapping[str, Table],
    groups: Mapping[Plan, Plan],
) -> float:
    """Seconds of bringing a view up to date: the stages of its change, and reading and writing all its rows."""
    stored = view.candidate.stored
    tables = versions_of(pinned, stored.maintained, before, after, groups.values())
    change = planned_delta(stored.maintained, tables, groups)
    moved_rows = sum(each.most_rows for each in tables.moved.values())
    constants = estimates.engine.costs.constants
    cores = max(1, estimates.engine.cluster.sites.cores)
    others = sum(table.rows for table in tables.same if table.name != view.name)
    stages = 0 if change is None else len(change.stages) + 1
    seconds = stages * STAGE_SECONDS + (moved_rows * 10 + others) * constants.scan / cores
    return seconds + view.table.rows * len(view.table.columns) * (constants.scan + constants.write + constants.group) / cores


def _applied(pinned: Engine, view: MadeView, change: pa.Table, running: Running) -> Iterator[pa.RecordBatch]:
    """The stored rows with what came and without what went, as a bag; `Lost` where something went that was not there.

    Interrupting `running` ends it with `BrokenOff`.
    """
    names = list(view.candidate.stored.columns)
    weight = "nearly_weight"
    given = change.rename_columns([*names, weight])
    columns = ", ".join(map(native_name, names))
    stored = pinned.native.reader.whole(view.table, view.table.base, names).sql(dialect="duckdb")
    both = f"SELECT {columns}, 1 AS {weight} FROM ({stored}) UNION ALL SELECT {columns}, {weight} FROM nearly_change"
    grouped = f"SELECT {columns}, sum({weight})::BIGINT AS {weight} FROM ({both}) GROUP BY {columns} HAVING sum({weight}) <> 0"
    local = pinned.native.local
    local.configure(pinned.native.settings)
    try:
        with pinned.reading([view.table]), local.cursor(running) as cursor:
            cursor.register("nearly_change", given)
            cursor.execute(f"CREATE OR REPLACE TEMP TABLE nearly_moved AS {grouped}")
            ((least,),) = cursor.execute(f"SELECT min({weight}) FROM nearly_moved").fetchall()  # all: it is in use until then
            if least is not None and least < 0:
                raise Lost("rows went that it did not have")
            shown = f"SELECT {columns} FROM (SELECT *, unnest(range({weight})) FROM nearly_moved)"
            yield from read_in_batches(cursor.sql(shown), 131_072)
    except duckdb.InterruptException as trouble:
        raise BrokenOff from trouble
    except duckdb.Error as trouble:
        raise Lost(str(trouble)) from trouble
