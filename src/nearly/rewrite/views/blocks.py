"""Select, project and join as one block: what is joined, which conditions hold, and what each column is in terms of the leaves.

Two blocks are compared by names that tell leaf and column (`orders#0.o_orderkey`), with one name for columns that a block makes
equal, and expressions in one order (`plan.canonical`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, permutations

from nearly.plan.canonical import fingerprint, in_order
from nearly.plan.expressions import Call, Column, Expression, conjuncts, substitute, transform
from nearly.plan.nodes import Filter, Join, Plan, Project, Scan, Sort
from nearly.plan.types import FRACTIONS

MOST_LABELLINGS = 24
"""Ways in which leaves of the same table can be told apart that are tried."""


@dataclass(slots=True)
class JoinBlock:
    """The leaves of a plan of selections, projections and inner joins; predicates and outputs are over the columns of leaves."""

    leaves: list[Plan] = field(default_factory=list)
    predicates: list[Expression] = field(default_factory=list)
    outputs: dict[str, Expression] = field(default_factory=dict)

    @property
    def identities(self) -> Counter[str]:
        """How often each relation is joined."""
        return Counter(identity(leaf) for leaf in self.leaves)

    @property
    def is_clear(self) -> bool:
        """Whether a column's name tells its leaf: a common table expression that is used twice has the same names twice."""
        return len({name for leaf in self.leaves for name in leaf.names}) == sum(len(leaf.names) for leaf in self.leaves)

    def labellings(self, counts: Mapping[str, int]) -> Iterator[Labelling]:
        """Names that tell leaf and column, for all columns; as many of each kind as `counts` says are chosen in each order."""
        alike: dict[str, list[Plan]] = defaultdict(list)
        for leaf in self.leaves:
            alike[identity(leaf)].append(leaf)
        ways = [(leaves, counts.get(kind, 0)) for kind, leaves in alike.items()]
        for chosen in islice(_orders(ways), MOST_LABELLINGS):
            leaves = [
                (kind, number, leaf) for kind, ordered in zip(alike, chosen, strict=True) for number, leaf in enumerate(ordered)
            ]
            yield Labelling(tuple(leaves))


def _orders(ways: Sequence[tuple[list[Plan], int]]) -> Iterator[tuple[list[Plan], ...]]:
    """So many of the leaves of each kind in each order, before the others; one after the other, since there may be very many."""
    if not ways:
        yield ()
        return
    (leaves, count), *further = ways
    for places in permutations(range(len(leaves)), count):
        first = [leaves[place] for place in places]
        rest = [leaf for place, leaf in enumerate(leaves) if place not in places]
        for others in _orders(further):
            yield ([*first, *rest], *others)


@dataclass(frozen=True, slots=True)
class Labelling:
    """The leaves of a block, those that are alike numbered."""

    leaves: tuple[tuple[str, int, Plan], ...]

    @property
    def names(self) -> dict[str, str]:
        """For each column a name that tells its leaf."""
        return {name: f"{kind}#{number}.{key}" for kind, number, leaf in self.leaves for name, key in _keys(leaf).items()}

    def beyond(self, counts: Mapping[str, int]) -> list[Plan]:
        """The leaves that are not among so many of each kind."""
        return [leaf for kind, number, leaf in self.leaves if number >= counts.get(kind, 0)]


@lru_cache(maxsize=4096)  # a query is compared with many views
def block_of(plan: Plan) -> JoinBlock:
    """The block on top of a plan; at least one leaf. It is not to be changed."""
    found = JoinBlock()
    found.outputs = _collect(plan, found, is_joined=False)
    return found


def _collect(plan: Plan, into: JoinBlock, is_joined: bool) -> dict[str, Expression]:
    match plan:
        case Project():
            below = _collect(plan.child, into, is_joined)
            return {output.name: substitute(output.expression, below) for output in plan.outputs}
        case Filter():
            below = _collect(plan.child, into, is_joined)
            into.predicates += [substitute(part, below) for part in conjuncts(plan.predicate)]
            return below
        case Sort() if is_joined:  # a join keeps no order; anywhere else it may be the order of the answer
            return _collect(plan.child, into, is_joined)
        case Join(kind="inner" | "cross"):
            below = _collect(plan.left, into, is_joined=True) | _collect(plan.right, into, is_joined=True)
            into.predicates += [substitute(part, below) for part in conjuncts(plan.condition)]
            return below
    into.leaves.append(plan)
    return {column.name: column for column in plan.columns}


def identity(leaf: Plan) -> str:
    """What a leaf reads; two scans of a table are alike whichever columns they read."""
    return leaf.table.lower() if isinstance(leaf, Scan) else shape(leaf)


@lru_cache(maxsize=4096)
def shape(plan: Plan) -> str:
    """What a plan computes, without what is known of a table's version and nulls, which is no part of what is asked."""
    return fingerprint(plan.transform(_anyhow))


def _anyhow(node: Plan) -> Plan:
    if not isinstance(node, Scan):
        return node
    return replace(node, version=0, fields=tuple(replace(each, nullable=True) for each in node.fields))


def _keys(leaf: Plan) -> dict[str, str]:
    """How the columns of a leaf are told apart: by the table's own names, or by their place."""
    if isinstance(leaf, Scan):
        return {each.name: each.source for each in leaf.fields}
    return {column.name: str(place) for place, column in enumerate(leaf.columns)}


class Classes:
    """Columns that conditions make equal, each under the name of the first of them."""

    def __init__(self, predicates: Iterable[Expression]) -> None:
        self._first: dict[Column, Column] = {}
        for left, right in filter(None, map(equality, predicates)):
            low, high = sorted((self.first(left), self.first(right)), key=lambda column: column.name)
            if low != high:
                self._first[high] = low

    def first(self, column: Column) -> Column:
        while column in self._first:
            column = self._first[column]
        return column

    def normal(self, expression: Expression) -> Expression:
        """The expression over first columns, in one order."""
        return transform(expression, lambda each: self.first(each) if isinstance(each, Column) else in_order(each))


def equality(predicate: Expression) -> tuple[Column, Column] | None:
    """Two columns that a predicate makes the same; equal floats may still differ in their sign.

    That a column equals itself says something else: that it is not null.
    """
    match predicate:
        case Call(function="=", arguments=(Column() as left, Column() as right)) if left.type == right.type and left != right:
            return (left, right) if left.type not in FRACTIONS else None
    return None


def labelled(expression: Expression, names: Mapping[str, str]) -> Expression:
    """The expression over columns that tell their leaf."""
    return transform(
        expression, lambda each: Column(each.type, names.get(each.name, each.name)) if isinstance(each, Column) else in_order(each)
    )
