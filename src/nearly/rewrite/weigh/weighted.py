"""Relations of estimates: rows that stand for others, and columns that evolve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from nearly.errors import Unsupported
from nearly.plan.expressions import Call, Cast, Column, Expression, children, columns_of
from nearly.plan.nodes import GroupBy, Input, Output, Plan, passed
from nearly.plan.types import DOUBLE, INT, LONG, Decimal

WEIGHTS = Input("weights", (Column(INT, "replicate"), Column(INT, "unit_group"), Column(DOUBLE, "unit_weight")))
WEIGHTS_BESIDE = Input("weights_beside", WEIGHTS.given)
"""Of the rows of a table that is sampled by itself: each replicate leaves out units of both."""
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
class OfUnits:
    """Rows that were read: each stands for `weight` rows, and belongs to a unit; `beside` those of a table sampled by itself."""

    weight: Expression
    unit: Column
    beside: bool = False


@dataclass(frozen=True, slots=True)
class OfPairs:
    """Rows made of rows of two tables that are sampled by themselves: each stands for as many as both together."""

    weights: tuple[Expression, Expression]
    units: tuple[Column, Column]

    @property
    def weight(self) -> Expression:
        return Call(DOUBLE, "*", self.weights)


@dataclass(frozen=True, slots=True)
class OfKeys:
    """Rows of groups: `seen` counts the unit groups with the key behind a row, which may stand for others that were missed.

    `unlike` says that most of these may be in units unlike those read, so that nothing tells how many they are.
    """

    weight: Expression | None
    seen: Column
    unlike: bool = False


@dataclass(frozen=True, slots=True)
class OfPieces:
    """Rows that a user's function made of rows of units: their unit is lost, their weight is not."""

    weight: Expression


@dataclass(frozen=True, slots=True)
class Themselves:
    """Rows that stand for themselves."""

    weight: ClassVar[None] = None


Standing = OfUnits | OfPairs | OfKeys | OfPieces | Themselves
THEMSELVES = Themselves()


@dataclass(frozen=True, slots=True)
class Weighted:
    """A relation of estimates: what a row stands for, which columns evolve, and which of them became doubles.

    `replicate` numbers the replicate of each row; it is None where all rows are those of a point estimate, or of every replicate.
    `extremes` are columns that hang on the least or greatest of the values read, or another one by its place among them: replicates
    say nothing about how far it will move.
    `curved` are columns that are no linear function of totals and averages: over many keys of few rows each their errors do not
    cancel out.
    `by_extremes` says that such a value picks the rows, so that everything made of them hangs on it.
    `of_picked` says that aggregates were made of rows that a test of estimates picked: they jump where it changes its outcome.

    `evidence` names, for each column that evolves, the columns with the unit groups (one bit each) that contributed to it: an
    estimate is as good as the poorest of them. `present` names those that the rows themselves hang on, `deciding` those of the
    estimates that tests picked them by, each row by its own.
    """

    plan: Plan
    standing: Standing = THEMSELVES
    replicate: Column | None = None
    evolving: frozenset[str] = frozenset()
    doubles: frozenset[str] = frozenset()
    extremes: frozenset[str] = frozenset()
    evidence: Mapping[str, frozenset[str]] = field(default_factory=dict)
    present: frozenset[str] = frozenset()
    rows: RowSet = FINAL
    by_extremes: bool = False
    of_picked: bool = False
    deciding: frozenset[str] = frozenset()
    curved: frozenset[str] = frozenset()

    @property
    def weight(self) -> Expression | None:
        return self.standing.weight

    @property
    def seen(self) -> Column | None:
        return self.standing.seen if isinstance(self.standing, OfKeys) else None

    @property
    def unlike(self) -> bool:
        """Whether nothing tells how many rows these stand for."""
        return isinstance(self.standing, OfKeys) and self.standing.unlike

    def standing_with(self, other: Weighted) -> Standing:
        """What a row made of two stands for: rows of units for their like, whatever they meet."""
        match self.standing, other.standing:
            case (OfUnits() as one, OfUnits() as two) if one.beside != two.beside:
                return OfPairs((one.weight, two.weight), (one.unit, two.unit))
            case (OfUnits() | OfPairs(), OfUnits() | OfPairs()):
                raise Unsupported("two streamed tables meet only at the driver")
            case (OfPairs() as pairs, _) | (_, OfPairs() as pairs):
                return pairs
            case (OfUnits() as units, _) | (_, OfUnits() as units):
                return units
        weight, seen = self.weight or other.weight, self.seen or other.seen
        if seen is not None:
            return OfKeys(weight, seen, self.unlike or other.unlike)
        return THEMSELVES if weight is None else OfPieces(weight)

    @property
    def carried(self) -> tuple[Output, ...]:
        """The columns that every projection must pass on."""
        match self.standing:
            case OfUnits(weight, column) | OfKeys(weight, column):
                columns = [each for each in (self.replicate, weight, column) if isinstance(each, Column)]
            case OfPairs(weights, units):
                columns = [each for each in (self.replicate, *weights, *units) if isinstance(each, Column)]
            case _:
                columns = [] if self.replicate is None else [self.replicate]
        masks = self.present.union(self.deciding, *self.evidence.values())
        return passed((*columns, *(Column(LONG, name) for name in sorted(masks))))

    def contributing(self, names: Iterable[str]) -> frozenset[str]:
        """The evidence of some columns together."""
        return frozenset[str]().union(*(self.evidence.get(name, frozenset()) for name in names))

    def evolves(self, expression: Expression) -> bool:
        return bool(columns_of(expression) & self.evolving)

    def bends(self, expression: Expression) -> bool:
        """Whether an expression is no linear function of totals and averages."""
        return bool(columns_of(expression) & self.curved) or not self._is_linear(expression)

    def _is_linear(self, expression: Expression) -> bool:
        """What may be null is taken as if it were not: `coalesce` is linear in either case."""
        if not self.evolves(expression) or isinstance(expression, Column):
            return True
        if isinstance(expression, Cast):
            keeps = expression.type == DOUBLE or isinstance(expression.type, Decimal)
            return keeps and all(map(self._is_linear, children(expression)))
        if not isinstance(expression, Call) or not all(map(self._is_linear, expression.arguments)):
            return False
        match expression.function:
            case "+" | "-" | "negative" | "coalesce" | "average_of":
                return True
            case "*":
                return sum(map(self.evolves, expression.arguments)) == 1
            case "/":
                return not self.evolves(expression.arguments[1])
        return False


Growths = dict[Plan, Growth]
"""The growth of the keys of an aggregate of the tail; without an entry every key is taken as seen in all unit groups."""
