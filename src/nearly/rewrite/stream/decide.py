"""Decisions on rows before the values they are compared with are final (iOLAP, section 5).

A row waits for tests on evolving values of the driver that it finds by keys: nested aggregates, groups that HAVING picks. While
these stay within their variation ranges, many tests are decided for good: the row is surely in, and is folded into the aggregates,
or surely out, and is dropped. Only the others stay undecided and are kept as rows.

Law: as long as every value stays in its range, aggregating the rows surely in and those undecided rows that pass now equals
aggregating the rows that pass now.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from nearly.plan.expressions import (
    FALSE,
    TRUE,
    Call,
    Column,
    Expression,
    Literal,
    UserCall,
    columns_of,
    conjuncts,
    substitute,
    walk,
)
from nearly.plan.functions import call
from nearly.plan.nodes import Filter, GroupBy, Join, Output, Plan, Project, passed
from nearly.plan.properties import equated
from nearly.plan.schema import FindTable
from nearly.plan.types import NULL, is_numeric
from nearly.rewrite.stream.lookups import Lookup, Pairs, evolving, finds_one, without_tests
from nearly.rewrite.stream.places import Pending, PendingColumns, PendingFilter, PendingJoin
from nearly.rewrite.stream.verdicts import ALWAYS, FLIPPED, UNKNOWN, Verdict, all_of, both, compared, verdict

_ARITHMETIC = frozenset({"+", "-", "*", "/", "average_of", "negative"})
"""Functions that are null wherever an argument is."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What rows of a stage wait for: the values of some lookups, and what their ranges tell of a row."""

    lookups: tuple[Lookup, ...]
    verdict: Verdict

    @property
    def possible(self) -> Expression:
        """Not surely out."""
        return call("not", (self.verdict.never,))

    def merged(self, rows: Plan) -> Plan:
        """The rows with all ranges they fall under."""
        for lookup in self.lookups:
            rows = lookup.merged(rows)
        return rows


def decision(name: str, own: Plan, pending: tuple[Pending, ...], find_table: FindTable) -> Decision | None:
    """The decision that what was put off amounts to; None when nothing in it can be decided."""
    deciding = _Deciding(name, own, find_table)
    verdicts = [each for step in pending for each in deciding.step(step)]
    told = all_of([*verdicts, *deciding.presence()])
    lookups = tuple(each.lookup for each in deciding.found if each.lookup.compared)
    return Decision(lookups, told) if lookups and told != UNKNOWN else None


def decided_parts(partial: GroupBy, waiting: tuple[Output, ...], mark: Output, decision_: Decision) -> GroupBy:
    """The partial aggregate over rows that are not surely out; `mark` is true and `waiting` null for rows surely in."""
    rows = Filter(decision_.merged(partial.child), decision_.possible)
    surely = decision_.verdict.sure
    masked = tuple(Output(each.name, _unless(surely, each.expression)) for each in waiting)
    return GroupBy(rows, (*partial.keys, *masked, Output(mark.name, surely)), partial.aggregates)


def decided_again(
    stage: Plan, keys: tuple[str, ...], waiting: tuple[str, ...], mark: str, decision_: Decision, merges: tuple[Output, ...]
) -> Plan:
    """Rows of a stage after ranges have shrunk: some that were undecided are now surely in, and folded, or out, and gone."""
    columns = {column.name: column for column in stage.columns}
    known: Expression = columns[mark]
    rows = Filter(decision_.merged(stage), call("or", (known, decision_.possible)))
    surely = call("or", (known, decision_.verdict.sure))
    kept = tuple(Output(name, columns[name]) for name in keys)
    masked = tuple(Output(name, _unless(surely, columns[name])) for name in waiting)
    merged = GroupBy(rows, (*kept, *masked, Output(mark, surely)), merges)
    return Project(merged, passed(stage.columns))


def _unless(test: Expression, value: Expression) -> Expression:
    return call("case", (test, Literal(NULL, None), value))


@dataclass(slots=True)
class _Found:
    """A lookup while the tests are read; `picked` is what is known of the tests in it, where a row that fails them stays."""

    lookup: Lookup
    optional: bool
    picked: Verdict = ALWAYS
    required: bool = False

    def ends(self, value: Expression) -> tuple[Column, Column]:
        """The ends of the range of a value, which is among the compared ones from now on."""
        if value not in self.lookup.compared:
            self.lookup = replace(self.lookup, compared=(*self.lookup.compared, value))
        return self.lookup.ends(self.lookup.compared.index(value))

    def gives(self, value: Expression) -> bool:
        """Whether an expression is a value of the lookup, and null where its row is not picked."""
        names = columns_of(value)
        return bool(names) and names <= self.lookup.found.names and (self.picked == ALWAYS or _is_null_of_nulls(value))

    @property
    def present(self) -> Expression:
        return self.lookup.present if self.lookup.compared else FALSE


@dataclass(slots=True)
class _Deciding:
    """Reads what was put off, step by step."""

    name: str
    own: Plan
    find_table: FindTable
    found: list[_Found] = field(default_factory=list)
    made: dict[str, Expression] = field(default_factory=dict)

    def step(self, step: Pending) -> list[Verdict]:
        match step:
            case PendingColumns():
                self.made |= {output.name: substitute(output.expression, self.made) for output in step.outputs}
                return []
            case PendingFilter():
                return [self._verdict(part) for part in conjuncts(substitute(step.predicate, self.made))]
            case PendingJoin():
                return self._joined(step)

    def presence(self) -> list[Verdict]:
        """That a row finds what it must find."""
        return [Verdict(each.present, FALSE) for each in self.found if each.required]

    def _joined(self, step: PendingJoin) -> list[Verdict]:
        """What is known of a join; nothing where a row may find several."""
        condition = None if step.condition is None else substitute(step.condition, self.made)
        join, moving = Join(self.own, step.right, "inner", condition or TRUE), evolving(step.right)
        pairs = tuple((a, b) for a, b in equated(join) if a.type == b.type and b.name not in moving)
        rest = [part for part in conjuncts(condition) if part != TRUE and not _is_pair(part, pairs)]
        plan, tests = without_tests(step.right)
        if not finds_one(plan, frozenset(b.name for _, b in pairs), self.find_table) or (step.kind == "left" and rest):
            return [UNKNOWN]
        place = len(self.found)
        found = _Found(Lookup(self.name if not place else f"{self.name}_{place}", place, plan, pairs), step.kind == "left")
        self.found.append(found)
        verdicts = [self._verdict(part) for part in (*rest, *tests)]
        match step.kind:
            case "left":
                found.picked = all_of(verdicts)
                return []
            case "anti":
                picked = all_of(verdicts)
                return [Verdict(both([found.present, picked.never]), both([found.present, picked.sure]))]
        found.required = True
        return verdicts

    def _verdict(self, test: Expression) -> Verdict:
        return verdict(test, self.own.names, self._leaf)

    def _leaf(self, test: Call) -> Verdict:
        if len(test.arguments) == 1:
            return self._exists(test)
        (left, right), operator = test.arguments, test.function
        if not (is_numeric(left.type) and is_numeric(right.type)):
            return UNKNOWN
        for found in self.found:
            for own, value, spelled in ((left, right, operator), (right, left, FLIPPED[operator])):
                if columns_of(own) <= self.own.names and found.gives(value):
                    return all_of([compared(own, spelled, *found.ends(value)), found.picked])
        return UNKNOWN

    def _exists(self, test: Call) -> Verdict:
        """Whether a row finds something, told by a key of it, which is null where it does not."""
        for found in self.found:
            if found.optional and test.arguments[0] in [right for _, right in found.lookup.keys]:
                there, not_there = (both([found.present, each]) for each in (found.picked.sure, found.picked.never))
                return Verdict(there, not_there) if test.function == "isnotnull" else Verdict(not_there, there)
        return UNKNOWN


def _is_pair(part: Expression, pairs: Pairs) -> bool:
    return isinstance(part, Call) and part.function == "=" and set(part.arguments) in [{a, b} for a, b in pairs]


def _is_null_of_nulls(value: Expression) -> bool:
    return all(
        not isinstance(each, Call | UserCall) or (isinstance(each, Call) and each.function in _ARITHMETIC) for each in walk(value)
    )
