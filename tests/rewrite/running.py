"""Runs plans over the shop's rows in DuckDB: whole, on several sites, or unit by unit, without files, Spark or sessions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from nearly.engine.jobs.stages import Stage
from nearly.engine.jobs.stages import cut as cut_stages
from nearly.engine.native.engine import Native, Settings
from nearly.plan.nodes import Input, Plan, Scan
from nearly.plan.render import NATIVE, render
from nearly.plan.types import to_arrow
from nearly.rewrite.stream.cut import UNIT, Cut
from tests.fixtures.agreement import difference
from tests.rewrite import shop

SITES, UNITS = 3, 7
ROOT = 0.61803398875

Rows = Callable[[Scan], pa.Table]


@cache
def engine() -> Native:
    made = Native()
    made.configure(Settings(1, 500, "UTC"))
    return made


def run(plan: Plan, inputs: Mapping[str, pa.Table] | None = None, rows: Rows = lambda scan: shop.tables()[scan.table]) -> pa.Table:
    """A plan over inputs and, for each scan, some rows of its table."""
    given = dict(inputs or {})

    def source(leaf: Scan | Input) -> exp.Expr:
        if isinstance(leaf, Input):
            return exp.Table(this=exp.to_identifier(leaf.source, quoted=True))
        name = f"rows_{len(given)}"
        given[name] = rows(leaf)
        return exp.Table(this=exp.to_identifier(name, quoted=True))

    return engine().run(render(plan, NATIVE, source), (), given)


def on_sites(plan: Plan) -> pa.Table:
    """A plan with exchanges, every stage on its sites, over their shares of the tables."""
    tail = cut_stages(plan, SITES)
    return run(tail.plan, {each.name: _sent(each, 1)[0] for each in tail.inputs})


def _sent(stage: Stage, consumers: int) -> list[pa.Table]:
    """What a stage sends to each of the tasks that read it."""
    given = {each.name: _sent(each, stage.width) for each in stage.inputs}
    scans = [node for node in stage.plan.walk() if isinstance(node, Scan)]
    made = pa.concat_tables(
        run(stage.plan, {name: parts[site] for name, parts in given.items()}, lambda scan: _share(scan, scans, site, SITES))  # noqa: B023
        for site in range(stage.width)
    )
    match stage.exchange.kind:
        case "hash":
            keys = [made[key.name].to_pylist() for key in stage.exchange.keys]
            places = [hash(row) % consumers for row in zip(*keys, strict=True)]
            return [_where(made, [place == site for place in places]) for site in range(consumers)]
        case "broadcast":
            return [made] * consumers
    return [made, *[made.slice(0, 0)] * (consumers - 1)]


def by_units(cut: Cut, inputs: Mapping[str, pa.Table] | None = None, units: Iterable[int] = range(UNITS)) -> dict[str, pa.Table]:
    """The rows of all stages after some units were read, one after the other; no row is decided on unless ranges are given."""
    found = {}
    waiting = [each.ranges for stage in cut.stages if stage.waiting is not None for each in stage.waiting.decision.lookups]
    inputs = {each.source: _nothing(each) for each in waiting} | dict(inputs or {})
    for stage in cut.stages:
        rows = [run(stage.plan, inputs, lambda scan: _unit(scan, cut, unit)) for unit in units] if stage.streamed else []  # noqa: B023
        found[stage.name] = pa.concat_tables(rows) if rows else run(stage.plan)
    return found


def _nothing(plan: Plan) -> pa.Table:
    return pa.schema([(column.name, to_arrow(column.type)) for column in plan.columns]).empty_table()


def _unit(scan: Scan, cut: Cut, unit: int) -> pa.Table:
    """The rows of one unit, with the column that tells it; a table that is not streamed is read whole."""
    table = shop.tables()[scan.table]
    if scan.share != "units":
        return table
    rows = _share(scan, cut.scans, unit, UNITS, cut.ranged)
    return rows.append_column(UNIT, pa.array([unit] * rows.num_rows, pa.int32()))


def _share(scan: Scan, together: Iterable[Scan], part: int, parts: int, ranged: bool = True) -> pa.Table:
    """The rows of a scan in one part of several: by ranges or hashes of a key where equal ones must meet, else anyhow."""
    table, known = shop.tables()[scan.table], shop.schema(scan.table)
    layouts = {each.name: each for other in together for each in shop.schema(other.table).hashed if other.layout == each.name}
    numbers = range(table.num_rows)
    if scan.share == "all":
        return table
    if scan.layout in layouts:
        fewest = min(each.buckets for each in layouts.values())
        keys = table[layouts[scan.layout].columns[0]].to_pylist()
        return _where(table, [hash(key) % fewest % parts == part for key in keys])
    if known.ranges_of is not None and (scan.share == "range" or (scan.share == "units" and ranged)):
        keys, cuts = table[known.ranges_of].to_pylist(), _cuts(parts)
        return _where(table, [(0 if key is None else bisect_right(cuts, key)) == part for key in keys])
    if scan.layout == "shuffled":
        return _where(table, [int(number * ROOT % 1 * parts) == part for number in numbers])
    return _where(table, [number * parts // table.num_rows == part for number in numbers])


def _cuts(parts: int) -> list[int]:
    """Where ranges of keys end, the same for all tables."""
    columns = [(table, shop.schema(name).ranges_of) for name, table in shop.tables().items()]
    found = sorted({key for table, name in columns if name is not None for key in table[name].to_pylist() if key is not None})
    return [found[len(found) * place // parts] for place in range(1, parts)] if found else []


def _where(table: pa.Table, wanted: list[bool]) -> pa.Table:
    return table.filter(pa.array(wanted, pa.bool_()))


def rows_differ(expected: pa.Table, found: pa.Table, text: str = "select 1", numbers: bool = False) -> str | None:
    """The first difference between the rows of two plans, or None; with `numbers`, values are compared as doubles."""
    found = found.select(expected.column_names)
    return difference(*(_as_doubles(each) if numbers else each for each in (expected, found)), text)


def _as_doubles(table: pa.Table) -> pa.Table:
    types = [pa.float64() if pa.types.is_integer(t) or pa.types.is_decimal(t) else t for t in table.schema.types]
    columns = [pc.cast(column, kind) for column, kind in zip(table.columns, types, strict=True)]
    return pa.table(columns, table.column_names)
