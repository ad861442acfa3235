"""A query over what a view stores: the same rows, without reading the tables that the view is made of.

A part of the query is replaced where it is what the view is; where it joins what the view joins, and more, with conditions that say
at least as much, and needs no more columns than are stored; and where it groups such rows by less than the view's keys, by
aggregates that can be merged. Law: over tables in the versions that the view is of, the query has the same rows as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from nearly.plan import functions
from nearly.plan.binding.nullability import never_null
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import (
    AggregateCall,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    children,
    columns_of,
    conjunction,
    map_children,
    substitute,
)
from nearly.plan.nodes import Filter, GroupBy, Join, Output, Plan, Project, Scan, passed
from nearly.plan.reading import Reading
from nearly.plan.types import FRACTIONS, LONG, STRING
from nearly.rewrite.delta.partials import EXTREMES, in_other_width, partials
from nearly.rewrite.passes import rewrite
from nearly.rewrite.views.blocks import Classes, JoinBlock, block_of, equality, labelled, shape
from nearly.rewrite.views.implied import is_implied

_MERGED_BY = {"count": "sum", "count_if": "sum"}
_COMPARES = frozenset({"=", "<>", "<=>", "<", "<=", ">", ">=", "in", "isnull", "isnotnull", "isnan"})
"""Functions that give the same for all values that are equal."""

Values = Mapping[Expression, Column]
"""What is stored: expressions in normal form, and the columns that hold them."""


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A view to match with: its query, the part of it that is stored, how that is read, and a scan of it, all columns in order."""

    query: Plan
    maintained: Plan
    reading: Reading | None
    rows: Scan


@dataclass(frozen=True, slots=True)
class StoredCover:
    """Rows of a view, with other relations joined and conditions applied, and what a query's expressions are over them.

    `alike` are the columns that hold one of several values which are equal, but can be told apart: zeros of both signs are one
    group.
    """

    rows: Plan
    values: Values
    names: Mapping[str, str]
    classes: Classes
    joined: bool = False
    alike: frozenset[Column] = frozenset()

    def derived(self, expression: Expression) -> Expression | None:
        """An expression of the query's block over the rows; None where they lack something."""
        return self.of_normal(self.normal(expression))

    def normal(self, expression: Expression) -> Expression:
        return self.classes.normal(labelled(expression, self.names))

    def of_normal(self, expression: Expression, is_any: bool = True) -> Expression | None:
        """`is_any` tells whether any of the values that are equal will do."""
        known = self.values.get(expression)
        if known is not None and (is_any or known not in self.alike):
            return known
        if isinstance(expression, Column):
            return None
        found = [self.of_normal(child, _takes_any(expression, is_any)) for child in children(expression)]
        if any(each is None for each in found):
            return None
        parts = iter(found)
        return map_children(expression, lambda _: next(parts) or Literal(LONG, 0))


def use_stored(plan: Plan, stored: StoredPlan) -> Plan | None:
    """The plan with its parts replaced that the view covers; None where it covers none.

    The plan may read other views already.
    """
    taken = frozenset[str]().union(*(node.names for node in plan.walk()))
    matching = _Matching(stored, FreshNames("used", taken))
    found = matching.replaced(plan)
    return rewrite(found) if matching.count else None


@dataclass(slots=True)
class _Matching:
    stored: StoredPlan
    fresh: FreshNames
    count: int = 0
    _prints: dict[Plan, str] = field(default_factory=dict)

    def replaced(self, node: Plan) -> Plan:
        for attempt in (self._same, self._groups, self._block):
            found = attempt(node)
            if found is not None:
                self.count += 1
                return found
        return self._below(node) if isinstance(node, GroupBy) else node.map_children(self.replaced)

    def _below(self, node: GroupBy) -> Plan:
        """A grouping over replaced rows, of which it needs only the columns that it uses: a view may store no others."""
        before = self.count
        used = set().union(*(columns_of(output.expression) for output in (*node.keys, *node.aggregates)))
        needed = passed(column for column in node.child.columns if column.name in used)
        found = self.replaced(Project(node.child, needed or (Output(self.fresh("row"), Literal(LONG, 1)),)))
        return replace(node, child=found) if self.count > before else node

    def _scan(self) -> Scan:
        """A scan of the stored rows under names of its own."""
        rows = self.stored.rows
        return replace(rows, fields=tuple(replace(each, name=self.fresh(each.source)) for each in rows.fields))

    def _same(self, node: Plan) -> Plan | None:
        """The view's own query."""
        query = self.stored.query
        if type(node) is not type(query) or len(node.columns) != len(query.columns) or self._print(node) != self._print(query):
            return None
        rows = self._scan()
        read: Plan = rows if self.stored.reading is None else self.stored.reading.over(rows, self.fresh)
        return Project(read, tuple(Output(mine.name, theirs) for mine, theirs in zip(node.columns, read.columns, strict=True)))

    def _print(self, plan: Plan) -> str:
        if plan not in self._prints:
            self._prints[plan] = shape(plan)
        return self._prints[plan]

    def _block(self, node: Plan) -> Plan | None:
        """Joins and conditions over the rows of a view that only joins and selects."""
        view = self.stored.maintained
        if isinstance(view, GroupBy) or not isinstance(node, Join | Filter | Project | Scan):
            return None
        mine, theirs = block_of(node), block_of(view)
        kept = [theirs.outputs[column.name] for column in view.columns]
        for cover in self._covers(mine, theirs, kept):
            outputs = [(column.name, cover.derived(mine.outputs[column.name])) for column in node.columns]
            if all(value is not None for _, value in outputs):
                return Project(cover.rows, tuple(Output(name, value) for name, value in outputs if value is not None))
        return None

    def _groups(self, node: Plan) -> Plan | None:
        """A grouping over the groups of a view."""
        view = self.stored.maintained
        if not isinstance(node, GroupBy) or not isinstance(view, GroupBy) or node.sets is not None or view.sets is not None:
            return None
        mine, theirs = block_of(node.child), block_of(view.child)
        mine_keys = [_over(key.expression, mine) for key in node.keys]
        kept = [_over(output.expression, theirs) for output in (*view.keys, *view.aggregates)]
        for cover in self._covers(mine, theirs, kept):
            if not self._has_groups and (node.keys or not isinstance(cover.rows, Scan)):
                continue  # there is one row even where no row was read: it tells no group, and nothing beside it
            keys = [cover.derived(key) for key in mine_keys]
            if all(key is not None for key in keys):
                outputs = tuple(Output(key.name, value) for key, value in zip(node.keys, keys, strict=True) if value is not None)
                found = self._rolled_up(node, mine, cover, outputs) or self._same_groups(node, mine, cover, outputs, len(view.keys))
                if found is not None:
                    return found
        return None

    def _rolled_up(self, node: GroupBy, mine: JoinBlock, cover: StoredCover, keys: tuple[Output, ...]) -> Plan | None:
        """Merged partial results."""
        wanted = partials(node, self.fresh)
        if wanted is None:
            return None
        used = set().union(*(columns_of(output.expression) for output in wanted.results))
        merges: list[Output] = []
        shown: list[Output] = [*passed(key.column for key in keys)]
        for output in wanted.plan.aggregates:
            if output.name not in used:
                continue
            call = output.expression
            part = self._part(call, node, mine, cover)
            if part is None or not isinstance(call, AggregateCall):
                return None
            merged = Output(self.fresh("merged"), AggregateCall(call.type, _MERGED_BY.get(call.function, call.function), (part,)))
            merges.append(merged)
            counted = call.function in _MERGED_BY and not node.keys
            value = functions.call("coalesce", [merged.column, Literal(LONG, 0)]) if counted else merged.column
            shown.append(Output(output.name, value))
        return Project(Project(GroupBy(cover.rows, keys, tuple(merges)), tuple(shown)), wanted.results)

    def _part(self, call: Expression, node: GroupBy, mine: JoinBlock, cover: StoredCover) -> Expression | None:
        """The stored column of a partial result; else what tells it: keys their extremes, rows the values that are never null."""
        found: Expression | None = cover.values.get(cover.normal(_over(call, mine)))
        if found is not None or not isinstance(call, AggregateCall):
            return found
        other = in_other_width(call)
        stored = None if other is None else cover.values.get(cover.normal(_over(other, mine)))
        if stored is not None or call.where is not None or call.distinct:
            return None if stored is None else Cast(call.type, stored)
        if call.function in EXTREMES and self._has_groups:
            return cover.derived(_over(call.arguments[0], mine))
        if call.function == "count" and all(never_null(each, node.child) for each in call.arguments):
            return cover.values.get(functions.aggregate("count", []))
        return None

    @property
    def _has_groups(self) -> bool:
        """Whether each stored row is of rows that were there; without keys there is one of none, too."""
        view = self.stored.maintained
        return isinstance(view, GroupBy) and bool(view.keys)

    def _same_groups(self, node: GroupBy, mine: JoinBlock, cover: StoredCover, keys: tuple[Output, ...], width: int) -> Plan | None:
        """Groups as they are stored, where the query groups by exactly the view's keys and joins nothing more."""
        if (
            cover.joined
            or len({key.expression for key in keys}) != width
            or not all(isinstance(k.expression, Column) for k in keys)
        ):
            return None
        outputs = [*keys]
        for output in node.aggregates:
            value = cover.values.get(cover.normal(_over(output.expression, mine)))
            if value is None:
                return None
            outputs.append(Output(output.name, value))
        return Project(cover.rows, tuple(outputs))

    def _covers(self, mine: JoinBlock, theirs: JoinBlock, kept: list[Expression]) -> Iterator[StoredCover]:
        """The rows of the view under the conditions of a query's block, in each way in which their leaves can be paired."""
        if theirs.identities - mine.identities or not (mine.is_clear and theirs.is_clear):
            return
        names = next(theirs.labellings({})).names
        given = [labelled(each, names) for each in theirs.predicates]
        classes = Classes(given)
        pairs = [pair for pair in map(equality, given) if pair is not None]
        demanded = [classes.normal(each) for each in given if equality(each) is None]
        stored = [classes.normal(labelled(each, names)) for each in kept]
        for labelling in mine.labellings(theirs.identities):
            asked = [labelled(each, labelling.names) for each in mine.predicates]
            own = Classes(asked)
            normal = [classes.normal(each) for each in asked]
            if all(own.first(a) == own.first(b) for a, b in pairs) and all(is_implied(each, normal) for each in demanded):
                left = [
                    each for each, was in zip(normal, asked, strict=True) if each not in demanded and not _is_done(was, classes)
                ]
                cover = self._cover(labelling.beyond(theirs.identities), labelling.names, classes, stored, left)
                if cover is not None:
                    yield cover

    def _cover(
        self, others: list[Plan], names: Mapping[str, str], classes: Classes, stored: list[Expression], left: list[Expression]
    ) -> StoredCover | None:
        """The stored rows with other relations, under the conditions that are left."""
        rows: Plan = self._scan()
        values = dict(zip(reversed(stored), reversed(rows.columns), strict=True))
        alike = self._alike(values)
        for leaf in others:
            values |= {Column(column.type, names[column.name]): column for column in leaf.columns}
            rows = Join(rows, leaf, "cross")
        cover = StoredCover(rows, values, names, classes, bool(others), alike)
        conditions = [cover.of_normal(each) for each in left]
        if any(each is None for each in conditions):
            return None
        predicate = conjunction([each for each in conditions if each is not None])
        return cover if predicate is None else replace(cover, rows=Filter(rows, predicate))

    def _alike(self, values: Values) -> frozenset[Column]:
        """The columns of a view's keys whose equal values can be told apart."""
        if not isinstance(self.stored.maintained, GroupBy):
            return frozenset()
        keys = (each for each in values if not isinstance(each, AggregateCall))
        return frozenset(values[each] for each in keys if each.type in FRACTIONS)


def _takes_any(expression: Expression, is_any: bool) -> bool:
    """Whether an expression is the same whichever of equal values its parts have; `is_any` is what is asked of itself."""
    match expression:
        case Call():
            return expression.function in _COMPARES
        case Cast():
            return expression.type != STRING and (is_any or expression.type not in FRACTIONS)
    return False


def _is_done(predicate: Expression, classes: Classes) -> bool:
    """Whether the view makes two different columns equal, as a predicate asks."""
    pair = equality(predicate)
    return pair is not None and pair[0] != pair[1] and classes.first(pair[0]) == classes.first(pair[1])


def _over(expression: Expression, block: JoinBlock) -> Expression:
    """An expression over the columns of a block's leaves."""
    return substitute(expression, block.outputs)
