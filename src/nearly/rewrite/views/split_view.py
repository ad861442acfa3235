"""A query in two: the plan whose rows a view stores, and the plan that makes of them what users see.

Law: reading what the maintained plan gives is the query. Stored are all groups, with partial results that can be merged and the
number of their rows; HAVING, the last projection, ORDER BY and LIMIT are for whoever reads. So what changes little in the tables
changes little in what is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import AggregateCall, Column, Literal, SortKey, UserCall, walk
from nearly.plan.nodes import (
    Apply,
    Field,
    Filter,
    GroupBy,
    Input,
    Join,
    Limit,
    Output,
    Plan,
    Project,
    Scan,
    SetOperation,
    Sort,
    passed,
)
from nearly.plan.properties import keys
from nearly.plan.reading import STORED, Reading
from nearly.plan.schema import FindTable, TableSchema
from nearly.plan.types import INT, NULL
from nearly.rewrite.delta.partials import partials
from nearly.rewrite.delta.strategy.open_rows import settle_ties
from nearly.rewrite.delta.with_partials import with_partials
from nearly.rewrite.logical.prune import prune
from nearly.rewrite.logical.sizes import size

MOST_ROWS = 1_000_000
"""Of a query with a LIMIT all rows are stored where they are about so many at most; else only those it shows."""


@dataclass(frozen=True, slots=True)
class StoredView:
    """What is stored of a view: a plan, the names of its columns in the stored table, how they are read, which tell rows apart."""

    maintained: Plan
    columns: tuple[str, ...]
    reading: Reading | None
    key: tuple[str, ...] = ()

    @property
    def kept(self) -> Plan:
        """The maintained plan in the form that is brought up to date: groups and single values inside it are partial results."""
        return with_partials(self.maintained)

    def groups_in(self, table: TableSchema) -> dict[Plan, Plan]:
        """Where its groups can be read: they are what is stored. Of other rows nothing is gained by reading them there."""
        if not isinstance(self.maintained, GroupBy):
            return {}
        nullable = {column.name: column.nullable for column in table.columns}
        pairs = zip(self.maintained.columns, self.columns, strict=True)
        fields = tuple(Field(column.name, name, column.type, nullable[name]) for column, name in pairs)
        return {self.maintained: Scan(table.name, fields)}


def split_view(plan: Plan, names: Sequence[str], find_table: FindTable) -> StoredView:
    """The two plans of a query whose columns have these names, which differ."""
    fresh = FreshNames("view")
    plan = settle_ties(plan, find_table)
    upper, core = _peeled(plan, find_table)
    rows, shown = _stored(core, fresh, find_table)
    read = shown
    for node in reversed(upper):
        read = _over(node, read)
    if any(is_of_session(node) for node in read.walk()):
        rows, read = _stored_as_is(plan)
    rows, read = _without_void(rows, read)
    columns = _names(rows, read, names)
    identity = read.columns == rows.columns and isinstance(read, Input)
    found = sorted(keys(rows, find_table), key=lambda key: (len(key), sorted(key)))
    spelled = dict(zip((column.name for column in rows.columns), columns, strict=True))
    key = tuple(spelled[column.name] for column in rows.columns if found and column.name in found[0])
    return StoredView(rows, columns, None if identity else Reading(read, tuple(names)), key)


def _without_void(rows: Plan, read: Plan) -> tuple[Plan, Plan]:
    """Columns that are nothing but null are not stored, since no table has their type."""
    kept = [column for column in rows.columns if column.type != NULL]
    if not kept or len(kept) == len(rows.columns):
        return rows, read
    shown = tuple(Output(each.name, each if each.type != NULL else Literal(NULL, None)) for each in rows.columns)
    given = Project(Input(STORED, tuple(kept)), shown)
    return Project(rows, passed(kept)), read.transform(lambda node: given if isinstance(node, Input) else node)


def _over(node: Plan, below: Plan) -> Plan:
    return node.map_children(lambda _: below)


def _peeled(plan: Plan, find_table: FindTable) -> tuple[list[Plan], Plan]:
    """The nodes on top that are for whoever reads, and what is below them."""
    chain: list[Plan] = []
    node = plan
    while isinstance(node, Sort | Limit | Project | Filter):
        chain.append(node)
        node = node.child
    if isinstance(node, GroupBy):
        return _ordered(chain, any_order=True), node
    while chain and not isinstance(chain[-1], Sort | Limit):
        node = chain.pop()
    if any(isinstance(each, Limit) for each in chain) and size(node, find_table).rows > MOST_ROWS:
        return [], plan
    ordered = _ordered(chain)
    return ordered, chain[len(ordered)] if len(ordered) < len(chain) else node


def _ordered(chain: Sequence[Plan], any_order: bool = False) -> list[Plan]:
    """A chain of nodes whose limits have an order that no two different rows share; where there is none, the chain ends above."""
    found: list[Plan] = []
    for place, node in enumerate(chain):
        if isinstance(node, Limit) and not any_order and not any(isinstance(each, Sort) for each in _under(chain, place)):
            return found
        if isinstance(node, Limit) and not any(isinstance(each, Sort) for each in _under(chain, place)):
            found += [node, Sort(node.child, _all(node.child))]
        elif isinstance(node, Sort) and any(isinstance(each, Limit) for each in chain[:place]):
            found.append(replace(node, keys=(*node.keys, *_all(node.child))))
        else:
            found.append(node)
    return found


def _under(chain: Sequence[Plan], place: int) -> list[Plan]:
    """The nodes below one that keep the order of rows, and the sort that made it."""
    found: list[Plan] = []
    for node in chain[place + 1 :]:
        if isinstance(node, Filter | Limit):
            break
        found.append(node)
    return found


def _all(plan: Plan) -> tuple[SortKey, ...]:
    return tuple(SortKey(column) for column in plan.columns)


def _stored(core: Plan, fresh: FreshNames, find_table: FindTable) -> tuple[Plan, Plan]:
    """What is stored of a plan, and the plan itself over that."""
    match core:
        case GroupBy():
            return _groups(core, fresh)
        case Project() if not keys(core, find_table):
            return _with_key(core, fresh, find_table)
        case SetOperation() if not keys(core, find_table):
            return _with_key(Project(core, passed(core.columns)), fresh, find_table)
    return _stored_as_is(core)


def _stored_as_is(core: Plan) -> tuple[Plan, Plan]:
    return core, Input(STORED, core.columns)


def _groups(core: GroupBy, fresh: FreshNames) -> tuple[Plan, Plan]:
    """All groups with what can be added to, each once, and the number of rows; where that is not known, the groups as they are."""
    found = partials(core, fresh)
    if found is None:
        return _stored_as_is(core)
    return found.plan, found.finished(Input(STORED, found.plan.columns))


def _with_key(core: Project, fresh: FreshNames, find_table: FindTable) -> tuple[Plan, Plan]:
    """A projection with the columns that identify a row of its child, where it leaves them out."""
    child = _keyed(core.child, fresh, find_table)
    found = sorted(keys(child, find_table), key=lambda key: (len(key), sorted(key)))
    kept = {output.expression.name for output in core.outputs if isinstance(output.expression, Column)}
    hidden = [column for column in child.columns if found and column.name in found[0] - kept]
    if not hidden:
        return _stored_as_is(core)
    rows = Project(child, (*core.outputs, *(Output(fresh(column.name), column) for column in hidden)))
    return prune(rows), Project(Input(STORED, rows.columns), passed(core.columns))


def _keyed(plan: Plan, fresh: FreshNames, find_table: FindTable) -> Plan:
    """The plan with the keys of the tables that its rows come from as further columns."""
    match plan:
        case Scan():
            schema = find_table(plan.table)
            known = {column.name: column for column in schema.columns}
            missing = [known[name] for name in schema.key if name not in {field.source for field in plan.fields}]
            more = tuple(Field(fresh(each.name), each.name, each.type, each.nullable) for each in missing)
            return replace(plan, fields=(*plan.fields, *more))
        case Filter():
            return plan.map_children(lambda child: _keyed(child, fresh, find_table))
        case Project():
            child = _keyed(plan.child, fresh, find_table)
            added = [column for column in child.columns if column.name not in plan.child.names]
            return Project(child, (*plan.outputs, *passed(added)))
        case SetOperation(kind="union", every=True):
            return _told_apart(plan, fresh)
        case Join(kind="semi" | "anti"):
            return replace(plan, left=_keyed(plan.left, fresh, find_table))
        case Join():
            return plan.map_children(lambda child: _keyed(child, fresh, find_table))
    return plan


def _told_apart(plan: SetOperation, fresh: FreshNames) -> Plan:
    """The rows of both sides, and a column more that tells of which part of the union each is."""
    numbers = count()

    def marked(side: Plan) -> Plan:
        if isinstance(side, SetOperation) and side.kind == "union" and side.every:
            given = (*side.given, Column(INT, fresh("side")))
            return replace(side, left=marked(side.left), right=marked(side.right), given=given)
        return Project(side, (*passed(side.columns), Output(fresh("side"), Literal(INT, next(numbers)))))

    return marked(plan)


def _names(rows: Plan, read: Plan, names: Sequence[str]) -> tuple[str, ...]:
    """The names of stored columns: those that users know where a column is shown as it is, else others that begin with `_`."""
    shown = {origin: name for origin, name in zip(_passed_on(read), names, strict=True) if origin is not None}
    made = {each.name: each.expression.function for each in _aggregates(rows) if isinstance(each.expression, AggregateCall)}
    taken = {name.lower() for name in names}
    found = []
    for column in rows.columns:
        name = shown.get(column.name)
        if name is None:
            name = base = f"_{made.get(column.name, column.name.rsplit('_', 1)[0]).lstrip('_')}"
            number = 1
            while name.lower() in taken:
                number += 1
                name = f"{base}_{number}"
            taken.add(name.lower())
        found.append(name)
    return tuple(found)


def _aggregates(rows: Plan) -> tuple[Output, ...]:
    return rows.aggregates if isinstance(rows, GroupBy) else ()


def _passed_on(plan: Plan) -> tuple[str | None, ...]:
    """For each column of a reading the stored column that it is, where it is one that no column before it is."""
    origins = _origins(plan)
    seen: set[str] = set()
    found: list[str | None] = []
    for column in plan.columns:
        origin = origins.get(column.name)
        found.append(None if origin in seen else origin)
        seen |= {origin} if origin is not None else set()
    return tuple(found)


def _origins(plan: Plan) -> dict[str, str]:
    match plan:
        case Input():
            return {column.name: column.name for column in plan.columns}
        case Project():
            below = _origins(plan.child)
            straight = ((o.name, o.expression.name) for o in plan.outputs if isinstance(o.expression, Column))
            return {name: below[passed_] for name, passed_ in straight if passed_ in below}
    return _origins(plan.children[0])


def is_of_session(node: Plan) -> bool:
    """Whether a plan can only be run by the session that knows its functions."""
    return isinstance(node, Apply) or any(isinstance(each, UserCall) for top in node.expressions() for each in walk(top))
