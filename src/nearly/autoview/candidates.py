"""Which parts of a query could be kept: its result, its joins, its filters and its groups, as they are and more general ones.

The result serves the same question alone, but all of it, whatever the query does: windows, unions, outer joins, sets of groups.
Joins are all connected sets of the block's tables, up to six; filters are those of single tables; groups are the block's own. Of
a join and of a grouping there is also a form without the block's filters, whose columns are kept instead: it answers the same
question with other constants, by filtering and rolling up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from nearly.autoview.blocks import Spja, blocks_of
from nearly.autoview.options import ViewShape
from nearly.engine.storage.layouts import AT
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import Call, Column, Expression, columns_of, conjunction
from nearly.plan.nodes import Filter, GroupBy, Input, Join, Limit, Output, Plan, Project, Scan, Sort, passed
from nearly.plan.reading import STORED, Reading
from nearly.plan.schema import FindTable
from nearly.plan.types import NULL, IntervalType, is_simple
from nearly.rewrite.delta.partials import partials
from nearly.rewrite.logical.sizes import selectivity
from nearly.rewrite.passes import rewrite
from nearly.rewrite.views.blocks import equality, shape
from nearly.rewrite.views.split_view import StoredView, is_of_session, split_view

JOIN_LIMIT = 6
"""Tables that a view joins at most."""
MOST_SUBSETS = 40
MOST_CANDIDATES = 48
"""Of one query."""
RESULT, JOIN, FILTER, AGGREGATE = "result", "join", "filter", "aggregate"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A part of a query that could be kept: what it computes, what would be stored, and what it is about.

    `id` tells what it computes, over whichever versions of its tables. `text` is the question of which it is the result. A part
    that reads `hidden` columns, such as the sums that a view of the user keeps for its averages, cannot be written as a query.
    """

    id: str
    kind: str
    plan: Plan
    stored: StoredView
    shape: ViewShape
    text: str = ""
    hidden: bool = False

    @property
    def tables(self) -> frozenset[str]:
        """The tables it reads, in lower case."""
        return frozenset(self.shape.tables)


def candidates_of(plan: Plan, find_table: FindTable, text: str = "") -> list[Candidate]:
    """The candidates of a query, each once; the text is the query's own."""
    if any(is_of_session(node) for node in plan.walk()):
        return []
    result = result_of(plan, text)
    found = {} if result is None else {result.id: result}
    for block in blocks_of(plan):
        for kind, part in _parts(block):
            made = candidate(kind, part, find_table)
            if made is not None and made.id not in found:
                found[made.id] = made
                if len(found) >= MOST_CANDIDATES:
                    return list(found.values())
    return list(found.values())


def candidate(kind: str, part: Plan, find_table: FindTable) -> Candidate | None:
    """What is stored of a plan, right for all versions of its tables; None where no table can hold it."""
    plan = rewrite(part).transform(_of_any_version)
    names = [f"c{place}" for place in range(len(plan.columns))]
    stored = split_view(plan, names, find_table)
    return _storable(
        Candidate(shape(plan), kind, plan, stored, _shape_of(stored.maintained), hidden=_reads_hidden(plan, find_table))
    )


def _reads_hidden(plan: Plan, find_table: FindTable) -> bool:
    """Whether a plan reads columns that users do not see."""
    for node in plan.walk():
        reading = find_table(node.table).reading if isinstance(node, Scan) else None
        if reading is not None and isinstance(node, Scan) and not {each.source for each in node.fields} <= set(reading.names):
            return True
    return False


def result_of(plan: Plan, text: str) -> Candidate | None:
    """All rows that a query shows, as they are; None where no table can hold them, or they are not of tables as they are."""
    tables = [node.table for node in plan.walk() if isinstance(node, Scan)]
    if not tables or any(AT in table for table in tables) or any(is_of_session(node) for node in plan.walk()):
        return None
    part = _shown(plan).transform(_of_any_version)
    names = tuple(f"c{place}" for place in range(len(part.columns)))
    order = next((node.keys for node in _top(part) if isinstance(node, Sort)), ()) if isinstance(part, Limit) else ()
    if any(columns_of(key.expression) - part.names for key in order):
        return None
    reading = Reading(Sort(Input(STORED, part.columns), order), names) if order else None
    return _storable(Candidate(shape(part), RESULT, part, StoredView(part, names, reading), _shape_of(part), text))


def _shown(plan: Plan) -> Plan:
    """A query without the last steps that are cheap to do again: its order, and columns that only the order needed."""
    limit = next((node for node in _top(plan) if isinstance(node, Limit)), None)
    if limit is not None:
        return limit
    order = next((node for node in _top(plan) if isinstance(node, Sort)), None)
    return plan if order is None else order.child


def _top(plan: Plan) -> Iterator[Plan]:
    """The last steps of a query that leave its rows what they are."""
    while isinstance(plan, Project | Sort | Limit):
        yield plan
        plan = plan.child


def _storable(found: Candidate) -> Candidate | None:
    """A candidate, where tables can hold its columns."""
    columns = found.stored.maintained.columns
    unfit = any(not is_simple(each.type) or isinstance(each.type, IntervalType) or each.type == NULL for each in columns)
    return None if unfit or not found.plan.columns else found


def _parts(found: Spja) -> Iterator[tuple[str, Plan]]:
    """Groups first, since they keep least; then joins, the larger ones first; then filters."""
    if found.group is not None and found.is_whole:
        yield AGGREGATE, _grouped(found, tuple(found.block.predicates), ())
        left = tuple(each for each in found.block.predicates if _joins(found, each))
        dropped = tuple(each for each in found.block.predicates if each not in left)
        if dropped and partials(found.group, FreshNames("part")) is not None:
            yield AGGREGATE, _grouped(found, left, _columns(found, dropped))
    for chosen in _subsets(found):
        inside = _inside(found, chosen)
        yield JOIN if len(chosen) > 1 else FILTER, _joined(found, chosen, inside)
        joining = tuple(each for each in inside if _joins(found, each))
        if len(chosen) > 1 and joining != inside:
            yield JOIN, _joined(found, chosen, joining)


def _grouped(found: Spja, tested: tuple[Expression, ...], more: tuple[Column, ...]) -> Plan:
    """The block's groups of the rows that pass some tests, by further keys."""
    fresh = FreshNames("auto")
    known = {each.expression for each in found.keys}
    keys = (*found.keys, *(Output(fresh(column.name), column) for column in more if column not in known))
    return GroupBy(_rows(found.scans, tested), keys, found.aggregates)


def _joined(found: Spja, chosen: tuple[Scan, ...], tested: tuple[Expression, ...]) -> Plan:
    return Project(_rows(chosen, tested), passed(found.needed(chosen, tested)))


def _rows(scans: tuple[Scan, ...], tested: tuple[Expression, ...]) -> Plan:
    rows: Plan = scans[0]
    for scan in scans[1:]:
        rows = Join(rows, scan, "cross")
    predicate = conjunction(list(tested))
    return rows if predicate is None else Filter(rows, predicate)


def _owners(found: Spja) -> dict[str, int]:
    return {name: place for place, leaf in enumerate(found.block.leaves) for name in leaf.names}


def _joins(found: Spja, predicate: Expression) -> bool:
    """Whether a predicate equates columns of two leaves."""
    owners = _owners(found)
    return equality(predicate) is not None and len({owners.get(name) for name in columns_of(predicate)}) > 1


def _inside(found: Spja, chosen: tuple[Scan, ...]) -> tuple[Expression, ...]:
    """The predicates that some tables decide."""
    own = {name for scan in chosen for name in scan.names}
    return tuple(each for each in found.block.predicates if columns_of(each) and columns_of(each) <= own)


def _columns(found: Spja, predicates: tuple[Expression, ...]) -> tuple[Column, ...]:
    known = {column.name: column for leaf in found.block.leaves for column in leaf.columns}
    names = dict.fromkeys(name for each in predicates for name in sorted(columns_of(each)))
    return tuple(known[name] for name in names if name in known)


def _subsets(found: Spja) -> list[tuple[Scan, ...]]:
    """Connected sets of tables, the larger ones first; of single tables those with a filter. All tables ungrouped come last."""
    scans = found.scans
    near = _neighbours(found, scans)
    sets = list(islice(_connected(len(scans), near), MOST_SUBSETS))
    sets.sort(key=lambda each: (-len(each), sorted(each)))
    chosen = [tuple(scans[place] for place in sorted(each)) for each in sets]
    return [each for each in chosen if len(each) > 1 or _inside(found, each)]


def _neighbours(found: Spja, scans: tuple[Scan, ...]) -> dict[int, set[int]]:
    owner = {name: place for place, scan in enumerate(scans) for name in scan.names}
    near: dict[int, set[int]] = {place: set() for place in range(len(scans))}
    for predicate in found.block.predicates:
        places = {owner[name] for name in columns_of(predicate) if name in owner}
        if len(places) > 1 and len(columns_of(predicate)) == 2:
            for place in places:
                near[place] |= places - {place}
    return near


def _connected(count: int, near: Mapping[int, set[int]]) -> Iterator[frozenset[int]]:
    """Sets of places that hang together, smaller ones first."""
    level = {frozenset({place}) for place in range(count)}
    for _ in range(min(count, JOIN_LIMIT)):
        yield from sorted(level, key=sorted)
        level = {each | {other} for each in level for place in each for other in near[place] - each}


def _shape_of(plan: Plan) -> ViewShape:
    """Tables, grouped columns and filtered columns of what is stored, by the names that tables have for them."""
    sources = {
        field.name: f"{node.table.lower()}.{field.source}"
        for node in plan.walk()
        if isinstance(node, Scan)
        for field in node.fields
    }
    tables = sorted(node.table.lower() for node in plan.walk() if isinstance(node, Scan))
    keys = next((node.keys for node in plan.walk() if isinstance(node, GroupBy)), ())
    groups = {sources.get(name, name) for key in keys for name in columns_of(key.expression)}
    kept: dict[str, float] = {}
    for node in plan.walk():
        if isinstance(node, Filter):
            for part in _tests(node.predicate):
                for name in columns_of(part):
                    column = sources.get(name, name)
                    kept[column] = kept.get(column, 1.0) * selectivity(part)
    return ViewShape(tuple(tables), tuple(sorted(groups)), tuple(sorted(kept.items())))


def _tests(predicate: Expression) -> list[Expression]:
    if isinstance(predicate, Call) and predicate.function == "and":
        return [part for each in predicate.arguments for part in _tests(each)]
    return [predicate]


def _of_any_version(node: Plan) -> Plan:
    """A scan of a table that may have other versions, in which any column may hold nulls."""
    if not isinstance(node, Scan):
        return node
    return replace(node, version=0, fields=tuple(replace(each, nullable=True) for each in node.fields))
