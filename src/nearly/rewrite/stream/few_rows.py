"""A tail over the rows of an answer only: a sorted and limited answer shows few of very many groups, and only they need bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nearly.plan.expressions import Column, same
from nearly.plan.nodes import Filter, GroupBy, Input, Join, Limit, Plan, Project, Sort
from nearly.plan.properties import origins
from nearly.rewrite.stream.cut import Gathered

ANSWER_KEYS = "answer_keys"
FEW_ROWS = "few_rows"


@dataclass(frozen=True, slots=True)
class FewRows:
    """The topmost aggregate of a tail, which groups the rows of a stage by keys that the answer shows at some places."""

    aggregate: GroupBy
    stage: Gathered
    places: tuple[int, ...]

    @property
    def wanted(self) -> Input:
        """The keys of the answer, in order."""
        return Input(ANSWER_KEYS, tuple(Column(key.column.type, f"answer_key_{at}") for at, key in enumerate(self.aggregate.keys)))

    @property
    def rows(self) -> Plan:
        """The rows of the stage that belong to groups of the answer."""
        keys = [key.expression for key in self.aggregate.keys if isinstance(key.expression, Column)]
        return Join(self.aggregate.child, self.wanted, "semi", same(keys, self.wanted.given))

    @property
    def narrowed(self) -> GroupBy:
        """The aggregate over these rows, which are then the input `few_rows`."""
        return replace(self.aggregate, child=Input(FEW_ROWS, self.aggregate.child.columns))

    def tail(self, tail: Plan) -> Plan:
        """The tail with the narrowed aggregate."""
        return tail.transform(lambda node: self.narrowed if node == self.aggregate else node)

    def stages(self, stages: tuple[Gathered, ...]) -> tuple[Gathered, ...]:
        """All stages, and the few rows as one of them."""
        return (*stages, replace(self.stage, name=FEW_ROWS))


def few_rows(tail: Plan, stages: tuple[Gathered, ...]) -> FewRows | None:
    """The aggregate that can be narrowed to the groups of an answer; None when the tail is none above a stage's rows."""
    aggregate = _topmost(tail)
    if aggregate is None or not aggregate.keys or aggregate.sets is not None or not isinstance(aggregate.child, Input):
        return None
    stage = next((each for each in stages if each.name == aggregate.child.source and each.unit is not None), None)
    origin_of = origins(tail)
    shown = [origin_of.get(column.name) for column in tail.columns]
    names = [key.name for key in aggregate.keys]
    if (
        stage is None
        or any(name not in shown for name in names)
        or not all(isinstance(k.expression, Column) for k in aggregate.keys)
    ):
        return None
    return FewRows(aggregate, stage, tuple(shown.index(name) for name in names))


def _topmost(plan: Plan) -> GroupBy | None:
    match plan:
        case GroupBy():
            return plan
        case Project() | Filter() | Sort() | Limit():
            return _topmost(plan.child)
    return None
