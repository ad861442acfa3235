"""Decisions on rows before the value they are compared with is final (iOLAP, section 5).

A row waits for a test `d op u`, where d is the row's own and u is an evolving value of the driver that it finds by a key. While u
is known to stay within its variation range [low, high], many tests are decided for good: the row is surely in, and is folded into
the aggregates, or surely out, and is dropped. Only rows whose d lies within the range stay undecided and are kept as rows.

Law: as long as every u stays in its range, aggregating the rows surely in and those undecided rows that pass the test now equals
aggregating the rows that pass the test now.
"""

from __future__ import annotations

from dataclasses import dataclass

from nearly.plan.expressions import FALSE, TRUE, Call, Column, Expression, Literal, columns_of, conjunction, conjuncts
from nearly.plan.functions import call
from nearly.plan.functions.casting import coerce
from nearly.plan.nodes import Filter, GroupBy, Input, Join, Output, Plan, Project, passed
from nearly.plan.properties import equated
from nearly.plan.types import DOUBLE, NULL, is_numeric

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Comparison:
    """`own operator value`: own side of the row, value of the driver."""

    own: Expression
    operator: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Decision:
    """What rows of a stage wait for: the values of `found`, looked up by equal keys, and the comparisons with them.

    `name` is the input with the variation ranges: the keys `key_0`, ..., then `low_0`, `high_0`, ...
    """

    name: str
    found: Plan
    keys: tuple[tuple[Column, Column], ...]
    comparisons: tuple[Comparison, ...]

    @property
    def ranges(self) -> Input:
        keys = tuple(Column(right.type, f"key_{place}") for place, (_, right) in enumerate(self.keys))
        ends = tuple(Column(DOUBLE, f"{end}_{place}") for place in range(len(self.comparisons)) for end in ("low", "high"))
        return Input(self.name, (*keys, *ends))

    @property
    def values(self) -> Plan:
        """The keys and the compared values, as doubles: what ranges are made for."""
        keys = [Output(f"key_{place}", right) for place, (_, right) in enumerate(self.keys)]
        values = [Output(f"value_{place}", coerce(each.value, DOUBLE)) for place, each in enumerate(self.comparisons)]
        return Project(self.found, (*keys, *values))

    def merged(self, rows: Plan) -> Plan:
        """The rows with the ranges they fall under; null where the key has none yet."""
        pairs = [call("=", (own, Column(right.type, f"key_{place}"))) for place, (own, right) in enumerate(self.keys)]
        return Join(rows, self.ranges, "left", conjunction(pairs) or TRUE)

    def surely_in(self) -> Expression:
        return conjunction([_surely(each, place, True) for place, each in enumerate(self.comparisons)]) or TRUE

    def possible(self) -> Expression:
        """Not surely out."""
        return conjunction([call("not", (_surely(each, place, False),)) for place, each in enumerate(self.comparisons)]) or TRUE


def decision(
    name: str, kind: str, own: Plan, found: Plan, condition: Expression | None, tests: tuple[Expression, ...]
) -> Decision | None:
    """The decision that a put-off join and the tests after it amount to; None when it has another shape."""
    join = Join(own, found, "inner", condition) if condition is not None else None
    pairs = tuple((a, b) for a, b in equated(join) if a.type == b.type) if join is not None else ()
    rest = [part for part in conjuncts(condition) if not _is_pair(part, pairs)]
    comparisons = [_comparison(part, own.names, found.names) for part in (*rest, *(p for test in tests for p in conjuncts(test)))]
    known = tuple(each for each in comparisons if each is not None)
    if kind not in ("inner", "left", "cross") or len(known) != len(comparisons) or not known:
        return None
    return Decision(name, found, pairs, known)


def decided_parts(partial: GroupBy, waiting: tuple[Output, ...], mark: Output, decision_: Decision) -> GroupBy:
    """The partial aggregate over rows that are not surely out; `mark` is true and `waiting` null for rows surely in."""
    rows = Filter(decision_.merged(partial.child), decision_.possible())
    surely = decision_.surely_in()
    masked = tuple(Output(each.name, _unless(surely, each.expression)) for each in waiting)
    return GroupBy(rows, (*partial.keys, *masked, Output(mark.name, surely)), partial.aggregates)


def decided_again(
    stage: Plan, keys: tuple[str, ...], waiting: tuple[str, ...], mark: str, decision_: Decision, merges: tuple[Output, ...]
) -> Plan:
    """Rows of a stage after ranges have shrunk: some that were undecided are now surely in, and folded, or out, and gone."""
    columns = {column.name: column for column in stage.columns}
    known: Expression = columns[mark]
    rows = Filter(decision_.merged(stage), call("or", (known, decision_.possible())))
    surely = call("or", (known, decision_.surely_in()))
    kept = tuple(Output(name, columns[name]) for name in keys)
    masked = tuple(Output(name, _unless(surely, columns[name])) for name in waiting)
    merged = GroupBy(rows, (*kept, *masked, Output(mark, surely)), merges)
    return Project(merged, passed(stage.columns))


def _is_pair(part: Expression, pairs: tuple[tuple[Column, Column], ...]) -> bool:
    return isinstance(part, Call) and part.function == "=" and set(part.arguments) in [{a, b} for a, b in pairs]


def _comparison(part: Expression, own: frozenset[str], found: frozenset[str]) -> Comparison | None:
    if not isinstance(part, Call) or part.function not in _FLIPPED:
        return None
    left, right = part.arguments
    if not (is_numeric(left.type) and is_numeric(right.type)):
        return None
    if columns_of(left) <= own and columns_of(right) <= found and columns_of(right):
        return Comparison(left, part.function, right)
    if columns_of(right) <= own and columns_of(left) <= found and columns_of(left):
        return Comparison(right, _FLIPPED[part.function], left)
    return None


def _surely(comparison: Comparison, place: int, outcome: bool) -> Expression:
    """Whether `d op u` has this outcome for every u in [low, high]; false when the range is unknown.

    d < u holds for all u when d < low, and for none when d >= high; a null d never passes.
    """
    own = coerce(comparison.own, DOUBLE)
    low, high = Column(DOUBLE, f"low_{place}"), Column(DOUBLE, f"high_{place}")
    below = comparison.operator in ("<", "<=")
    if outcome:
        test = call(comparison.operator, (own, low if below else high))
        return call("coalesce", (test, FALSE))
    opposite = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}[comparison.operator]
    test = call(opposite, (own, high if below else low))
    return call("or", (call("isnull", (own,)), call("coalesce", (test, FALSE))))


def _unless(test: Expression, value: Expression) -> Expression:
    return call("case", (test, Literal(NULL, None), value))
