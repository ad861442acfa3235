"""Relations of estimates: rows that stand for others, and columns that evolve."""

from __future__ import annotations

from dataclasses import dataclass

from nearly.plan.expressions import Column, Expression, columns_of
from nearly.plan.nodes import Input, Output, Plan
from nearly.plan.types import DOUBLE, INT, is_numeric

WEIGHTS = Input("weights", (Column(INT, "replicate"), Column(INT, "unit_group"), Column(DOUBLE, "unit_weight")))
REPLICATES = Input("replicates", (Column(INT, "replicate"),))

Growth = tuple[float, ...]
"""share(k) for k = 1, 2, ...: what remains of N/n for a key seen in k unit groups; see `estimate.incidence`."""


@dataclass(frozen=True, slots=True)
class Weighted:
    """A relation of estimates: which columns evolve, which of them became doubles, and what a row stands for.

    `seen` counts the unit groups in which the key behind a row occurs. `extremes` are columns that hang on the least or greatest of
    the values read: replicates say nothing about how far it will move.
    """

    plan: Plan
    replicate: Column | None = None
    weight: Expression | None = None
    unit: Column | None = None
    seen: Column | None = None
    evolving: frozenset[str] = frozenset()
    doubles: frozenset[str] = frozenset()
    extremes: frozenset[str] = frozenset()

    @property
    def carried(self) -> tuple[Output, ...]:
        """The columns that every projection must pass on."""
        columns = [each for each in (self.replicate, self.weight, self.unit, self.seen) if isinstance(each, Column)]
        return tuple(Output(column.name, column) for column in columns)

    def evolves(self, expression: Expression) -> bool:
        return bool(columns_of(expression) & self.evolving)


Growths = dict[Plan, Growth]
"""The growth of the keys of an aggregate of the tail; without an entry every key is taken as seen in all unit groups."""


def became_double(new: Output, old: Output) -> bool:
    return new.expression.type == DOUBLE and old.expression.type != DOUBLE and is_numeric(old.expression.type)
