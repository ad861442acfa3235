"""The vocabulary of deltas: rows with signed weights, the stages that make them, and the walk over a plan.

Law: for a plan P over tables that changed, the weights of the rows of its delta, summed by row, are P(new) - P(old).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nearly.errors import Unsupported
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import AggregateCall, Call, Column, Expression, Literal, conjunction
from nearly.plan.nodes import Filter, GroupBy, Input, Join, Output, Plan, Project, Scan, SetOperation, passed
from nearly.plan.properties import keys
from nearly.plan.schema import TableSchema
from nearly.plan.types import BOOLEAN, LONG

WEIGHT = "nearly_weight"
"""The column of a table's change that tells how often a row came (or, below zero, went)."""


BEFORE, CHANGE = "@before", "@change"


@dataclass(frozen=True, slots=True)
class TableChange:
    """How a plan names a table that changed: as it was, and what came and went since; whether rows only came."""

    before: str
    source: str
    grew: bool = False

    @classmethod
    def of(cls, name: str, *, grew: bool = False) -> TableChange:
        return cls(name + BEFORE, name + CHANGE, grew)


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """A plan's rows with how often each came or went, in a column that is not the plan's own.

    Where `ones` tells that every weight is 1, nothing can cancel out.
    """

    plan: Plan
    weight: Column
    ones: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column in self.plan.columns if column.name != self.weight.name)


@dataclass(frozen=True, slots=True)
class DeltaStage:
    """A small plan whose rows are kept under a name; later stages read them as an `Input`.

    One that `nets` has rows of a change one by one, those that are equal as one.
    """

    name: str
    plan: Plan
    nets: bool = False


@dataclass(frozen=True, slots=True)
class Delta:
    """Stages in order, and the plan of the change itself: the columns asked for, then their weight.

    `parts` are the changes of other plans that were asked for, each a stage of its own; None where none of its tables changed.
    """

    stages: tuple[DeltaStage, ...]
    result: Plan
    weight: Column
    parts: tuple[ChangedRows | None, ...] = ()


Rule = Callable[..., ChangedRows | None]
"""From the walk and a node of one type to the delta of the node."""


@dataclass(slots=True)
class Deltas:
    """One walk over a plan: the delta of each part is made once, and parts that change nothing have none.

    `changes` are the tables that changed, by the names of the scans; a scan of such a table means its new version. `stored` says
    where the old rows of some parts of the plan can be read, under the same columns. `large` are tables that should only be asked
    for keys, in lower case. `keys` are the columns that tell the rows of a table apart, where that is known.
    """

    rules: Mapping[type[Plan], Rule]
    changes: Mapping[str, TableChange]
    stored: Mapping[Plan, Plan] = field(default_factory=dict)
    large: Collection[str] = ()
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fresh: FreshNames = field(default_factory=lambda: FreshNames("delta"))
    stages: list[DeltaStage] = field(default_factory=list)
    _made: dict[Plan, ChangedRows | None] = field(default_factory=dict)
    _kept: dict[Plan, ChangedRows | None] = field(default_factory=dict)
    _old: dict[Plan, Plan] = field(default_factory=dict)
    _inputs: dict[Plan, Input] = field(default_factory=dict)
    _values: dict[Plan, Plan] = field(default_factory=dict)

    def of(self, plan: Plan) -> ChangedRows | None:
        """The delta of a plan, under the plan's columns; None where no table below it changed."""
        if plan not in self._made:
            self._made[plan] = self._rule(plan)(self, plan) if self.touches(plan) else None
        return self._made[plan]

    def _rule(self, plan: Plan) -> Rule:
        rule = self.rules.get(type(plan))
        if rule is None:
            raise Unsupported(f"{type(plan).__name__} has no rule for changes: it is no part of a query that was rewritten")
        return rule

    def kept(self, plan: Plan) -> ChangedRows | None:
        """The delta of a plan as rows at rest, of which none cancel out: from now on it is read there."""
        if plan not in self._kept:
            found = self.of(plan)
            self._made[plan] = self._kept[plan] = None if found is None else self.consolidated(found)
        return self._kept[plan]

    def consolidated(self, found: ChangedRows, hint: str = "change") -> ChangedRows:
        """The same change as a stage of its own: every row once, with the sum of its weights, which is not zero.

        Of rows that only came none cancel out, and equal ones need not become one; such rows of a table are read where they lie.
        """
        if isinstance(found.plan, Input):
            return found
        if found.ones:
            return found if _is_renamed(found.plan) else self.as_stage(found, hint)
        net = net_rows(found, self.fresh)
        return replace(net, plan=self.stage(hint, net.plan, nets=True))

    def as_stage(self, found: ChangedRows, hint: str = "change") -> ChangedRows:
        """The same rows as a stage."""
        return found if isinstance(found.plan, Input) else replace(found, plan=self.stage(hint, found.plan))

    def stage(self, hint: str, plan: Plan, *, nets: bool = False) -> Input:
        """Keep the rows of a plan; a plan is kept once."""
        if plan not in self._inputs:
            self.stages.append(DeltaStage(self.fresh(hint), plan, nets))
            self._inputs[plan] = Input(self.stages[-1].name, plan.columns)
        return self._inputs[plan]

    def touches(self, plan: Plan) -> bool:
        """Whether some table below a plan changed."""
        return any(isinstance(node, Scan) and node.table.lower() in self.changes for node in plan.walk())

    def is_large(self, plan: Plan) -> bool:
        """Whether a plan reads a large table."""
        names = (node.table.lower() for node in plan.walk() if isinstance(node, Scan))
        return any(name.removesuffix(BEFORE) in self.large for name in names)

    def is_told_apart(self, plan: Plan, names: Collection[str]) -> bool:
        """Whether no two rows of a part of the plan are equal in some columns."""
        found = keys(plan, lambda name: TableSchema(name, (), self.keys.get(name.lower(), ())))
        return any(key <= set(names) for key in found)

    def old(self, plan: Plan) -> Plan:
        """The plan over the tables as they were."""
        if plan not in self._old:
            self._old[plan] = self._before(plan)
        return self._old[plan]

    def _before(self, plan: Plan) -> Plan:
        if plan in self.stored:
            return self.stored[plan]
        if isinstance(plan, Scan):
            change = self.changes.get(plan.table.lower())
            return plan if change is None else replace(plan, table=change.before)
        return plan.map_children(self.old)

    def now(self, plan: Plan) -> Plan:
        """The plan over the tables as they are; what did not change is read from where its old rows lie.

        Groups and single values that are kept are what they were, and how they changed.
        """
        if not self.stored:
            return plan
        if not self.touches(plan):
            return self.old(plan)
        if plan not in self.stored or not isinstance(plan, GroupBy):
            return self.computed(plan)
        return self._value(plan) if is_value(plan) else self._groups(plan)

    def computed(self, plan: Plan) -> Plan:
        """The plan over the tables as they are, though its own old rows may be stored."""
        return plan.map_children(self.now)

    def _value(self, plan: Plan) -> Plan:
        if plan not in self._values:
            change = self.kept(plan)
            terms = [self.weighted(self.old(plan), plan.columns, ONE), *([] if change is None else [change])]
            self._values[plan] = Project(self.consolidated(self.union(plan.columns, terms), "value").plan, passed(plan.columns))
        return self._values[plan]

    def _groups(self, plan: GroupBy) -> Plan:
        """Groups that did not change, as they are stored, and those that came."""
        change = self.kept(plan)
        if change is None:
            return self.old(plan)
        touched = tuple(Output(self.fresh("touched"), key.column) for key in plan.keys)
        same = [Call(BOOLEAN, "<=>", (key.column, each.column)) for key, each in zip(plan.keys, touched, strict=True)]
        stay = Join(self.old(plan), Project(change.plan, touched), "anti", conjunction(same))
        came = Filter(change.plan, Call(BOOLEAN, ">", (change.weight, Literal(LONG, 0))))
        return SetOperation(Project(stay, passed(plan.columns)), Project(came, passed(plan.columns)), "union", True, plan.columns)

    def weighted(self, plan: Plan, columns: Sequence[Column], weight: Expression) -> ChangedRows:
        """Some columns of a plan, and a weight for its rows."""
        made = Output(self.fresh("weight"), weight)
        return ChangedRows(Project(plan, (*passed(columns), made)), made.column, weight == ONE)

    def union(self, columns: Sequence[Column], terms: Iterable[ChangedRows]) -> ChangedRows:
        """The sum of several changes of the same columns."""
        terms = tuple(terms)
        ones = all(each.ones for each in terms)
        found = [Project(each.plan, (*passed(columns), Output(each.weight.name, each.weight))) for each in terms]
        if len(found) == 1:
            return ChangedRows(found[0], found[0].columns[-1], ones)
        weight = Column(LONG, self.fresh("weight"))
        whole: Plan = found[0]
        for each in found[1:]:
            whole = SetOperation(whole, each, "union", True, (*columns, weight))
        return ChangedRows(whole, weight, ones)


ONE, MINUS_ONE = Literal(LONG, 1), Literal(LONG, -1)


def is_value(plan: Plan) -> bool:
    """Whether a plan is one group of all rows, which is there for no rows, too."""
    return isinstance(plan, GroupBy) and not plan.keys and plan.sets is None


def net_rows(found: ChangedRows, fresh: FreshNames) -> ChangedRows:
    """Every row of a change once, with the sum of its weights; those that came as often as they went are gone."""
    total = Output(fresh("weight"), AggregateCall(LONG, "sum", (found.weight,)))
    rows = GroupBy(found.plan, passed(found.columns), (total,))
    return ChangedRows(Filter(rows, Call(BOOLEAN, "<>", (total.column, Literal(LONG, 0)))), total.column)


def _is_renamed(plan: Plan) -> bool:
    """Whether a plan has the rows of an input, under other names."""
    while isinstance(plan, Project) and all(isinstance(each.expression, Column) for each in plan.outputs):
        plan = plan.child
    return isinstance(plan, Input)


def negated(weight: Expression) -> Expression:
    return Call(LONG, "neg", (weight,))
