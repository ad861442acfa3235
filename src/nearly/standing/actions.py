"""What may be kept at an operator, and what the next delta then costs there: the actions of the paper, in this engine's terms.

An action keeps some rows and has two ways: to give the operator's change (D), and to give all its rows (F). A way takes from each
input nothing, its change or all its rows, and has a cost of its own. The engine keeps no hash tables: a kept side of a join is its
rows in order of the join's key, which are scanned for the keys of the other side's change. So making it always costs something, and
probing it costs a scan of its key, where the paper's hash tables are free to make and cost a look-up. Versions of tables are kept,
so a join gives its change without joining everything again.

Law: what needs an empty change needs nothing: a term with an empty change vanishes, and so does the need for the side it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from nearly.engine.costs import Constants
from nearly.plan.nodes import Plan
from nearly.standing.operators import AGGREGATE, JOIN, SCAN, SORT, WHOLE, Operator

NOTHING, CHANGE, ALL = "nothing", "change", "all"
"""What a way takes from an input."""
MEMORY, DISK = "memory", "disk"
INNER = ("inner", "cross")


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows that an action keeps: those of a plan, of so many bytes, in memory or on disk; `side` tells which side of which join."""

    plan: Plan
    bytes: float
    place: str = MEMORY
    join: Plan | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """What is taken from each input, and the seconds of the operator itself."""

    takes: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Action:
    """One configuration of an operator."""

    name: str
    keeps: tuple[Kept, ...]
    change: Way
    full: Way


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may be injected: rows of pipelined operators, and left sides of joins; the paper's plans build the right ones."""

    materialise: bool = True
    symmetric: bool = True


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds of steps on this machine.

    `present` are plans whose rows are kept already: they need not be made. What is made serves `horizon` deltas like the next.
    """

    constants: Constants = field(default_factory=Constants)
    cores: int = 1
    horizon: float = 1.0
    present: Collection[Plan] = ()
    disk: bool = False

    def places(self) -> tuple[str, ...]:
        return (MEMORY, DISK) if self.disk else (MEMORY,)

    def work(self, seconds: float) -> float:
        return seconds / max(1, self.cores)

    def value(self, place: str) -> float:
        """Reading a kept value."""
        return self.constants.kept if place == MEMORY else self.constants.scan

    def scan(self, rows: float, columns: int, place: str) -> float:
        return self.work(rows * columns * self.value(place))

    def make(self, op: Operator, place: str) -> float:
        """Have the rows of an operator in order; nothing where they are kept already."""
        if op.plan in self.present:
            return 0.0
        write = self.constants.write if place == DISK else 2 * self.constants.kept
        return self.work(op.rows * (self.constants.sort + op.columns * write)) / self.horizon

    def insert(self, op: Operator, place: str) -> float:
        """Bring kept rows up to date: those that go are looked for by their key."""
        if not op.change:
            return 0.0
        return self.constants.fixed + self.work(
            op.change * op.columns * 2 * self.value(place) + op.rows * self.value(place) + op.change * self.constants.build
        )


Actions = Callable[[Operator], Sequence[Action]]


def own_actions(op: Operator, prices: Prices, allowed: Allowed | None = None) -> list[Action]:
    """The actions of an operator itself."""
    match op.kind:
        case k if k == SCAN:
            return [_scan(op, prices)]
        case k if k == AGGREGATE:
            return list(_aggregate(op, prices))
        case k if k == SORT:
            return list(_sort(op, prices))
        case k if k == JOIN:
            return list(_join(op, prices, allowed or Allowed()))
    return [_through(op, prices)]


def materialising(op: Operator, prices: Prices, allowed: Allowed | None = None) -> list[Action]:
    """Of a Materialize above an operator (I9): none, or its rows are kept; these actions take from the operator itself."""
    found = [Action("pass on", (), Way((_take(op, CHANGE),), 0.0), Way((ALL,), 0.0))]
    if (allowed or Allowed()).materialise:
        for place in prices.places():
            upkeep = prices.make(op, place) + prices.insert(op, place)
            change = Way((_take(op, CHANGE),), upkeep)
            full = Way((_take(op, CHANGE),), upkeep + prices.scan(op.after, op.columns, place))
            found.append(Action("keep rows", (Kept(op.plan, op.bytes, place),), change, full))
    return found


def _take(op: Operator, what: str) -> str:
    """A change that is empty need not be taken."""
    return NOTHING if what == CHANGE and not op.change else what


def _scan(op: Operator, prices: Prices) -> Action:
    """I8: no state."""
    per_value = prices.constants.scan
    changed = prices.constants.fixed + prices.work(op.change * op.columns * per_value) if op.change else 0.0
    return Action("scan", (), Way((), changed), Way((), prices.constants.fixed + prices.work(op.read * per_value)))


def _through(op: Operator, prices: Prices) -> Action:
    """Operators that treat rows one by one give the change of their change; the others have no rule but all rows."""
    full = Way((ALL,) * len(op.inputs), prices.work(op.after * op.columns * prices.constants.kept))
    if op.kind == WHOLE:
        rows = sum(each.rows + each.after for each in op.inputs)
        takes = tuple(ALL if op.change else NOTHING for _ in op.inputs)
        return Action("anew", (), Way(takes, prices.work(rows * prices.constants.sort) if op.change else 0.0), full)
    changed = Way(tuple(_take(each, CHANGE) for each in op.inputs), prices.work(op.change * op.columns * prices.constants.kept))
    return Action("row by row", (), changed, full)


def _sort(op: Operator, prices: Prices) -> Iterator[Action]:
    """I10: dropped and sorted again, or kept and merged with."""
    (child,) = op.inputs
    changed = Way((_take(child, CHANGE),), prices.work(child.change * prices.constants.sort))
    yield Action("drop order", (), changed, Way((ALL,), prices.work(child.after * prices.constants.sort)))
    for place in prices.places():
        upkeep = prices.insert(op, place) + prices.make(op, place) + changed.seconds
        merged = upkeep + prices.scan(op.after, op.columns, place)
        keeps = (Kept(op.plan, op.bytes, place),)
        yield Action("keep order", keeps, Way(changed.takes, upkeep), Way(changed.takes, merged))


def _aggregate(op: Operator, prices: Prices) -> Iterator[Action]:
    """I11: dropped and grouped again, or kept and added to; where that cannot be, touched groups need all their rows."""
    (child,) = op.inputs
    again = prices.constants.fixed + prices.work(child.after * prices.constants.group)
    yield Action("drop groups", (), Way((_all(child),), again if op.change else 0.0), Way((ALL,), again))
    added = prices.constants.fixed + prices.work(child.change * prices.constants.group) if op.change else 0.0
    takes = (_take(child, CHANGE),) if op.incremental else (_all(child),)
    if not op.incremental and op.change:
        added += prices.work(child.after * prices.constants.probe)
    for place in prices.places():
        upkeep = added + prices.insert(op, place) + prices.make(op, place)
        full = upkeep + prices.scan(op.after, op.columns, place)
        yield Action("keep groups", (Kept(op.plan, op.bytes, place),), Way(takes, upkeep), Way(takes, full))


def _all(op: Operator) -> str:
    """All rows, where they are only needed for a change."""
    return ALL if op.change else NOTHING


_NAMES = ("drop both sides", "keep right", "keep left", "keep both sides")


def _join(op: Operator, prices: Prices, allowed: Allowed) -> Iterator[Action]:
    """I12 and I13: neither side kept, one, or both; the actions 6 to 9 and their one-sided cases."""
    nowhere: tuple[str | None, ...] = (None,)
    lefts = (*nowhere, *prices.places()) if allowed.symmetric else nowhere
    for left, right in product(lefts, (*nowhere, *prices.places())):
        yield _join_with(op, prices, (left, right))


def _join_with(op: Operator, prices: Prices, places: tuple[str | None, str | None]) -> Action:
    """With each side kept at its place, or not at all."""
    sides = [_side(op, prices, which, place) for which, place in enumerate(places)]
    small, large = sorted(each.after for each in op.inputs)
    joined = prices.work(small * prices.constants.build + large * prices.constants.probe)
    upkeep = sum(each.upkeep for each in sides)
    return Action(
        _NAMES[2 * (places[0] is not None) + (places[1] is not None)],
        tuple(each.kept for each in sides if each.kept is not None),
        Way(tuple(each.for_change for each in sides), upkeep + sum(each.probing for each in sides)),
        Way(tuple(each.for_full for each in sides), upkeep + sum(each.reading for each in sides) + joined),
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a join: what is taken from it for the join's change and for all its rows, and what that costs."""

    kept: Kept | None
    for_change: str
    for_full: str
    upkeep: float
    probing: float
    reading: float


def _side(op: Operator, prices: Prices, which: int, place: str | None) -> _Side:
    mine, other = op.inputs[which], op.inputs[1 - which]
    terms = _terms(op, which)
    probe = terms * (prices.constants.fixed + prices.work((other.change + mine.change) * prices.constants.build))
    changed = _take(mine, CHANGE)
    if place is None:
        scanned = terms * prices.work(mine.after * prices.constants.probe)
        return _Side(None, ALL if terms else changed, ALL, 0.0, probe + scanned, 0.0)
    upkeep = prices.make(mine, place) + prices.insert(mine, place)
    key = terms * prices.scan(mine.after, 1, place)
    kept = Kept(mine.plan, mine.bytes, place, op.plan)
    return _Side(kept, changed, changed, upkeep, probe + key, prices.scan(mine.after, mine.columns, place))


_KEEPING = {"left": 0, "semi": 0, "anti": 0, "right": 1}
"""The side whose rows a join keeps, whatever the other has."""


def _terms(op: Operator, which: int) -> int:
    """How often the rows of a side are asked for the join's change: when the other side's change meets them.

    A join that keeps the rows of one side looks, when the other changes, at that one as it was and as it is.
    """
    mine, other = op.inputs[which], op.inputs[1 - which]
    if op.join in INNER:
        return int(other.change > 0)
    if op.join == "full":
        return 2 * int(other.change > 0) + 2 * int(mine.change > 0)
    if which == _KEEPING[op.join]:
        return int(other.change > 0)
    return int(other.change > 0) + 2 * int(mine.change > 0)
