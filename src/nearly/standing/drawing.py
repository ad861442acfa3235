"""A standing query in words: what it keeps and expects, and its plan with what is kept of it, its bytes and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nearly.plan.explain import describe
from nearly.plan.nodes import Plan
from nearly.standing.actions import DISK, MEMORY, Kept
from nearly.standing.arrivals import Forecast, Prediction
from nearly.standing.operators import Operator
from nearly.standing.planner import Chosen
from nearly.standing.policy import RefreshPolicy
from nearly.standing.upkeep import StandingRefresh, Upkeep

_PARTNERS = "rows whose partner has not arrived"


@dataclass(frozen=True, slots=True)
class KeptState:
    """Kept rows: of what, how many, of how many bytes, and where."""

    what: str
    rows: int
    bytes: int
    place: str


@dataclass(frozen=True, slots=True)
class StandingStatus:
    """What a standing query keeps and expects, and how it went so far; `error` is what its last refresh failed of."""

    name: str
    versions: Mapping[str, int]
    age: float
    states: tuple[KeptState, ...]
    memory: int
    disk: int
    budget: float
    disk_budget: float
    prediction: Prediction
    complete: tuple[str, ...]
    last: StandingRefresh | None
    refreshes: int
    prediction_error: float | None
    policy: RefreshPolicy
    over: bool
    error: str | None

    def __str__(self) -> str:
        lines = [f"standing query {self.name}" + (" (over)" if self.over else ""), f"  answer     {self._of_answer()}"]
        if self.last is not None:
            lines.append(f"  refreshed  by {self.last.strategy} in {self.last.seconds:.3f} s ({self.last.reason})")
        told = "nothing" if not self.states else f"{_size(self.memory)} of {_size(self.budget)} in memory"
        lines.append(
            f"  keeps      {told}" + (f", {_size(self.disk)} of {_size(self.disk_budget)} on disk" if self.disk_budget else "")
        )
        lines += [f"    {each.what}: {each.rows:,} rows, {_size(each.bytes)} {_where(each.place)}" for each in self.states]
        coming = ", ".join(f"{name} {each.rows:,.0f}" for name, each in sorted(self.prediction.items()))
        lines.append(f"  expects    {coming + ' rows' if coming else 'nothing'}")
        if self.prediction_error is not None:
            lines.append(f"  was off by {self.prediction_error:.0%} of the rows that came, on average")
        if self.complete:
            lines.append(f"  complete   {', '.join(self.complete)}")
        if self.error:
            lines.append(f"  failed     {self.error}")
        return "\n".join(lines)

    def _of_answer(self) -> str:
        told = ", ".join(f"{name} version {version}" for name, version in sorted(self.versions.items()))
        return f"{self.age:.1f} s old, of {told}"


def status_of(
    name: str, upkeep: Upkeep, policy: RefreshPolicy, forecast: Forecast, history: Sequence[StandingRefresh], age: float,
    over: bool, error: BaseException | None,
) -> StandingStatus:  # fmt: skip
    wait = {kept.plan for kept in upkeep.planned.keeps if kept.waits} if upkeep.planned is not None else ()
    states = [
        KeptState(f"{describe(plan)}{', ' + _PARTNERS if plan in wait else ''}", each.rows, each.bytes, each.place)
        for plan, each in upkeep.held.items()
    ]
    errors = [each.error for each in forecast.scores]
    return StandingStatus(
        name, history[-1].versions if history else {}, age, tuple(states), upkeep.bytes(MEMORY), upkeep.bytes(DISK),
        upkeep.budget.memory, upkeep.budget.disk, dict(forecast.said), tuple(sorted(forecast.complete)),
        history[-1] if history else None, len(history), sum(errors) / len(errors) if errors else None, policy, over,
        None if error is None else str(error),
    )  # fmt: skip


def drawn(upkeep: Upkeep, prediction: Prediction) -> str:
    """The operators of the plan with what they do for the next delta."""
    query = upkeep.query
    if query.plan is None:
        return f"every answer is computed as a whole: {query.reason}"
    root = upkeep.root(upkeep.tables, prediction)
    chosen = upkeep.planned.chosen if upkeep.planned is not None else ()
    coming = ", ".join(f"{name} {each.rows:,.0f}" for name, each in sorted(prediction.items())) or "nothing"
    budget = f"memory {_size(upkeep.budget.memory)}" + (f", disk {_size(upkeep.budget.disk)}" if upkeep.budget.disk else "")
    lines = [f"next delta: {coming} rows; {budget}"]
    if upkeep.planned is not None:
        whole = f", computing all took {upkeep.whole_seconds:.3f} s" if upkeep.whole_seconds else ""
        lines.append(f"expected to take {upkeep.planned.seconds:.3f} s{whole}; planned in {upkeep.plan_seconds * 1000:.1f} ms")
    return "\n".join([*lines, *_lines(root, upkeep, chosen, 0)])


def _lines(op: Operator, upkeep: Upkeep, chosen: Sequence[Chosen], depth: int) -> Iterator[str]:
    change = f", {op.change:,.0f} change" if op.change else ", no change"
    yield f"{'  ' * depth}{describe(op.plan)}: about {op.rows:,.0f} rows{change}{_kept(op.plan, upkeep, chosen)}"
    for kept in (kept for each in chosen if each.operator.plan == op.plan for kept in each.action.keeps if kept.waits):
        side = "left" if kept.plan.children[0] == op.inputs[0].plan else "right"
        yield f"{'  ' * (depth + 1)}rows of the {side} side that wait{_kept(kept.plan, upkeep, chosen)}"
    for each in op.inputs:
        yield from _lines(each, upkeep, chosen, depth + 1)


def _kept(plan: Plan, upkeep: Upkeep, chosen: Sequence[Chosen]) -> str:
    state = upkeep.held.get(plan)
    if state is None:
        return ""
    return f"    -- kept {_where(state.place)}: {state.rows:,} rows, {_size(state.bytes)}{_why(plan, chosen)}"


_WHY = {
    "keep rows": "its change is cheaper than computing it again",
    "keep groups": "its groups are added to",
    "keep order": "its rows are merged with",
}


def _why(plan: Plan, chosen: Sequence[Chosen]) -> str:
    for each in chosen:
        for kept in each.action.keeps:
            if kept.plan == plan:
                return f", since {_of_side(kept) if kept.join is not None else _WHY[each.action.name]}"
    return ""


def _of_side(kept: Kept) -> str:
    return f"{_PARTNERS}: what comes meets no others" if kept.waits else "the other side of the join changes"


def _where(place: str) -> str:
    return "in memory" if place == MEMORY else "on disk"


def _size(count: float) -> str:
    """Bytes as people read them.

    >>> _size(5 * 2**20)
    '5.0 MB'
    """
    if count == float("inf"):
        return "any size"
    for unit in ("B", "KB", "MB"):
        if count < 1024:
            return f"{count:,.0f} B" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} GB"
