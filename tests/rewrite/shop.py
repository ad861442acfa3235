"""Small tables that claim to be large: rewriting goes by what it is told of them, and their few rows show whether it was right.

`event` and `visit` are clustered by their keys, `other` is not, `kind` is small, `buy` and `sell` have layouts by a hash of their
keys, and `noise` has a shuffled layout. Keys repeat, some meet nothing, some values are null.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import cache

import pyarrow as pa

from nearly.plan.binding.query import bind
from nearly.plan.nodes import GroupBy, Plan
from nearly.plan.schema import HashedLayout, SchemaColumn, TableSchema
from nearly.plan.syntax.parse import parse_query
from nearly.plan.types import from_arrow
from nearly.rewrite.passes import rewrite


@cache
def tables() -> dict[str, pa.Table]:
    """All tables by name."""
    i = range(60)
    event = {
        "k": pa.array([n // 3 for n in i], pa.int64()),
        "kind": pa.array([None if n % 11 == 0 else n % 4 for n in i], pa.int32()),
        "v": pa.array([None if n % 13 == 5 else Decimal(n * 79 % 100) / 10 for n in i], pa.decimal128(8, 1)),
        "x": pa.array([None if n % 17 == 3 else float(n * 31 % 97) for n in i]),
    }
    visit = {"vk": pa.array([n * 2 for n in range(12)], pa.int64()), "w": pa.array([n * 5 % 13 for n in range(12)], pa.int64())}
    other = {"ok": pa.array([n * 7 % 40 for n in i], pa.int64()), "z": pa.array([n % 5 for n in i], pa.int64())}
    kind = {"id": pa.array([0, 1, 2, 9], pa.int32()), "label": ["zero", "one", "two", "nine"]}
    buy = {"bk": pa.array([n * 11 % 16 for n in range(48)], pa.int64()), "price": pa.array([n % 7 for n in range(48)], pa.int64())}
    sell = {"sk": pa.array([n % 20 for n in range(30)], pa.int64()), "cost": pa.array([n % 9 for n in range(30)], pa.int64())}
    noise = {"g": pa.array([n % 4 for n in i], pa.int64()), "y": pa.array([float(n * 37 % 61) for n in i])}
    columns = {"event": event, "visit": visit, "other": other, "kind": kind, "buy": buy, "sell": sell, "noise": noise}
    return {name: pa.table(each) for name, each in columns.items()}


_CLAIMED = {
    "event": TableSchema("event", (), (), 3_000_000, 60, "k"),
    "visit": TableSchema("visit", (), (), 1_500_000, 40, "vk"),
    "other": TableSchema("other", (), (), 2_500_000, 50),
    "kind": TableSchema("kind", (), ("id",), 4),
    "buy": TableSchema("buy", (), (), 2_400_000, 48, None, (HashedLayout("by_bk", ("bk",), 4),)),
    "sell": TableSchema("sell", (), (), 2_000_000, 40, None, (HashedLayout("by_sk", ("sk",), 8),)),
    "noise": TableSchema("noise", (), (), 60_000, 20, shuffled="shuffled"),
}


def schema(name: str) -> TableSchema:
    """What rewriting is told of a table."""
    table = tables()[name]
    columns = tuple(SchemaColumn(each.name, from_arrow(each.type), table[each.name].null_count > 0) for each in table.schema)
    return replace(_CLAIMED[name], columns=columns)


def planned(text: str) -> Plan:
    """The plan of a query after the passes that every query goes through."""
    return rewrite(bind(parse_query(text), schema).plan)


def topmost_aggregate(text: str) -> GroupBy:
    """The topmost aggregate of a query."""
    return next(node for node in planned(text).walk() if isinstance(node, GroupBy))
