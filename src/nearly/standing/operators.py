"""A plan as the planner of states sees it: a tree of few kinds of operators, each with how much it gives and how that changes.

R are the rows of an operator now, the change those that the next delta brings or takes away at it, R+ the rows afterwards.
Filters and projections belong to the scan below them, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nearly.plan.nodes import Apply, Filter, GroupBy, Join, Limit, Plan, Project, Scan, SetOperation, Sort, Values
from nearly.plan.schema import FindTable
from nearly.plan.types import BOOLEAN, BYTE, DATE, FLOAT, INT, SHORT, DataType, Decimal
from nearly.rewrite.delta.partials import is_mergeable
from nearly.rewrite.delta.waiting import LEFT, RIGHT, waiting_rows
from nearly.rewrite.logical.sizes import Size, size

INNER = ("inner", "cross")
SCAN, ROWS, SORT, AGGREGATE, JOIN, UNION, WHOLE = "scan", "rows", "sort", "aggregate", "join", "union", "whole"
"""Kinds: rows of one table; each row by itself; ordered rows; groups; two sides that meet, or are put together; all the rest."""

_WIDTHS: dict[DataType, float] = {BOOLEAN: 1, BYTE: 1, SHORT: 2, INT: 4, DATE: 4, FLOAT: 4}
_TEXT = 28.0
"""Bytes of a text in memory, about: its descriptor, and what does not fit into it."""
RUN = 2_048
"""Rows that are read to have one of them that went: it lies among others."""
FEWEST_WAIT = 0.001
"""At least this share of a side's rows is taken to wait, until they are counted."""


@dataclass(frozen=True, slots=True)
class WaitingRows:
    """The rows of a join's side whose partner has not arrived, and how many rows the table has in which they will find it."""

    plan: Plan
    rows: float
    width: float
    partners: float

    @property
    def bytes(self) -> float:
        return self.rows * self.width


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: the plan whose rows it gives, how many, and of how many bytes; `read` counts values taken from files.

    With `shrinks`, some of its rows are expected to go; `sought` counts the values of files among which those of a table lie.
    Of a join, `waiting` are rows of the left and the right side that wait for the other one, where it is expected to grow by keys.
    """

    kind: str
    plan: Plan
    rows: float
    change: float
    after: float
    width: float
    inputs: tuple[Operator, ...] = ()
    read: float = 0.0
    join: str = ""
    incremental: bool = True
    shrinks: bool = False
    sought: float = 0.0
    waiting: tuple[WaitingRows | None, WaitingRows | None] = (None, None)

    @property
    def bytes(self) -> float:
        """The bytes of R."""
        return self.rows * self.width

    @property
    def columns(self) -> int:
        return max(1, len(self.plan.columns))

    def walk(self) -> Iterator[Operator]:
        yield self
        for each in self.inputs:
            yield from each.walk()


@dataclass(frozen=True, slots=True)
class Sizes:
    """What is known of sizes: the tables, how many of their rows will come or go, and rows and widths that were measured.

    Of tables that `shrink` some rows are expected to go.
    """

    find_table: FindTable
    expected: Mapping[str, float]
    rows: Mapping[Plan, float] = field(default_factory=dict)
    widths: Mapping[Plan, float] = field(default_factory=dict)
    shrink: Mapping[str, float] = field(default_factory=dict)
    _known: dict[Plan, Size] = field(default_factory=dict)

    def of(self, plan: Plan) -> float:
        """About how many rows a plan has; a filter that was counted tells about the joins above it."""
        for each, count in self.rows.items() if not self._known else ():
            self._known[each] = Size(count, max(count, size(each, self.find_table).base))
        return size(plan, self.find_table, self._known).rows

    def width(self, plan: Plan) -> float:
        known = self.widths.get(plan)
        return sum(map(_width, (column.type for column in plan.columns))) if known is None else known


def _width(type_: DataType) -> float:
    if isinstance(type_, Decimal):
        return 2.0 if type_.precision <= 4 else 4.0 if type_.precision <= 9 else 8.0 if type_.precision <= 18 else 16.0
    return _WIDTHS.get(type_, _TEXT if type_.name in ("string", "binary") else 8.0)


def _values(type_: DataType) -> float:
    """As how many numbers a value counts when it is read: longer ones by their bytes."""
    return max(1.0, _width(type_) / 8)


def operators(plan: Plan, sizes: Sizes) -> Operator:
    """The tree of a plan's operators. Law: its operators' plans are parts of the plan, the root's is the plan."""
    below = plan
    while isinstance(below, Filter | Project):
        below = below.child
    if isinstance(below, Scan | Values):
        return _scan(plan, below, sizes)
    if below is not plan:
        child = operators(plan.children[0], sizes)
        return _made(ROWS, plan, (child,), sizes, child.change)
    if isinstance(plan, Limit) and isinstance(plan.child, Sort):  # the first rows need no whole order
        return _made(WHOLE, plan, (operators(plan.child.child, sizes),), sizes, 0.0)
    inputs = tuple(operators(child, sizes) for child in plan.children)
    match plan:
        case Join():
            return _join(plan, inputs, sizes)
        case GroupBy():
            return _groups(plan, inputs[0], sizes)
        case Sort():
            return _made(SORT, plan, inputs, sizes, inputs[0].change)
        case SetOperation(kind="union", every=True):
            return _made(UNION, plan, inputs, sizes, sum(each.change for each in inputs))
        case Apply(keys=None):
            return _made(ROWS, plan, inputs, sizes, inputs[0].change)
    return _made(WHOLE, plan, inputs, sizes, 0.0)


def _scan(plan: Plan, leaf: Plan, sizes: Sizes) -> Operator:
    rows = sizes.of(plan)
    if not isinstance(leaf, Scan):
        return Operator(SCAN, plan, rows, 0.0, rows, sizes.width(plan))
    stored = float(sizes.find_table(leaf.table).rows)
    name, values = leaf.table.lower(), max(1.0, sum(_values(each.type) for each in leaf.fields))
    change = sizes.expected.get(name, 0.0) * min(1.0, rows / stored if stored else 1.0)
    read, went = (stored + sizes.expected.get(name, 0.0)) * values, sizes.shrink.get(name, 0.0)
    sought = min(stored, went * RUN) * values
    return Operator(SCAN, plan, rows, change, rows + change, sizes.width(plan), read=read, shrinks=went > 0, sought=sought)


def _made(kind: str, plan: Plan, inputs: tuple[Operator, ...], sizes: Sizes, change: float) -> Operator:
    rows = sizes.of(plan)
    given = sum(each.rows for each in inputs)
    share = rows / given if given else 1.0
    if kind == WHOLE:
        change = 2 * rows if any(each.change for each in inputs) else 0.0
    else:
        change *= min(1.0, share)
    shrinks = kind == WHOLE or any(each.shrinks for each in inputs)
    return Operator(kind, plan, rows, change, rows + change, sizes.width(plan), inputs, shrinks=shrinks)


def _groups(plan: GroupBy, child: Operator, sizes: Sizes) -> Operator:
    """A touched group goes as it was and comes as it is. No more are touched than there are: few groups take many rows each."""
    rows = sizes.of(plan)
    after = rows * (child.after / child.rows if child.rows and plan.keys else 1.0)
    touched = min(max(rows, after, 1.0), child.change)
    incremental = plan.sets is None and all(map(is_mergeable, plan.aggregates))
    return Operator(AGGREGATE, plan, rows, 2 * touched, after, sizes.width(plan), (child,), incremental=incremental, shrinks=True)


def _join(plan: Join, sides: tuple[Operator, ...], sizes: Sizes) -> Operator:
    """Rows come and go with those of each side, in the proportion in which they meet."""
    rows = sizes.of(plan)
    left, right = (each.change / max(each.rows, 1.0) for each in sides)
    base = max(rows, 1.0)
    return Operator(
        JOIN, plan, rows, base * (left + right + left * right), base * (1 + left) * (1 + right), sizes.width(plan), sides,
        join=plan.kind, shrinks=plan.kind not in INNER or any(each.shrinks for each in sides),
        waiting=(_waiting(plan, LEFT, sides, sizes), _waiting(plan, RIGHT, sides, sizes)),
    )  # fmt: skip


def _waiting(plan: Join, side: int, sides: Sequence[Operator], sizes: Sizes) -> WaitingRows | None:
    """As many rows wait as will find their partner in the next delta, if nothing else is known."""
    mine, other = sides[side], sides[1 - side]
    if not other.change or other.shrinks:
        return None
    found = waiting_rows(plan, side, lambda name: sizes.find_table(name).key)
    if found is None:
        return None
    (table,) = tables_of(found.right)
    partners, coming = float(sizes.find_table(table).rows), sizes.expected.get(table, 0.0)
    share = max(coming / max(partners + coming, 1.0), FEWEST_WAIT)
    return WaitingRows(found, sizes.rows.get(found, mine.rows * share), sizes.width(found), partners)


def tables_of(plan: Plan) -> set[str]:
    """The tables that a plan reads, in lower case."""
    return {node.table.lower() for node in plan.walk() if isinstance(node, Scan)}
