"""What refreshing a view costs, by strategy: values read, stages and rows written, by measured constants.

The constants are of one machine and one kind of query. What refreshes of a view really took corrects them for that view: the
estimate of a strategy is multiplied by the mean ratio of its past refreshes, of which the last ones count most, and which tell less
the more, or less, was expected of them; that of one that was never taken by the root of how far computing the view was off, which
tells of the machine and of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import expm1, inf, log

from nearly.engine.deltas.neighbours import MOST_KEYS
from nearly.engine.deltas.reading import MOST_KEPT
from nearly.engine.deltas.versions import Moved
from nearly.plan.expressions import Expression, columns_of
from nearly.plan.nodes import Filter, GroupBy, Input, Join, Plan, Project, Scan, SetOperation
from nearly.plan.schema import FindTable
from nearly.rewrite.delta.changed import BEFORE, Delta
from nearly.rewrite.delta.strategy.strategies import WHOLE
from nearly.rewrite.logical.sizes import selectivity, size
from nearly.views.states import Refresh

FIXED_SECONDS = 0.03
"""Planning and committing."""
STAGE_SECONDS = 0.015
"""What a stage takes that has few rows."""
WRITTEN_CELLS = 8_000_000
"""Values that are written, compared with the stored ones and committed in a second; or netted, and held for other stages."""
PRUNED = 0.8
"""The share of a table's values that is read, about, where only rows with certain keys are asked for: these lie anywhere."""
HELD = 2.0
"""What holding such rows in memory, in both versions, takes beside reading them: all of them, where all keys are asked for."""
MEMORY = 0.5
"""How much of a past ratio counts, beside the ones before it."""
FADING = 0.7
"""By which power a ratio above 1 comes nearer to it whenever another way was taken: what was slow once, as the first to read a
change for all views is, is tried again."""
REACH = 8.0
"""A ratio counts by its root where so many times more, or less, is expected than where it was found."""
FARTHEST = 20.0
TINY = 1e-6
UNTRIED = 0.5
"""By which power the ratio of computing a view counts for a way that was never taken: a slow machine is slow in every way, but what
a query does to all rows it does to few in others."""


@dataclass(frozen=True, slots=True)
class RefreshCosts:
    """Estimates in seconds for the tables and the cores there are."""

    find_table: FindTable
    cores: int
    scan: float
    """Seconds that a core takes to read a value and work on it (`engine.costs`)."""
    followers: Callable[[str], int] = lambda _: 1
    """How many views follow a table: what one of them reads of its changes, or around them, the others find in memory."""
    different: Callable[[str, str], float] = lambda _table, _column: inf
    """About how many different values a column of a table has: where they are few, a change has most of them."""

    def whole(self, plan: Plan, stored_rows: int) -> float:
        """Everything computed anew, written, and compared with what is stored."""
        rows = max(size(plan, self.find_table).rows if not stored_rows else float(stored_rows), 1.0)
        return FIXED_SECONDS + self._reading(plan) + 2 * rows * len(plan.columns) / WRITTEN_CELLS

    def delta(self, change: Delta, changed: Mapping[str, int], stored_rows: int, width: int) -> float:
        """The stages of a change, and what they commit. Rows of a table by keys are read once for all stages, in both versions.

        `changed` are the rows of the changes of tables, by the names under which stages read them. Where a change is only added to
        groups, no more rows are written than there are groups, as they were and are.
        """
        asked, seconds = _Lookups(dict(changed)), FIXED_SECONDS
        for stage in change.stages:
            seconds += STAGE_SECONDS + self._reading(stage.plan, asked)
            asked.rows[stage.name] = found = self._rows(stage.plan, asked.rows)
            seconds += found * len(stage.plan.columns) / WRITTEN_CELLS if stage.nets else 0.0
        seconds += STAGE_SECONDS + self._reading(change.result, asked)
        written = min(self._rows(change.result, asked.rows), 2.0 * max(stored_rows, 1))
        return seconds + sum(asked.seconds.values()) + written * width / WRITTEN_CELLS

    def _rows(self, plan: Plan, stages: Mapping[str, float]) -> float:
        """About how many rows a stage has: as many as the fewest that it joins, without what its filters drop."""

        def below(child: Plan) -> float:
            return self._rows(child, stages)

        match plan:
            case Input():
                return stages.get(plan.source, 1.0)
            case Scan():
                return float(self.find_table(plan.table).rows)
            case Filter():
                return below(plan.child) * selectivity(plan.predicate)
            case GroupBy(keys=()):
                return 1.0
            case Join(kind="inner" | "cross" | "semi"):
                return min(map(below, plan.children))
            case Join(kind="anti" | "left"):
                return below(plan.left)
            case SetOperation(kind="union"):
                return sum(map(below, plan.children))
        return max(map(below, plan.children), default=1.0)

    @property
    def alone(self) -> RefreshCosts:
        """The same for a view that reads first what others share."""
        return replace(self, followers=lambda _: 1)

    def changes(self, moved: Iterable[Moved], columns: Mapping[str, int]) -> float:
        """What came and went in tables, read among the rows that it lies between; what is not too much once for all followers."""
        found = 0.0
        for each in moved:
            rows = sum(file.rows for part in each.parts for file in part.files)
            shared = self.followers(each.after.name) if each.most_rows <= MOST_KEPT else 1
            found += self._values(rows * columns[each.after.name]) / shared
        return found

    def _reading(self, plan: Plan, asked: _Lookups | None = None) -> float:
        """Seconds to read what a plan reads; scans that are asked for certain keys are noted in `asked`, where it is given."""
        match plan:
            case Scan():
                return self._values(self.find_table(plan.table).rows * max(1, len(plan.fields)))
            case Join(kind="semi") if asked is not None and _is_small(plan.right):
                return self._looking_up(plan.left, plan.condition, self._rows(plan.right, asked.rows), asked)
            case Join(kind="inner") if asked is not None and _is_small(plan.left):
                keys = self._rows(plan.left, asked.rows)
                return self._reading(plan.left, asked) + self._looking_up(plan.right, plan.condition, keys, asked)
        return sum(self._reading(child, asked) for child in plan.children)

    def _looking_up(self, plan: Plan, condition: Expression | None, keys: float, asked: _Lookups) -> float:
        """What is read for rows with so many keys, and held. Few ones of a table's own key all views that follow it ask for."""
        if isinstance(plan, Filter | Project):
            return self._looking_up(plan.child, condition, keys, asked)
        if not isinstance(plan, Scan):
            return self._reading(plan, asked)
        name, table = plan.table.removesuffix(BEFORE), self.find_table(plan.table)
        columns = frozenset(each.source for each in plan.fields if condition is not None and each.name in columns_of(condition))
        own = bool(columns & set(table.key))
        different = float(table.rows) if own else max((self.different(name, each) for each in columns), default=1.0)
        held = HELD * -expm1(-keys / max(different, 1.0))
        shared = self.followers(name) if own and keys <= MOST_KEYS * table.rows else 1
        asked.note((name.lower(), columns), (PRUNED / shared + held) * self._reading(plan))
        return 0.0

    def _values(self, count: float) -> float:
        return count * self.scan / self.cores


@dataclass(frozen=True, slots=True)
class _Lookups:
    """Seconds to read rows of tables by keys, by table and columns, and the rows of changes and stages, by their names."""

    rows: dict[str, float]
    seconds: dict[Hashable, float] = field(default_factory=dict)

    def note(self, name: Hashable, seconds: float) -> None:
        self.seconds[name] = max(seconds, self.seconds.get(name, 0.0))


def _is_small(plan: Plan) -> bool:
    """Whether rows come from a stage, and so are few."""
    return all(not isinstance(node, Scan) for node in plan.walk()) and any(isinstance(node, Input) for node in plan.walk())


def corrected(estimates: Mapping[str, float], past: Iterable[Refresh]) -> dict[str, float]:
    """Estimates after what past refreshes took; how a view was made is the first of them.

    A refresh that took something between what was expected with others to share the reading, and alone, took what was expected.
    """
    ratios: dict[str, float] = {}
    found_at: dict[str, float] = {}
    for each in past:
        ratios |= {strategy: ratio**FADING for strategy, ratio in ratios.items() if strategy != each.strategy and ratio > 1}
        expected = each.estimates.get(each.strategy)
        if expected:
            nearest = min(max(each.seconds, expected), max(expected, each.most))
            ratio = min(max(each.seconds / nearest, 1 / FARTHEST), FARTHEST)
            ratios[each.strategy] = ratio if each.strategy not in ratios else ratios[each.strategy] * (1 - MEMORY) + ratio * MEMORY
            found_at[each.strategy] = expected
    usual = ratios.get(WHOLE, 1.0) ** UNTRIED
    return {
        strategy: seconds * (ratios[strategy] ** _trust(seconds, found_at[strategy]) if strategy in ratios else usual)
        for strategy, seconds in estimates.items()
    }


def _trust(expected: float, before: float) -> float:
    """By which power a ratio counts that was found where something else was expected: what is large asks for other things."""
    return 1 / (1 + abs(log(max(expected, TINY) / max(before, TINY))) / log(REACH))
