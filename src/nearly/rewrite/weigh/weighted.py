"""Relations of estimates: rows that stand for others, and columns that evolve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from nearly.plan.expressions import Column, Expression, columns_of
from nearly.plan.nodes import GroupBy, Input, Output, Plan
from nearly.plan.types import DOUBLE, INT, LONG, is_numeric

WEIGHTS = Input("weights", (Column(INT, "replicate"), Column(INT, "unit_group"), Column(DOUBLE, "unit_weight")))
REPLICATES = Input("replicates", (Column(INT, "replicate"),))

Growth = tuple[float, ...]
"""share(k) for k = 1, 2, ...: what remains of N/n for a key seen in k unit groups; see `estimate.incidence`."""


@dataclass(frozen=True, slots=True)
class RowSet:
    """Which rows a relation has, beside those it has now. Law: when it is `final`, it has exactly its final rows.

    `keys` are aggregates whose keys may not all have been seen; each new one may add rows. `undecided` says that whether a row is
    there hangs on estimates. `open` says that rows come with the units, and nothing tells how many.
    """

    keys: tuple[GroupBy, ...] = ()
    undecided: bool = False
    open: bool = False

    @property
    def final(self) -> bool:
        return not (self.keys or self.undecided or self.open)

    def hanging(self) -> RowSet:
        """These rows, when estimates decide which of them stay."""
        return replace(self, undecided=True)

    def and_of(self, other: RowSet) -> RowSet:
        """Rows made of both."""
        keys = tuple(dict.fromkeys((*self.keys, *other.keys)))
        return RowSet(keys, self.undecided or other.undecided, self.open or other.open)


FINAL = RowSet()
OPEN = RowSet(open=True)


@dataclass(frozen=True, slots=True)
class Weighted:
    """A relation of estimates: which columns evolve, which of them became doubles, and what a row stands for.

    `seen` counts the unit groups in which the key behind a row occurs. `extremes` are columns that hang on the least or greatest of
    the values read: replicates say nothing about how far it will move.

    `evidence` names, for each column that evolves, the columns with the unit groups (one bit each) that contributed to it: an
    estimate is as good as the poorest of them. `present` names those that the rows themselves hang on.
    """

    plan: Plan
    replicate: Column | None = None
    weight: Expression | None = None
    unit: Column | None = None
    seen: Column | None = None
    evolving: frozenset[str] = frozenset()
    doubles: frozenset[str] = frozenset()
    extremes: frozenset[str] = frozenset()
    evidence: Mapping[str, frozenset[str]] = field(default_factory=dict)
    present: frozenset[str] = frozenset()
    rows: RowSet = FINAL

    @property
    def carried(self) -> tuple[Output, ...]:
        """The columns that every projection must pass on."""
        columns = [each for each in (self.replicate, self.weight, self.unit, self.seen) if isinstance(each, Column)]
        masks = self.present.union(*self.evidence.values())
        return tuple(Output(column.name, column) for column in (*columns, *(Column(LONG, name) for name in sorted(masks))))

    def contributing(self, names: Iterable[str]) -> frozenset[str]:
        """The evidence of some columns together."""
        return frozenset[str]().union(*(self.evidence.get(name, frozenset()) for name in names))

    def evolves(self, expression: Expression) -> bool:
        return bool(columns_of(expression) & self.evolving)


Growths = dict[Plan, Growth]
"""The growth of the keys of an aggregate of the tail; without an entry every key is taken as seen in all unit groups."""


def became_double(new: Output, old: Output) -> bool:
    return new.expression.type == DOUBLE and old.expression.type != DOUBLE and is_numeric(old.expression.type)
