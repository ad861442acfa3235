"""What refreshing a view costs, by strategy: values read, stages and rows written, by measured constants.

The constants are of one machine and one kind of query. What refreshes of a view really took corrects them for that view: the
estimate of a strategy is multiplied by the mean ratio of its past refreshes, of which the last ones count most; that of one that
was never taken by how far computing the view was off, which tells of the machine and of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

from nearly.engine.deltas.versions import Moved
from nearly.plan.expressions import Expression, columns_of
from nearly.plan.nodes import Filter, Input, Join, Plan, Project, Scan
from nearly.plan.schema import FindTable
from nearly.rewrite.delta.changed import BEFORE, Delta
from nearly.rewrite.delta.strategy.strategies import WHOLE
from nearly.rewrite.logical.sizes import size
from nearly.views.states import Refresh

FIXED_SECONDS = 0.03
"""Planning and committing."""
STAGE_SECONDS = 0.015
"""What a stage takes that has few rows."""
WRITTEN_CELLS = 8_000_000
"""Values that are written, compared with the stored ones and committed in a second."""
PRUNED = 0.8
"""The share of a table's values that is read, about, where only rows with certain keys are asked for: these lie anywhere."""
MEMORY = 0.5
"""How much of a past ratio counts, beside the ones before it."""
FADING = 0.7
"""By which power a ratio comes nearer to 1 whenever another way was taken: what was slow once, as the first to read a change for
all views is, is tried again."""
FARTHEST = 20.0


@dataclass(frozen=True, slots=True)
class RefreshCosts:
    """Estimates in seconds for the tables and the cores there are."""

    find_table: FindTable
    cores: int
    scan: float
    """Seconds that a core takes to read a value and work on it (`engine.costs`)."""
    followers: Callable[[str], int] = lambda _: 1
    """How many views follow a table: what one of them reads of its changes, or around them, the others find in memory."""

    def whole(self, plan: Plan, stored_rows: int) -> float:
        """Everything computed anew, written, and compared with what is stored."""
        rows = max(size(plan, self.find_table).rows if not stored_rows else float(stored_rows), 1.0)
        return FIXED_SECONDS + self._reading(plan) + 2 * rows * len(plan.columns) / WRITTEN_CELLS

    def delta(self, change: Delta, changed: int, width: int) -> float:
        """The stages of a change, and what they commit. Rows of a table by keys are read once for all stages, in both versions."""
        stages = [*(stage.plan for stage in change.stages), change.result]
        by_keys: dict[Hashable, float] = {}
        reading = sum(STAGE_SECONDS + self._reading(plan, by_keys) for plan in stages)
        return FIXED_SECONDS + reading + sum(by_keys.values()) + changed * width / WRITTEN_CELLS

    def changes(self, moved: Iterable[Moved], columns: Mapping[str, int]) -> float:
        """What came and went in tables, read among the rows that it lies between, once for all views that follow a table."""
        found = 0.0
        for each in moved:
            rows = sum(file.rows for part in each.parts for file in part.files)
            found += self._values(rows * columns[each.after.name]) / self.followers(each.after.name)
        return found

    def _reading(self, plan: Plan, by_keys: dict[Hashable, float] | None = None) -> float:
        """Seconds to read what a plan reads; scans that are asked for keys are noted, by table and column, where `by_keys` is."""
        match plan:
            case Scan():
                return self._values(self.find_table(plan.table).rows * max(1, len(plan.fields)))
            case Join(kind="semi") if by_keys is not None and _is_small(plan.right):
                return self._looking_up(plan.left, plan.condition, by_keys)
            case Join(kind="inner") if by_keys is not None and _is_small(plan.left):
                return self._reading(plan.left, by_keys) + self._looking_up(plan.right, plan.condition, by_keys)
        return sum(self._reading(child, by_keys) for child in plan.children)

    def _looking_up(self, plan: Plan, condition: Expression | None, by_keys: dict[Hashable, float]) -> float:
        """What is read for rows with certain keys. Those of a table's own key are asked for by all views that follow the table."""
        if isinstance(plan, Filter | Project):
            return self._looking_up(plan.child, condition, by_keys)
        if not isinstance(plan, Scan):
            return self._reading(plan, by_keys)
        name = plan.table.removesuffix(BEFORE)
        asked = frozenset(each.source for each in plan.fields if condition is not None and each.name in columns_of(condition))
        shared = self.followers(name) if asked & set(self.find_table(plan.table).key) else 1
        seconds = PRUNED * self._reading(plan) / shared
        by_keys[name.lower(), asked] = max(seconds, by_keys.get((name.lower(), asked), 0.0))
        return 0.0

    def _values(self, count: float) -> float:
        return count * self.scan / self.cores


def _is_small(plan: Plan) -> bool:
    """Whether rows come from a stage, and so are few."""
    return all(not isinstance(node, Scan) for node in plan.walk()) and any(isinstance(node, Input) for node in plan.walk())


def corrected(estimates: Mapping[str, float], past: Iterable[Refresh]) -> dict[str, float]:
    """Estimates after what past refreshes took; how a view was made is the first of them."""
    ratios: dict[str, float] = {}
    for each in past:
        ratios |= {strategy: ratio**FADING for strategy, ratio in ratios.items() if strategy != each.strategy}
        expected = each.estimates.get(each.strategy)
        if expected:
            ratio = min(max(each.seconds / expected, 1 / FARTHEST), FARTHEST)
            ratios[each.strategy] = ratio if each.strategy not in ratios else ratios[each.strategy] * (1 - MEMORY) + ratio * MEMORY
    usual = ratios.get(WHOLE, 1.0)
    return {strategy: seconds * ratios.get(strategy, usual) for strategy, seconds in estimates.items()}
