"""The blocks of a query whose parts may be worth keeping: select, project, join, aggregate.

    SELECT a.., agg(..) FROM t.. WHERE p GROUP BY g..

A query is cut into such blocks; what else it does is passed through untouched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nearly.engine.storage.layouts import AT
from nearly.plan.expressions import Column, Expression, columns_of, substitute
from nearly.plan.nodes import Filter, GroupBy, Join, Output, Plan, Project, Scan
from nearly.rewrite.views.blocks import JoinBlock, block_of


@dataclass(frozen=True, slots=True)
class Spja:
    """A block, the grouping on top of it where there is one, and which of its leaves are tables."""

    block: JoinBlock
    group: GroupBy | None

    @property
    def scans(self) -> tuple[Scan, ...]:
        """The tables; one in a version that the query names is left alone, since it never changes its name."""
        return tuple(leaf for leaf in self.block.leaves if isinstance(leaf, Scan) and AT not in leaf.table)

    @property
    def is_whole(self) -> bool:
        """Whether all leaves are tables."""
        return len(self.scans) == len(self.block.leaves)

    @property
    def keys(self) -> tuple[Output, ...]:
        """What it groups by, over the columns of the leaves."""
        return () if self.group is None else tuple(self._over(each) for each in self.group.keys)

    @property
    def aggregates(self) -> tuple[Output, ...]:
        return () if self.group is None else tuple(self._over(each) for each in self.group.aggregates)

    def _over(self, output: Output) -> Output:
        return Output(output.name, substitute(output.expression, self.block.outputs))

    @property
    def shown(self) -> tuple[Expression, ...]:
        """What is asked of the joined rows."""
        if self.group is None:
            return tuple(self.block.outputs.values())
        return tuple(each.expression for each in (*self.keys, *self.aggregates))

    def needed(self, chosen: tuple[Scan, ...], tested: tuple[Expression, ...]) -> tuple[Column, ...]:
        """The columns of some tables that the block needs when these predicates are already tested."""
        own = {column.name: column for scan in chosen for column in scan.columns}
        others = [each for each in self.block.predicates if each not in tested]
        used = set().union(*(columns_of(each) for each in (*self.shown, *others)))
        return tuple(column for name, column in own.items() if name in used)


def blocks_of(plan: Plan) -> Iterator[Spja]:
    """All blocks of a plan, outer ones first; a block joins or selects, or groups."""
    match plan:
        case GroupBy(sets=None):
            block = block_of(plan.child)
            yield from _with_inner(Spja(block, plan))
        case Project() | Filter() | Join(kind="inner" | "cross") | Scan():
            block = block_of(plan)
            if len(block.leaves) == 1 and not block.predicates:
                yield from _inner(block)
            else:
                yield from _with_inner(Spja(block, None))
        case _:
            for child in plan.children:
                yield from blocks_of(child)


def _with_inner(found: Spja) -> Iterator[Spja]:
    if found.block.is_clear and found.scans:
        yield found
    yield from _inner(found.block)


def _inner(block: JoinBlock) -> Iterator[Spja]:
    for leaf in block.leaves:
        if not isinstance(leaf, Scan):
            yield from blocks_of(leaf)
