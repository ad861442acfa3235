"""Which layouts of tables a progressive query reads: those in which rows meet, or whose blocks are better samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product

from nearly.plan.nodes import Scan
from nearly.plan.schema import FindTable, HashedLayout
from nearly.rewrite.stream.cut import Cut

MOST_ARRANGEMENTS = 8
"""So many ways to combine prepared layouts are tried: each costs some milliseconds of planning."""

Layouts = dict[str, HashedLayout]
"""Layouts to read instead of the base ones, by table."""


def arrangements(chosen: set[Scan], find_table: FindTable) -> Iterator[Layouts]:
    """Which layouts may be streamed together: the base ones, or some that are hashed by one column, whose buckets line up."""
    yield {}
    tables = sorted({scan.table for scan in chosen})
    prepared = {name: [each for each in find_table(name).hashed if len(each.columns) == 1] for name in tables}
    named = [name for name in tables if prepared[name]]
    for picked in islice(product(*(prepared[name] for name in named)), MOST_ARRANGEMENTS if named else 0):
        fewest = min(each.buckets for each in picked)
        yield {name: each for name, each in zip(named, picked, strict=True) if each.buckets % fewest == 0}


def shuffled(cut: Cut, find_table: FindTable) -> Cut:
    """The cut over a shuffled layout of its one table, where there is one and rows need not meet: blocks are better samples."""
    layout = find_table(cut.scans[0].table).shuffled if len(cut.scans) == 1 and not cut.ranged else None
    if layout is None:
        return cut
    (old,), new = cut.scans, replace(cut.scans[0], layout=layout)
    stages = tuple(replace(stage, plan=stage.plan.transform(lambda node: new if node == old else node)) for stage in cut.stages)
    return replace(cut, stages=stages, scans=(new,))
