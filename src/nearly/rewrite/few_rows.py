"""A tail over the rows of an answer only: a sorted and limited answer shows few of very many groups, and only they need bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nearly.plan.expressions import Column, same
from nearly.plan.nodes import Aggregate, Filter, Input, Join, Limit, Plan, Project, Sort
from nearly.rewrite.cut import Gathered

ANSWER_KEYS = "answer_keys"
FEW_ROWS = "few_rows"


@dataclass(frozen=True, slots=True)
class FewRows:
    """The topmost aggregate of a tail, which groups the rows of a stage by keys that the answer shows at some places."""

    aggregate: Aggregate
    stage: Gathered
    places: tuple[int, ...]

    @property
    def rows(self) -> Plan:
        """The rows of the stage that belong to groups of the answer, over the input `answer_keys`: its keys, in order."""
        keys = [key.expression for key in self.aggregate.keys if isinstance(key.expression, Column)]
        wanted = tuple(Column(key.type, f"answer_key_{at}") for at, key in enumerate(keys))
        return Join(self.aggregate.child, Input(ANSWER_KEYS, wanted), "semi", same(keys, wanted))

    @property
    def narrowed(self) -> Aggregate:
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
    shown = [_origin(tail, column.name) for column in tail.columns]
    names = [key.name for key in aggregate.keys]
    if (
        stage is None
        or any(name not in shown for name in names)
        or not all(isinstance(k.expression, Column) for k in aggregate.keys)
    ):
        return None
    return FewRows(aggregate, stage, tuple(shown.index(name) for name in names))


def _topmost(plan: Plan) -> Aggregate | None:
    match plan:
        case Aggregate():
            return plan
        case Project() | Filter() | Sort() | Limit():
            return _topmost(plan.child)
    return None


def _origin(plan: Plan, name: str) -> str | None:
    """The name that a column has in the topmost aggregate; None when it is computed above."""
    match plan:
        case Aggregate():
            return name
        case Project():
            expression = next(output.expression for output in plan.outputs if output.name == name)
            return _origin(plan.child, expression.name) if isinstance(expression, Column) else None
        case Filter() | Sort() | Limit():
            return _origin(plan.child, name)
    return None
