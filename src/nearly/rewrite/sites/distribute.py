"""Where rows move: Exchange nodes for a plan that runs on several sites, by the walk of `rewrite.placement`.

A join or grouping runs where its rows already are when equal rows share a site; else the cheaper of sending the small side
everywhere and sending both sides by a hash of the keys is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import Column, Expression
from nearly.plan.nodes import Exchange, Filter, GroupBy, Join, Limit, Output, Plan, Project, Scan, SetOperation, Window, passed
from nearly.plan.properties import equated
from nearly.plan.schema import FindTable
from nearly.rewrite.logical.sizes import Size, grouped_size, joined_size, selectivity
from nearly.rewrite.placement import KEEPS_LEFT, KEEPS_RIGHT, Place, Placed, Placement, Policy, joined_by, partitions, renamed
from nearly.rewrite.sites.split_aggregate import split_aggregate

REPLICATED_ROWS = 1_000_000
"""A table up to this size, and much smaller than the largest of the query, is read by every site itself."""

SMALL_SHARE = 0.2
FEW_GROUPS = 10_000
NEVER = float("inf")
Groups = Callable[[Plan, tuple[Column, ...]], float | None]
"""How many groups some columns make, where that is known to be few."""


@dataclass(frozen=True, slots=True)
class Sited(Placed):
    """A subplan with its exchanges, and how many rows there may be.

    Law: two plans of the same `scheme` (`hash`, `range`, or `buckets` whose counts divide each other) agree on the site of equal
    values in `by`.
    """

    size: Size = field(kw_only=True)
    scheme: str = ""
    buckets: int = 0


def distribute(plan: Plan, find_table: FindTable, sites: int, groups: Groups | None = None) -> Plan:
    """The plan with exchanges; what stands above the topmost `gather` runs at the driver."""
    largest = max((find_table(node.table).rows for node in plan.walk() if isinstance(node, Scan)), default=0)
    policy = _Sites(find_table, sites, largest, FreshNames("dist"), groups or (lambda _p, _c: None))
    placed = Placement(policy).place(plan)
    if placed.place is Place.TOGETHER and not _reads_tables(placed.plan):
        return placed.plan
    return Exchange(placed.plan, "gather")


def _reads_tables(plan: Plan) -> bool:
    """Whether anything above the exchanges reads a table, which a driver must not do."""
    if isinstance(plan, Exchange):
        return False
    return isinstance(plan, Scan) or any(_reads_tables(child) for child in plan.children)


@dataclass(frozen=True)
class _Sites(Policy[Sited]):
    """Rows that must meet are sent: to one site, to every site, or by a hash of what they meet by."""

    purpose: ClassVar[str] = "several sites"
    find_table: FindTable
    sites: int
    largest: int
    fresh: FreshNames
    groups: Groups

    def scan(self, plan: Scan) -> Sited:
        table = self.find_table(plan.table)
        size = Size(float(table.rows), float(table.rows))
        if table.rows <= min(REPLICATED_ROWS, SMALL_SHARE * self.largest) or table.blocks < 2:
            return Sited(plan, Place.EVERYWHERE, size=size)
        ranged = next((each for each in plan.fields if each.source == table.ranges_of), None)
        if ranged is None:
            return Sited(replace(plan, share="blocks"), Place.APART, size=size)
        return Sited(replace(plan, share="range"), Place.APART, frozenset({(ranged.name,)}), "range", size=size)

    def constant(self, plan: Plan, rows: int) -> Sited:
        return Sited(plan, Place.EVERYWHERE, size=Size(float(rows), float(rows)))

    def met(self, child: Sited) -> Sited:
        return Sited(Exchange(child.plan, "gather"), Place.TOGETHER, size=child.size)

    def once(self, placed: Sited) -> Sited:
        """One site must pick for all."""
        return self.met(placed) if placed.place is Place.EVERYWHERE else placed

    def on(self, plan: Plan, child: Sited) -> Sited:
        placed = super().on(plan, child)
        match plan:
            case Filter():
                return _with_rows(placed, child.size.rows * selectivity(plan.predicate))
            case Limit(count=int(count)):
                return _with_rows(placed, min(child.size.rows, float(count)))
        return placed

    def group(self, plan: GroupBy, child: Sited) -> Sited:
        return replace(child, plan=replace(plan, child=child.plan), size=_grouped(plan, child))

    def group_apart(self, plan: GroupBy, child: Sited) -> Sited:
        """Groups that cross sites: a layout may hold them; else partial results are merged, or without a merge rows move."""
        columns = tuple(key.expression.name for key in plan.keys if isinstance(key.expression, Column))
        bucketed = self.in_buckets(child, columns) if plan.sets is None else None
        if bucketed is not None:
            return self.group(plan, replace(bucketed, by=renamed(bucketed.by, plan.keys)))
        split = split_aggregate(replace(plan, child=child.plan), self.fresh)
        if split is None:
            return self._rows_moved(plan, child)
        size = _grouped(plan, child)
        keys = tuple(key.column for key in split.keys)
        few = self.groups(plan.child, tuple(k.expression for k in plan.keys if isinstance(k.expression, Column)))
        partial = Sited(split.partial, Place.APART, size=replace(child.size, rows=min(size.rows * self.sites, child.size.rows)))
        gathers = not keys or (few is not None and few <= FEW_GROUPS)
        sent = self.met(partial) if gathers else self.by_hash(partial, keys)
        return replace(sent, plan=split.merged(sent.plan), size=size)

    def _rows_moved(self, plan: GroupBy, child: Sited) -> Sited:
        if plan.sets is not None or not plan.keys:
            return self.group(plan, self.met(child))
        moved, keys = self._with_key_columns(child, [key.expression for key in plan.keys])
        sent = self.by_hash(moved, keys)
        outputs = tuple(replace(key, expression=column) for key, column in zip(plan.keys, keys, strict=True))
        grouped = self.group(replace(plan, keys=outputs), sent)
        return replace(grouped, by=frozenset({tuple(key.name for key in plan.keys)}))

    def window_apart(self, plan: Window, child: Sited) -> Sited:
        names = frozenset.intersection(*partitions(plan))
        keys = tuple(column for column in child.plan.columns if column.name in names)
        return self.on(plan, self.by_hash(child, keys) if keys else self.met(child))

    def union_apart(self, plan: SetOperation, left: Sited, right: Sited) -> Sited:
        size = _united(plan, left, right)
        return Sited(replace(plan, left=left.plan, right=right.plan), Place.APART, size=size)

    def set_operation(self, plan: SetOperation, left: Sited, right: Sited) -> Sited:
        size = _united(plan, left, right)
        if not left.apart and not right.apart:
            place = Place.TOGETHER if Place.TOGETHER in (left.place, right.place) else Place.EVERYWHERE
            return Sited(replace(plan, left=left.plan, right=right.plan), place, size=size)
        if plan.kind == "union" and plan.every:
            sides = [side if side.apart else self.by_hash(side, side.plan.columns) for side in (left, right)]
            return self.union_apart(plan, *sides)
        sides = [self.by_hash(side, side.plan.columns) for side in (left, right)]
        by = frozenset({tuple(column.name for column in plan.given)})
        return Sited(replace(plan, left=sides[0].plan, right=sides[1].plan), Place.APART, by, "hash", size=size)

    def meet(self, plan: Join, left: Sited, right: Sited) -> bool:
        if left.scheme != right.scheme or not left.scheme:
            return False
        if left.scheme == "buckets" and max(left.buckets, right.buckets) % min(left.buckets, right.buckets):
            return False
        return super().meet(plan, left, right)

    def join(self, plan: Join, left: Sited, right: Sited) -> Sited:
        """Where its rows are: those of one side may be everywhere."""
        places = (left.place, right.place)
        place = next((each for each in (Place.APART, Place.TOGETHER) if each in places), Place.EVERYWHERE)
        joined = replace(plan, left=left.plan, right=right.plan)
        size = joined_size(plan, left.size, right.size)
        if place is not Place.APART:
            return Sited(joined, place, size=size)
        scheme = (left if left.apart else right).scheme or left.scheme or right.scheme
        buckets = min((each.buckets for each in (left, right) if each.buckets), default=0)
        return Sited(joined, place, joined_by(plan, left.by, right.by), scheme, buckets, size=size)

    def join_apart(self, plan: Join, left: Sited, right: Sited) -> Sited:
        """In layouts where rows meet, or with the one side sent everywhere where it may be and that is cheaper, or both by hash."""
        if not left.apart and not right.apart:
            return self.join(plan, left, right)
        bucketed = self._in_buckets(plan, left, right) if left.apart and right.apart else None
        if bucketed is not None:
            return self.join(plan, *bucketed)
        return self._moved(plan, left, right)

    def _moved(self, plan: Join, left: Sited, right: Sited) -> Sited:
        pairs = [(a, b) for a, b in equated(plan) if a.type == b.type]
        by_hash = left.size.rows + right.size.rows if pairs else NEVER
        sends_right = self._sending(right, left, plan.kind in KEEPS_RIGHT)
        sends_left = self._sending(left, right, plan.kind in KEEPS_LEFT)
        if sends_right <= min(sends_left, by_hash) and sends_right < NEVER:
            return self.join(plan, left, self.broadcast(right))
        if sends_left <= by_hash and sends_left < NEVER:
            return self.join(plan, self.broadcast(left), right)
        if pairs:
            sides = [self.by_hash(side, tuple(pair[place] for pair in pairs)) for place, side in enumerate((left, right))]
            return self.join(plan, *sides)
        return self.join(plan, *(self.met(side) if side.apart else side for side in (left, right)))

    def _sending(self, side: Sited, other: Sited, kept: bool) -> float:
        """What it costs to send a side to wherever the other is; rows that are not apart are cheap to send."""
        if kept or not other.apart:
            return NEVER
        return side.size.rows * self.sites if side.apart else 0.0

    def _in_buckets(self, plan: Join, left: Sited, right: Sited) -> tuple[Sited, Sited] | None:
        """Both sides over layouts that were prepared by the join's columns."""
        pairs = [(a, b) for a, b in equated(plan) if a.type == b.type]
        one = left if left.scheme == "buckets" else self.in_buckets(left, tuple(a.name for a, _ in pairs))
        if one is None:
            return None
        names = tuple(b.name for _, b in pairs)
        other = right if right.scheme == "buckets" else self.in_buckets(right, names, one.buckets)
        return None if other is None or not self.meet(plan, one, other) else (one, other)

    def in_buckets(self, placed: Sited, names: tuple[str, ...], fitting: int | None = None) -> Sited | None:
        """The same plan over a layout prepared by a hash of some of these columns, when one table alone decides where rows are.

        `fitting` is the bucket count of the other side of a join, which must divide or be divided by the layout's.
        """
        spread = [node for node in _own_nodes(placed.plan) if isinstance(node, Scan) and node.share != "all"]
        if len(spread) != 1 or any(isinstance(node, Exchange) and node.kind == "hash" for node in _own_nodes(placed.plan)):
            return None
        sources = {each.source: each.name for each in spread[0].fields if each.name in names}
        for layout in self.find_table(spread[0].table).hashed:
            fits = fitting is None or max(fitting, layout.buckets) % min(fitting, layout.buckets) == 0
            if fits and set(layout.columns) <= set(sources):
                scan = replace(spread[0], share="buckets", layout=layout.name)
                plan = placed.plan.transform(lambda node: scan if node == spread[0] else node)  # noqa: B023
                by = frozenset({tuple(sources[name] for name in layout.columns)})
                return replace(placed, plan=plan, scheme="buckets", by=by, buckets=layout.buckets)
        return None

    def broadcast(self, child: Sited) -> Sited:
        if child.place is Place.EVERYWHERE:
            return child
        return Sited(Exchange(child.plan, "broadcast"), Place.EVERYWHERE, size=child.size)

    def by_hash(self, child: Sited, keys: tuple[Column, ...]) -> Sited:
        names = tuple(key.name for key in keys)
        if child.scheme == "hash" and names in child.by:
            return child
        return Sited(Exchange(child.plan, "hash", tuple(keys)), Place.APART, frozenset({names}), "hash", size=child.size)

    def _with_key_columns(self, child: Sited, keys: list[Expression]) -> tuple[Sited, tuple[Column, ...]]:
        """The child with every key as a column of its own, since an exchange hashes columns."""
        extra = {key: Output(self.fresh("key"), key) for key in keys if not isinstance(key, Column)}
        columns = tuple(key if isinstance(key, Column) else extra[key].column for key in keys)
        if not extra:
            return child, columns
        return child.over(Project(child.plan, (*passed(child.plan.columns), *extra.values()))), columns


def _own_nodes(plan: Plan) -> Iterator[Plan]:
    """The nodes of the plan's own stage: exchanges are included, what is below them is not."""
    yield plan
    if not isinstance(plan, Exchange):
        for child in plan.children:
            yield from _own_nodes(child)


def _with_rows(placed: Sited, rows: float) -> Sited:
    return replace(placed, size=replace(placed.size, rows=rows))


def _grouped(plan: GroupBy, child: Sited) -> Size:
    return replace(child.size, rows=grouped_size(plan, child.size).rows)


def _united(plan: SetOperation, left: Sited, right: Sited) -> Size:
    rows = left.size.rows + right.size.rows if plan.kind == "union" else left.size.rows
    return Size(rows, rows)
