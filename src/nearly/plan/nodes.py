"""The plan algebra. Nodes are frozen, know their columns and their children, and check themselves when built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from nearly.errors import SchemaError
from nearly.plan.expressions import AggregateCall, Column, Expression, SortKey, WindowCall, columns_of, expressions_in, map_value
from nearly.plan.immutable import Holder, Remembering, node, with_fields
from nearly.plan.types import BOOLEAN, DataType

JOIN_KINDS = ("inner", "left", "right", "full", "semi", "anti", "cross")


@dataclass(frozen=True, slots=True)
class Output(Holder):
    """A column that a node computes: a plan-wide unique name and its expression."""

    name: str
    expression: Expression

    @property
    def column(self) -> Column:
        return Column(self.expression.type, self.name)


def passed(columns: Iterable[Column]) -> tuple[Output, ...]:
    """Columns that come out as they are."""
    return tuple(Output(column.name, column) for column in columns)


@node
class Plan(Remembering):
    """Base of all nodes."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of its child, unless the node says otherwise."""
        node: Any = self
        found: tuple[Column, ...] = node.child.columns
        return found

    @property
    def children(self) -> tuple[Plan, ...]:
        return tuple(value for value in _values(self) if isinstance(value, Plan))

    @property
    def names(self) -> frozenset[str]:
        try:
            found: frozenset[str] = self._names
        except AttributeError:
            found = frozenset(column.name for column in self.columns)
            object.__setattr__(self, "_names", found)
        return found

    def expressions(self) -> Iterator[Expression]:
        """The expressions this node evaluates itself."""
        for value in _values(self):
            yield from expressions_in(value)

    def map_children(self, change: Callable[[Plan], Plan]) -> Plan:
        """The same node over changed children; the very same object when nothing changed."""
        return with_fields(self, lambda value: change(value) if isinstance(value, Plan) else value)

    def map_own_expressions(self, change: Callable[[Expression], Expression]) -> Plan:
        """The same node with changed expressions, children untouched."""
        return with_fields(self, lambda value: map_value(value, change))

    def map_expressions(self, change: Callable[[Expression], Expression]) -> Plan:
        """The whole tree with every expression changed."""
        return self.map_children(lambda child: child.map_expressions(change)).map_own_expressions(change)

    def transform(self, change: Callable[[Plan], Plan]) -> Plan:
        """Apply `change` to every node, children before parents."""
        return change(self.map_children(lambda child: child.transform(change)))

    def walk(self) -> Iterator[Plan]:
        """This node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def outer_columns(self) -> frozenset[str]:
        """Names that expressions of this tree use and no node of it produces: references to an enclosing query."""
        used: set[str] = set()
        made: set[str] = set()
        for each in self.walk():
            made |= each.names
            for expression in each.expressions():
                used |= columns_of(expression)
        return frozenset(used - made)


def _values(node: Plan) -> Iterator[Any]:
    names: tuple[str, ...] = node.__match_args__
    for name in names:
        yield getattr(node, name)


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a stored table as one scan reads it: its unique name in the plan, its name in the table, its type."""

    name: str
    source: str
    type: DataType
    nullable: bool = True


@node
class Scan(Plan):
    """The rows of a registered table in one of its versions.

    `share` says which of them one site reads: `all`, some `blocks` of its own, a `range` of the column the table is clustered by,
    or some hash `buckets` of a layout that was prepared by a key.
    """

    table: str
    fields: tuple[Field, ...]
    share: str = "all"
    layout: str = "base"
    version: int = 0

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(Column(field.type, field.name) for field in self.fields)


@node
class Input(Plan):
    """Rows that another stage hands over under this name."""

    source: str
    given: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.given


@node
class Values(Plan):
    """Constant rows; with no columns and one empty row it is the input of a SELECT without FROM."""

    given: tuple[Column, ...]
    rows: tuple[tuple[Expression, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.given):
                raise SchemaError(f"VALUES: a row of {len(row)} values for {len(self.given)} columns")

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.given


@node
class Filter(Plan):
    """Rows for which the predicate is true."""

    child: Plan
    predicate: Expression

    def __post_init__(self) -> None:
        if self.predicate.type != BOOLEAN:
            raise SchemaError(f"a filter needs a boolean, this one is {self.predicate.type}")


@node
class Project(Plan):
    """One output row for each input row."""

    child: Plan
    outputs: tuple[Output, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(output.column for output in self.outputs)


@node
class Join(Plan):
    """A join; semi and anti keep the left columns only, cross has no condition."""

    left: Plan
    right: Plan
    kind: str
    condition: Expression | None = None

    def __post_init__(self) -> None:
        if self.kind not in JOIN_KINDS:
            raise SchemaError(f"join kind {self.kind!r} is not one of {', '.join(JOIN_KINDS)}")
        if (self.condition is None) != (self.kind == "cross"):
            raise SchemaError(f"a {self.kind} join {'needs a' if self.condition is None else 'has no'} condition")

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.left.columns if self.kind in ("semi", "anti") else self.left.columns + self.right.columns


@node
class GroupBy(Plan):
    """Groups by `keys`; no keys means one row, also for no input.

    `sets` lists, for GROUPING SETS, the positions of the keys each set keeps (the others become null); then `grouping_id` names
    an extra column with Spark's `grouping_id()`: bit i from the left is 1 when key i is not in the set.
    """

    child: Plan
    keys: tuple[Output, ...]
    aggregates: tuple[Output, ...]
    sets: tuple[tuple[int, ...], ...] | None = None
    grouping_id: Column | None = None

    def __post_init__(self) -> None:
        for output in self.aggregates:
            if not isinstance(output.expression, AggregateCall):
                raise SchemaError(f"{output.name} is not an aggregate")

    @property
    def columns(self) -> tuple[Column, ...]:
        extra = () if self.grouping_id is None else (self.grouping_id,)
        return (*(key.column for key in self.keys), *(each.column for each in self.aggregates), *extra)


@node
class Window(Plan):
    """The child's columns and one more for each window call."""

    child: Plan
    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        for output in self.outputs:
            if not isinstance(output.expression, WindowCall):
                raise SchemaError(f"{output.name} is not a window call")

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.child.columns, *(output.column for output in self.outputs))


@node
class SetOperation(Plan):
    """UNION, INTERSECT or EXCEPT by position; `every` is ALL: duplicates count. Both sides have the types of `given`."""

    left: Plan
    right: Plan
    kind: str
    every: bool
    given: tuple[Column, ...]

    def __post_init__(self) -> None:
        for side in (self.left, self.right):
            if [column.type for column in side.columns] != [column.type for column in self.given]:
                raise SchemaError(f"the sides of {self.kind.upper()} have different columns")

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.given


@node
class Sort(Plan):
    """The rows in order."""

    child: Plan
    keys: tuple[SortKey, ...]


@node
class Limit(Plan):
    """At most `count` rows (all when None) after skipping `offset`."""

    child: Plan
    count: int | None
    offset: int = 0


@node
class Apply(Plan):
    """The rows that a user's function makes of the child's; it is given the columns `taken` and gives those in `given`.

    With `keys` None it may be given the rows in pieces: f(a + b) = f(a) + f(b). Otherwise it needs all rows at once, and its first
    `keys` columns identify a row. `by` is a column of the child that is passed on: rows that differ in it are different pieces.
    `estimates` tells of the columns after the keys what their values over a sample of the rows say about all of them.
    """

    child: Plan
    function: str
    taken: tuple[Column, ...]
    given: tuple[Column, ...]
    keys: int | None = None
    by: Column | None = None
    estimates: tuple[str | None, ...] = ()

    def __post_init__(self) -> None:
        missing = {column.name for column in self.taken} - self.child.names
        if missing:
            raise SchemaError(f"function {self.function} takes columns that are not there: {', '.join(sorted(missing))}")

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.given if self.by is None else (*self.given, self.by)


@node
class Exchange(Plan):
    """Rows move between sites: `hash` by keys, `broadcast` to every site, `gather` to the driver."""

    child: Plan
    kind: str
    keys: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A bound query: its plan, and the names its columns have for the user (they may repeat).

    `unnamed` tells that some name was left to Spark's own naming of expressions.
    """

    plan: Plan
    names: tuple[str, ...]
    unnamed: bool = False

    @property
    def types(self) -> tuple[DataType, ...]:
        return tuple(column.type for column in self.plan.columns)
