"""Statements that add partial results to kept groups, whose columns are numbered: first the keys, then the partial results.

Law: afterwards each key is there once, with the sums of both, or the least and greatest of both; a sum of no values is null, and a
group without rows is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nearly.engine.deltas.several import PartAddition
from nearly.plan.dialects import native
from nearly.plan.quoting import native_name
from nearly.rewrite.delta.partials import EXTREMES, calls_of


@dataclass(frozen=True, slots=True)
class _Result:
    """A column of partial results: its number, its type, the order by which it is the best of all, and the count of its values."""

    number: int
    type: str
    best: str | None
    count: int | None


def anew(table: str, addition: PartAddition) -> str:
    """All groups with what is added to them."""
    keys = [f"c{number}" for number in range(_keys(addition))]
    shown = [*keys, *(f"{_of_all(each)} AS c{each.number}" for each in _results(addition))]
    rows = f"SELECT * FROM {table} UNION ALL SELECT * FROM ({_numbered(addition)})"
    groups = f" GROUP BY {', '.join(keys)} HAVING sum(c{_alive(addition)}) > 0" if keys else ""
    return f"CREATE OR REPLACE TABLE {table} AS SELECT {', '.join(shown)} FROM ({rows}){groups}"


def merged(table: str, addition: PartAddition) -> str:
    """The groups that are touched, changed where they lie, and new ones."""
    columns = [f"c{number}" for number in range(_keys(addition) + len(addition.added.partials.plan.aggregates))]
    test = " AND ".join(f"kept.{key} IS NOT DISTINCT FROM added.{key}" for key in columns[: _keys(addition)]) or "true"
    sets = ", ".join(f"c{each.number} = {_of_both(each)}" for each in _results(addition))
    return (
        f"MERGE INTO {table} AS kept USING ({_numbered(addition)}) AS added ON {test} WHEN MATCHED THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED THEN INSERT VALUES ({', '.join(f'added.{column}' for column in columns)})"
    )


def without_dead(table: str, addition: PartAddition) -> str:
    """Drops the groups of which no row is left."""
    return f"DELETE FROM {table} WHERE c{_alive(addition)} <= 0"


def _keys(addition: PartAddition) -> int:
    return len(addition.added.partials.plan.keys)


def _alive(addition: PartAddition) -> int:
    return _number(addition, addition.added.partials.alive.name)


def _number(addition: PartAddition, name: str) -> int:
    return [column.name for column in addition.added.partials.plan.columns].index(name)


def _numbered(addition: PartAddition) -> str:
    """What is added, under the numbers of the columns."""
    names = [column.name for column in addition.added.partials.plan.columns]
    shown = ", ".join(f"{native_name(name)} AS c{number}" for number, name in enumerate(names))
    return f"SELECT {shown} FROM ({addition.query})"


def _results(addition: PartAddition) -> Iterator[_Result]:
    found = addition.added.partials
    for output, call in calls_of(found.plan):
        count, kind = found.values.get(output.name), native.type_sql(output.column.type).sql(dialect="duckdb")
        number = None if count is None else _number(addition, count.name)
        yield _Result(_number(addition, output.name), kind, EXTREMES.get(call.function), number)


def _of_all(each: _Result) -> str:
    """As an aggregate over what is kept and what is added."""
    if each.best is not None:
        return f"{each.best}(c{each.number})"
    total = f"CAST(sum(c{each.number}) AS {each.type})"
    return total if each.count is None else f"CASE WHEN sum(c{each.count}) > 0 THEN {total} END"


def _of_both(each: _Result) -> str:
    """Of a group that is kept and the one that is added to it."""
    own, other = f"kept.c{each.number}", f"added.c{each.number}"
    if each.best is not None:
        return f"{'least' if each.best == 'min' else 'greatest'}({own}, {other})"
    total = f"CAST(coalesce({own}, 0) + coalesce({other}, 0) AS {each.type})"
    if each.count is None:
        return total
    return f"CASE WHEN kept.c{each.count} + coalesce(added.c{each.count}, 0) > 0 THEN {total} END"
