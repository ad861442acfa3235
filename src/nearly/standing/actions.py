"""What may be kept at an operator, and what the next delta then costs there: the actions of the paper, in this engine's terms.

An action keeps some rows and has three ways: to give the operator's change (D), all its rows (F), or its change and those of its
rows that a change elsewhere meets. A way takes one of these from each input, or nothing, and has a cost of its own. The engine
keeps no hash tables: a kept side of a join is its rows in order of the join's key, which are scanned for the keys of the other
side's change. So making it always costs something, and probing it costs a scan of its key, where the paper's hash tables are free
to make and cost a look-up. Versions of tables are kept, so a join gives its change without joining everything again. The third way
is not in the paper: the rows of a join that a change meets are found by keys on its own sides, and it is neither kept nor made.
Nor are waiting rows: of a side that is joined by a key of a table that only grows, those without a partner there are enough for
what comes to that table, since its key is new. To keep them, a partner is looked for among the table's keys when the side changes.

Law: what needs an empty change needs nothing: a term with an empty change vanishes, and so does the need for the side it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from nearly.engine.costs import Constants
from nearly.plan.nodes import Plan
from nearly.standing.operators import AGGREGATE, INNER, JOIN, SCAN, SORT, WHOLE, Operator, WaitingRows

NOTHING, CHANGE, MET, ALL = "nothing", "change", "met", "all"
"""What a way takes from an input; `met` is its change, and the rows that a change elsewhere meets."""
MEMORY, DISK = "memory", "disk"
WAITING = "waiting"
"""Instead of a place: only the rows of a side that wait are kept, in memory."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows that an action keeps: those of a plan, of so many bytes, in memory or on disk.

    Of a side of a `join` they may be those that wait for the other one.
    """

    plan: Plan
    bytes: float
    place: str = MEMORY
    join: Plan | None = None
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Way:
    """What is taken from each input, and the seconds of the operator itself, of which some are `later` than the answer."""

    takes: tuple[str, ...]
    seconds: float
    later: float = 0.0


@dataclass(frozen=True, slots=True)
class Action:
    """One configuration of an operator."""

    name: str
    keeps: tuple[Kept, ...]
    change: Way
    met: Way
    full: Way

    def way(self, what: str) -> Way:
        """How it gives what another takes."""
        return {CHANGE: self.change, MET: self.met, ALL: self.full}[what]


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may be injected: rows of pipelined operators, and left sides of joins; the paper's plans build the right ones."""

    materialise: bool = True
    symmetric: bool = True


LATER = 0.25
"""A second of work that is done when the answer is there counts as so many: nobody waits for it, but the machine has less to do."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds of steps on this machine.

    `present` are plans whose rows are kept already: they need not be made. What is made serves `horizon` deltas like the next.
    `room` is what a byte in memory must save at least, and `later` what a second counts of work that is done after the answer.
    """

    constants: Constants = field(default_factory=Constants)
    cores: int = 1
    horizon: float = 1.0
    present: Collection[Plan] = ()
    disk: bool = False
    room: float = 0.0
    later: float = LATER

    def weighed(self, way: Way) -> float:
        """What a way counts: those of its seconds for which nobody waits count less."""
        return way.seconds - (1 - self.later) * way.later

    def places(self) -> tuple[str, ...]:
        return (MEMORY, DISK) if self.disk else (MEMORY,)

    def work(self, seconds: float) -> float:
        return seconds / max(1, self.cores)

    def value(self, place: str) -> float:
        """Reading a kept value."""
        return self.constants.kept if place == MEMORY else self.constants.scan

    def scan(self, rows: float, columns: int, place: str) -> float:
        return self.work(rows * columns * self.value(place))

    def look(self, rows: float, place: str) -> float:
        """Look among kept rows for the keys of a change: each has its key read, and is looked up."""
        return self.scan(rows, 1, place) + self.work(rows * self.constants.probe)

    def make(self, op: Operator, place: str) -> float:
        """Have the rows of an operator in order; nothing where they are kept already."""
        if op.plan in self.present:
            return 0.0
        write = self.constants.write if place == DISK else 2 * self.constants.kept
        return self.work(op.rows * (self.constants.sort + op.columns * write)) / self.horizon

    def insert(self, op: Operator, place: str) -> float:
        """Bring kept rows up to date, after the answer: those that go are looked for by their key."""
        if not op.change:
            return 0.0
        came = op.change * op.columns * 2 * self.value(place)
        went = op.rows * self.value(place) + op.change * self.constants.build if op.shrinks else 0.0
        return 2 * self.constants.fixed + self.work(came + went)

    def upkeep(self, takes: tuple[str, ...], op: Operator, place: str, seconds: float = 0.0) -> Way:
        """Keep the rows of an operator, which takes some seconds to tell how they change."""
        later = self.insert(op, place)
        return Way(takes, seconds + self.make(op, place) + later, later)

    def begin_waiting(self, rows: WaitingRows, mine: Operator) -> float:
        """Find the rows of a side that wait; nothing where they are kept already."""
        made = 0.0 if rows.plan in self.present else self._partners(rows) + mine.rows * self.constants.build
        return self.work(made) / self.horizon

    def wait(self, rows: WaitingRows, mine: Operator) -> float:
        """Have the rows of a side that wait on, after the answer: partners are looked for, and those that found one go."""
        came = self.constants.stage + self.work(self._partners(rows) + mine.change * self.constants.build) if mine.change else 0.0
        return came + self.constants.stage + 2 * self.scan(rows.rows, max(1, len(rows.plan.columns)), MEMORY)

    def _partners(self, rows: WaitingRows) -> float:
        return rows.partners * (self.constants.scan + self.constants.probe)


TELLING = 3
"""Stages that tell how kept groups changed, beyond what adds to them."""
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
    found = [Action("pass on", (), Way((_take(op, CHANGE),), 0.0), Way((MET,), 0.0), Way((ALL,), 0.0))]
    if (allowed or Allowed()).materialise:
        for place in prices.places():
            upkeep = prices.upkeep((_take(op, CHANGE),), op, place)
            found.append(_kept("keep rows", op, prices, place, upkeep))
    return found


def _kept(name: str, op: Operator, prices: Prices, place: str, upkeep: Way, telling: float = 0.0) -> Action:
    """The rows are kept: by their key, or all of them, they are there; `telling` others how they changed may cost more."""
    change = replace(upkeep, seconds=upkeep.seconds + telling)
    met, full = change.seconds + prices.look(op.after, place), upkeep.seconds + prices.scan(op.after, op.columns, place)
    return Action(name, (Kept(op.plan, op.bytes, place),), change, replace(change, seconds=met), replace(upkeep, seconds=full))


def _take(op: Operator, what: str) -> str:
    """A change that is empty need not be taken."""
    return NOTHING if what == CHANGE and not op.change else what


def _scan(op: Operator, prices: Prices) -> Action:
    """I8: no state. A table that changes is read in another version each time, one that does not is known already.

    What came lies in files of its own, what went among rows that stay.
    """
    per_value = prices.constants.scan
    came = op.change * op.columns + op.sought
    changed = prices.constants.stage + prices.work(came * per_value) if op.change else 0.0
    begun = prices.constants.stage if op.change else 2 * prices.constants.fixed
    full = begun + prices.work(op.read * per_value)
    met = changed + full + prices.work(op.after * prices.constants.probe)
    return Action("scan", (), Way((), changed), Way((), met), Way((), full))


def _through(op: Operator, prices: Prices) -> Action:
    """Operators that treat rows one by one give the change of their change; the others have no rule but all rows."""
    full = Way((ALL,) * len(op.inputs), prices.work(op.after * op.columns * prices.constants.kept))
    if op.kind == WHOLE:
        rows = sum(each.rows + each.after for each in op.inputs)
        takes = tuple(ALL if op.change else NOTHING for _ in op.inputs)
        seconds = prices.work(rows * prices.constants.sort) if op.change else 0.0
        return Action("anew", (), Way(takes, seconds), Way(full.takes, seconds + full.seconds), full)
    changed = Way(tuple(_take(each, CHANGE) for each in op.inputs), prices.work(op.change * op.columns * prices.constants.kept))
    return Action("row by row", (), changed, Way((MET,) * len(op.inputs), changed.seconds), full)


def _sort(op: Operator, prices: Prices) -> Iterator[Action]:
    """I10: dropped and sorted again, or kept and merged with."""
    (child,) = op.inputs
    changed = Way((_take(child, CHANGE),), prices.work(child.change * prices.constants.sort))
    full = Way((ALL,), prices.work(child.after * prices.constants.sort))
    yield Action("drop order", (), changed, Way((MET,), changed.seconds), full)
    for place in prices.places():
        yield _kept("keep order", op, prices, place, prices.upkeep(changed.takes, op, place, changed.seconds))


def _aggregate(op: Operator, prices: Prices) -> Iterator[Action]:
    """I11: dropped and grouped again, or kept and added to; where that cannot be, touched groups need all their rows.

    To tell which groups were and are, those that are touched are looked up first, then added to: some stages more.
    """
    (child,) = op.inputs
    again = prices.constants.stage + prices.work(child.after * prices.constants.group)
    yield Action("drop groups", (), Way((_all(child),), again if op.change else 0.0), Way((ALL,), again), Way((ALL,), again))
    added = prices.constants.stage + prices.work(child.change * prices.constants.group) if op.change else 0.0
    takes = (_take(child, CHANGE),) if op.incremental else (_all(child),)
    if not op.incremental and op.change:
        added += prices.work(child.after * prices.constants.probe)
    for place in prices.places():
        upkeep = prices.upkeep(takes, op, place, added)
        yield _kept("keep groups", op, prices, place, upkeep, TELLING * prices.constants.stage if op.change else 0.0)


def _all(op: Operator) -> str:
    """All rows, where they are only needed for a change."""
    return ALL if op.change else NOTHING


def _join(op: Operator, prices: Prices, allowed: Allowed) -> Iterator[Action]:
    """I12 and I13: neither side kept, one, or both, or waiting rows of one; the actions 6 to 9 and their one-sided cases."""
    ways = [(None, *prices.places(), *([] if rows is None else [WAITING])) for rows in op.waiting]
    for left, right in product(ways[0] if allowed.symmetric else (None,), ways[1]):
        yield _join_with(op, prices, (left, right))


def _join_with(op: Operator, prices: Prices, places: tuple[str | None, str | None]) -> Action:
    """With each side kept at its place, or not at all."""
    sides = [
        _waiting_side(op, prices, which) if place == WAITING else _side(op, prices, which, place)
        for which, place in enumerate(places)
    ]
    small, large = sorted(each.after for each in op.inputs)
    joined = prices.work(small * prices.constants.build + large * prices.constants.probe)
    upkeep, later = (sum(each) for each in zip(*((side.upkeep, side.later) for side in sides), strict=True))
    change = upkeep + sum(each.probing for each in sides)
    return Action(
        _named(places),
        tuple(each.kept for each in sides if each.kept is not None),
        Way(tuple(each.for_change for each in sides), change, later),
        Way(tuple(each.for_met for each in sides), change + prices.constants.stage + sum(each.key for each in sides), later),
        Way(tuple(each.for_full for each in sides), upkeep + sum(each.reading for each in sides) + joined, later),
    )


def _named(places: tuple[str | None, str | None]) -> str:
    """
    >>> _named((MEMORY, None)), _named((WAITING, DISK)), _named((None, None))
    ('keep left', 'keep waiting left, keep right', 'drop both sides')
    """
    sides = zip(places, ("left", "right"), strict=True)
    told = [f"keep waiting {side}" if place == WAITING else f"keep {side}" for place, side in sides if place is not None]
    return ", ".join(told) or "drop both sides"


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a join: what is taken from it for the join's change, the rows met, and all its rows; and what that costs."""

    kept: Kept | None
    for_change: str
    for_met: str
    for_full: str
    upkeep: float
    later: float
    probing: float
    key: float
    reading: float


def _side(op: Operator, prices: Prices, which: int, place: str | None) -> _Side:
    mine, terms, probe = op.inputs[which], _terms(op, which), _probing(op, prices, which)
    changed = _take(mine, CHANGE)
    if place is None:
        return _Side(None, MET if terms else changed, MET, ALL, 0.0, 0.0, probe, 0.0, 0.0)
    own = prices.upkeep((), mine, place)
    key, reading = prices.look(mine.after, place), prices.scan(mine.after, mine.columns, place)
    kept = Kept(mine.plan, mine.bytes, place, op.plan)
    return _Side(kept, changed, changed, changed, own.seconds, own.later, probe + terms * key, key, reading)


def _waiting_side(op: Operator, prices: Prices, which: int) -> _Side:
    """What comes to the other side meets the rows that wait; whoever else asks for this side's rows finds none of them here."""
    mine, rows = op.inputs[which], op.waiting[which]
    if rows is None:
        raise AssertionError("a side waits for one that grows by a key")
    kept = Kept(rows.plan, rows.bytes, MEMORY, op.plan, waits=True)
    probing = _probing(op, prices, which) + prices.look(rows.rows, MEMORY)
    later = prices.wait(rows, mine)
    return _Side(kept, _take(mine, CHANGE), MET, ALL, prices.begin_waiting(rows, mine) + later, later, probing, 0.0, 0.0)


def _probing(op: Operator, prices: Prices, which: int) -> float:
    """Have the rows of a side met by the other's change."""
    changed = sum(each.change for each in op.inputs)
    return _terms(op, which) * (prices.constants.stage + prices.work(changed * prices.constants.build))


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
