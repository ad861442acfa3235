"""Where rows are and where they move: Exchange nodes for a plan that runs on several sites.

Each subplan's rows are `everywhere` (every site has them all), `spread` (each row at one site; perhaps rows equal in some columns
at the same one) or at `one` site. A join or grouping runs where its rows already are when equal rows share a site; else the cheaper
of sending the small side everywhere and sending both sides by a hash of the keys is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from nearly.errors import Unsupported
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import Column, Expression, WindowCall
from nearly.plan.nodes import (
    Apply,
    Exchange,
    Filter,
    GroupBy,
    Join,
    Limit,
    Output,
    Plan,
    Project,
    Scan,
    SetOperation,
    Sort,
    Values,
    Window,
)
from nearly.plan.properties import equated
from nearly.plan.schema import FindTable
from nearly.rewrite.logical.sizes import Size, grouped_size, joined_size, selectivity
from nearly.rewrite.sites.split_aggregate import split_aggregate

EVERYWHERE, SPREAD, ONE = "everywhere", "spread", "one"
REPLICATED_ROWS = 1_000_000
"""A table up to this size, and much smaller than the largest of the query, is read by every site itself."""

SMALL_SHARE = 0.2
FEW_GROUPS = 10_000
Groups = Callable[[Plan, tuple[Column, ...]], float | None]
"""How many groups some columns make, where that is known to be few."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A subplan with its exchanges, where its rows are, and how many there may be.

    Law: rows of the plan that are equal in one of the column lists of `by` are at the same site. Two plans of the same `scheme`
    (`hash`, `range`, or `buckets` whose counts divide each other) agree on which site that is.
    """

    plan: Plan
    place: str
    rows: float
    base: float
    scheme: str = ""
    by: frozenset[tuple[str, ...]] = frozenset()
    buckets: int = 0

    def over(self, plan: Plan, rows: float | None = None) -> Placed:
        """The same place for a node on top; only columns that it still has can tell where rows are."""
        kept = frozenset(names for names in self.by if set(names) <= plan.names)
        return replace(self, plan=plan, rows=self.rows if rows is None else rows, by=kept)


def distribute(plan: Plan, find_table: FindTable, sites: int, groups: Groups | None = None) -> Plan:
    """The plan with exchanges; what stands above the topmost `gather` runs at the driver."""
    largest = max((find_table(node.table).rows for node in plan.walk() if isinstance(node, Scan)), default=0)
    placed = _Distributor(find_table, sites, largest, FreshNames("dist"), groups or (lambda _p, _c: None)).place(plan)
    if placed.place == ONE and not _reads_tables(placed.plan):
        return placed.plan
    return Exchange(placed.plan, "gather")


def _reads_tables(plan: Plan) -> bool:
    """Whether anything above the exchanges reads a table, which a driver must not do."""
    if isinstance(plan, Exchange):
        return False
    return isinstance(plan, Scan) or any(_reads_tables(child) for child in plan.children)


@dataclass(frozen=True, slots=True)
class _Distributor:
    find_table: FindTable
    sites: int
    largest: int
    fresh: FreshNames
    groups: Groups

    def place(self, plan: Plan) -> Placed:
        rule = RULES.get(type(plan))
        if rule is None:
            raise Unsupported(f"{type(plan).__name__} has no rule for several sites")
        return rule(self, plan)

    def scan(self, plan: Scan) -> Placed:
        table = self.find_table(plan.table)
        rows = float(table.rows)
        small = table.rows <= min(REPLICATED_ROWS, SMALL_SHARE * self.largest)
        if small or table.blocks < 2:
            return Placed(plan, EVERYWHERE, rows, rows)
        field = next((field for field in plan.fields if field.source == table.ranges_of), None)
        if field is None:
            return Placed(replace(plan, share="blocks"), SPREAD, rows, rows)
        return Placed(replace(plan, share="range"), SPREAD, rows, rows, "range", frozenset({(field.name,)}))

    def values(self, plan: Values) -> Placed:
        return Placed(plan, EVERYWHERE, float(len(plan.rows)), float(len(plan.rows)))

    def filter(self, plan: Filter) -> Placed:
        child = self.place(plan.child)
        return child.over(replace(plan, child=child.plan), child.rows * selectivity(plan.predicate))

    def project(self, plan: Project) -> Placed:
        child = self.place(plan.child)
        renamed = _renamings(plan.outputs)
        by = frozenset(names for old in child.by for names in _rename(old, renamed))
        return replace(child, plan=replace(plan, child=child.plan), by=by)

    def join(self, plan: Join) -> Placed:
        return _Joining(self, plan).placed()

    def aggregate(self, plan: GroupBy) -> Placed:
        child = self.place(plan.child)
        here = replace(plan, child=child.plan)
        rows = grouped_size(plan, Size(child.rows, child.base)).rows
        if child.place != SPREAD:
            return replace(child, plan=here, rows=rows, by=frozenset())
        renamed = _renamings(plan.keys) if plan.sets is None else {}
        by = frozenset(names for old in child.by for names in _rename(old, renamed))
        if by:
            return replace(child, plan=here, rows=rows, by=by)
        bucketed = self.in_buckets(child, tuple(renamed))
        if bucketed is not None:
            by = frozenset(names for old in bucketed.by for names in _rename(old, renamed))
            return replace(bucketed, plan=replace(plan, child=bucketed.plan), rows=rows, by=by)
        return self._aggregate_apart(here, child, rows)

    def _aggregate_apart(self, plan: GroupBy, child: Placed, rows: float) -> Placed:
        """Groups that cross sites: partial results are merged; without a merge the rows themselves move."""
        split = split_aggregate(plan, self.fresh)
        if split is None and plan.sets is None and plan.keys:
            moved, keys = self._with_key_columns(child, [key.expression for key in plan.keys])
            sent = self.by_hash(moved, keys)
            outputs = tuple(replace(key, expression=column) for key, column in zip(plan.keys, keys, strict=True))
            by = frozenset({tuple(key.name for key in plan.keys)})
            return replace(sent, plan=replace(plan, child=sent.plan, keys=outputs), rows=rows, by=by)
        if split is None:
            gathered = self.gathered(child)
            return replace(gathered, plan=replace(plan, child=gathered.plan), rows=rows)
        keys = tuple(key.column for key in split.keys)
        few = self.groups(plan.child, tuple(k.expression for k in plan.keys if isinstance(k.expression, Column)))
        partial = replace(child, plan=split.partial, rows=min(rows * self.sites, child.rows), by=frozenset())
        if not keys or (few is not None and few <= FEW_GROUPS):
            gathered = self.gathered(partial)
            return replace(gathered, plan=split.merged(gathered.plan), rows=rows)
        sent = self.by_hash(partial, keys)
        by = frozenset({tuple(key.name for key in keys)})
        return replace(sent, plan=split.merged(sent.plan), rows=rows, by=by)

    def window(self, plan: Window) -> Placed:
        child = self.place(plan.child)
        if child.place != SPREAD:
            return self._once(child.over(replace(plan, child=child.plan)))
        calls = [output.expression for output in plan.outputs if isinstance(output.expression, WindowCall)]
        partitions = [set(call.partition) for call in calls]
        shared = [each for each in partitions[0] if all(each in other for other in partitions)]
        names = {each.name for each in shared if isinstance(each, Column)}
        if any(set(by) <= names for by in child.by):
            return child.over(replace(plan, child=child.plan))
        if not names:
            return self._at_one(plan, child)
        keys = tuple(column for column in child.plan.columns if column.name in names)
        sent = self.by_hash(child, keys)
        return sent.over(replace(plan, child=sent.plan))

    def set_operation(self, plan: SetOperation) -> Placed:
        left, right = self.place(plan.left), self.place(plan.right)
        rows = left.rows + right.rows if plan.kind == "union" else left.rows
        if SPREAD not in (left.place, right.place):
            place = ONE if ONE in (left.place, right.place) else EVERYWHERE
            return Placed(replace(plan, left=left.plan, right=right.plan), place, rows, rows)
        if plan.kind == "union" and plan.every:
            sides = [side if side.place == SPREAD else self.by_hash(side, side.plan.columns) for side in (left, right)]
            return Placed(replace(plan, left=sides[0].plan, right=sides[1].plan), SPREAD, rows, rows)
        sides = [self.by_hash(side, side.plan.columns) for side in (left, right)]
        by = frozenset({tuple(column.name for column in plan.given)})
        return Placed(replace(plan, left=sides[0].plan, right=sides[1].plan), SPREAD, rows, rows, "hash", by)

    def sort(self, plan: Sort) -> Placed:
        child = self.place(plan.child)
        return self._at_one(plan, child) if child.place == SPREAD else child.over(replace(plan, child=child.plan))

    def limit(self, plan: Limit) -> Placed:
        """A site sends no more rows than the limit can take; the sort that decides which is repeated where they meet."""
        ordered = plan.child if isinstance(plan.child, Sort) else None
        child = self.place(ordered.child if ordered else plan.child)
        if child.place != SPREAD:
            below = replace(ordered, child=child.plan) if ordered else child.plan
            return self._once(child.over(replace(plan, child=below), min(child.rows, float(plan.count or child.rows))))
        local = replace(ordered, child=child.plan) if ordered else child.plan
        if plan.count is not None:
            local = Limit(local, plan.count + plan.offset)
        gathered = self.gathered(replace(child, plan=local, rows=float(plan.count or child.rows)))
        above = replace(ordered, child=gathered.plan) if ordered else gathered.plan
        return replace(gathered, plan=replace(plan, child=above))

    def apply(self, plan: Apply) -> Placed:
        """A function that takes rows in pieces runs where they are; any other needs all of them at one site."""
        child = self.place(plan.child)
        if plan.keys is not None and child.place == SPREAD:
            return self._at_one(plan, child)
        return self._once(child.over(replace(plan, child=child.plan)))

    def _at_one(self, plan: Sort | Window | Apply, child: Placed) -> Placed:
        gathered = self.gathered(child)
        return replace(gathered, plan=replace(plan, child=gathered.plan))

    def in_buckets(self, placed: Placed, names: tuple[str, ...], fitting: int | None = None) -> Placed | None:
        """The same plan over a layout prepared by a hash of some of these columns, when one table alone decides where rows are.

        `fitting` is the bucket count of the other side of a join, which must divide or be divided by the layout's.
        """
        spread = [node for node in _own_nodes(placed.plan) if isinstance(node, Scan) and node.share != "all"]
        if len(spread) != 1 or any(isinstance(node, Exchange) and node.kind == "hash" for node in _own_nodes(placed.plan)):
            return None
        sources = {field.source: field.name for field in spread[0].fields if field.name in names}
        for layout in self.find_table(spread[0].table).hashed:
            fits = fitting is None or max(fitting, layout.buckets) % min(fitting, layout.buckets) == 0
            if fits and set(layout.columns) <= set(sources):
                scan = replace(spread[0], share="buckets", layout=layout.name)
                plan = placed.plan.transform(lambda node: scan if node == spread[0] else node)  # noqa: B023
                by = frozenset({tuple(sources[name] for name in layout.columns)})
                return replace(placed, plan=plan, scheme="buckets", by=by, buckets=layout.buckets)
        return None

    def _once(self, placed: Placed) -> Placed:
        """Which rows a limit or a tied ranking picks is open, so one site must pick for all."""
        return self.gathered(placed) if placed.place == EVERYWHERE else placed

    def gathered(self, child: Placed) -> Placed:
        return Placed(Exchange(child.plan, "gather"), ONE, child.rows, child.base)

    def broadcast(self, child: Placed) -> Placed:
        return child if child.place == EVERYWHERE else Placed(Exchange(child.plan, "broadcast"), EVERYWHERE, child.rows, child.base)

    def by_hash(self, child: Placed, keys: tuple[Column, ...]) -> Placed:
        names = tuple(key.name for key in keys)
        if child.scheme == "hash" and names in child.by:
            return child
        return Placed(Exchange(child.plan, "hash", tuple(keys)), SPREAD, child.rows, child.base, "hash", frozenset({names}))

    def _with_key_columns(self, child: Placed, keys: list[Expression]) -> tuple[Placed, tuple[Column, ...]]:
        """The child with every key as a column of its own, since an exchange hashes columns."""
        extra = {key: Output(self.fresh("key"), key) for key in keys if not isinstance(key, Column)}
        columns = tuple(key if isinstance(key, Column) else extra[key].column for key in keys)
        if not extra:
            return child, columns
        passed = tuple(Output(column.name, column) for column in child.plan.columns)
        return child.over(Project(child.plan, (*passed, *extra.values()))), columns


@dataclass(frozen=True, slots=True)
class _Joining:
    """The choice for one join. `keeps_left` and `keeps_right`: an unmatched row of that side must come out exactly once."""

    distributor: _Distributor
    plan: Join

    def placed(self) -> Placed:
        left, right = self.distributor.place(self.plan.left), self.distributor.place(self.plan.right)
        keeps_left = self.plan.kind in ("left", "semi", "anti", "full")
        keeps_right = self.plan.kind in ("right", "full")
        if SPREAD not in (left.place, right.place):
            return self._local(left, right, ONE if ONE in (left.place, right.place) else EVERYWHERE)
        pairs = [(a, b) for a, b in equated(self.plan) if a.type == b.type]
        if left.place == right.place == SPREAD:
            if self._colocated(left, right, pairs):
                return self._local(left, right, SPREAD)
            bucketed = self._in_buckets(left, right, pairs)
            if bucketed is not None:
                return self._local(*bucketed, SPREAD)
            return self._move(left, right, pairs, not keeps_left, not keeps_right)
        if left.place == SPREAD and not keeps_right:
            return self._local(left, self.distributor.broadcast(right), SPREAD)
        if right.place == SPREAD and not keeps_left:
            return self._local(self.distributor.broadcast(left), right, SPREAD)
        return self._move(left, right, pairs, not keeps_left and right.place == SPREAD, not keeps_right and left.place == SPREAD)

    def _move(self, left: Placed, right: Placed, pairs: list[tuple[Column, Column]], may_left: bool, may_right: bool) -> Placed:
        """Send one side everywhere where that is allowed and cheaper, else both by hash, else all to one site."""
        sites = self.distributor.sites
        hash_cost = left.rows + right.rows if pairs else float("inf")
        costs = {
            "right": right.rows * sites if may_right else float("inf"),
            "left": left.rows * sites if may_left else float("inf"),
        }
        cheapest = min(costs, key=lambda side: costs[side])
        if costs[cheapest] <= hash_cost and costs[cheapest] < float("inf"):
            if cheapest == "right":
                return self._local(left, self.distributor.broadcast(right), SPREAD)
            return self._local(self.distributor.broadcast(left), right, SPREAD)
        if pairs:
            sides = [
                self.distributor.by_hash(side, tuple(pair[place] for pair in pairs)) for place, side in enumerate((left, right))
            ]
            return self._local(sides[0], sides[1], SPREAD)
        return self._local(self._to_one(left), self._to_one(right), ONE)

    def _in_buckets(self, left: Placed, right: Placed, pairs: list[tuple[Column, Column]]) -> tuple[Placed, Placed] | None:
        """Both sides over layouts that were prepared by the join's columns."""
        one = left if left.scheme == "buckets" else self.distributor.in_buckets(left, tuple(a.name for a, _ in pairs))
        if one is None:
            return None
        names = tuple(b.name for _, b in pairs)
        other = right if right.scheme == "buckets" else self.distributor.in_buckets(right, names, one.buckets)
        if other is None or not self._colocated(one, other, pairs):
            return None
        return one, other

    def _to_one(self, side: Placed) -> Placed:
        return self.distributor.gathered(side) if side.place == SPREAD else side

    def _colocated(self, left: Placed, right: Placed, pairs: list[tuple[Column, Column]]) -> bool:
        if left.scheme != right.scheme or not left.scheme:
            return False
        if left.scheme == "buckets" and max(left.buckets, right.buckets) % min(left.buckets, right.buckets):
            return False
        partner = {a.name: b.name for a, b in pairs if a.type == b.type}
        return any(tuple(partner.get(name, "") for name in names) in right.by for names in left.by)

    def _local(self, left: Placed, right: Placed, place: str) -> Placed:
        plan = replace(self.plan, left=left.plan, right=right.plan)
        size = joined_size(self.plan, Size(left.rows, left.base), Size(right.rows, right.base))
        side = left if left.place == place else right
        by = {"inner": left.by | right.by, "cross": left.by | right.by, "right": right.by, "full": frozenset()}
        kept = by.get(self.plan.kind, left.by) if place == SPREAD else frozenset()
        scheme = left.scheme or right.scheme if place == SPREAD else ""
        counts = [each.buckets for each in (left, right) if each.buckets]
        buckets = min(counts, default=0)
        return Placed(plan, place, size.rows, size.base, side.scheme or scheme, kept, buckets)


def _own_nodes(plan: Plan) -> Iterator[Plan]:
    """The nodes of the plan's own stage: exchanges are included, what is below them is not."""
    yield plan
    if not isinstance(plan, Exchange):
        for child in plan.children:
            yield from _own_nodes(child)


def _renamings(outputs: tuple[Output, ...]) -> dict[str, list[str]]:
    """The names under which plain columns come out."""
    renamed: dict[str, list[str]] = {}
    for output in outputs:
        if isinstance(output.expression, Column):
            renamed.setdefault(output.expression.name, []).append(output.name)
    return renamed


def _rename(names: tuple[str, ...], renamed: dict[str, list[str]]) -> list[tuple[str, ...]]:
    """A column list in its new names; empty when a column is gone."""
    if not all(name in renamed for name in names):
        return []
    return [tuple(renamed[name][0] for name in names)]


RULES: dict[type[Plan], Callable[..., Placed]] = {
    Scan: _Distributor.scan,
    Values: _Distributor.values,
    Filter: _Distributor.filter,
    Project: _Distributor.project,
    Join: _Distributor.join,
    GroupBy: _Distributor.aggregate,
    Window: _Distributor.window,
    SetOperation: _Distributor.set_operation,
    Sort: _Distributor.sort,
    Limit: _Distributor.limit,
    Apply: _Distributor.apply,
}
