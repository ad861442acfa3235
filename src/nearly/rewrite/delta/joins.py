"""Inner joins: the change of each table, joined with the tables before it as they are now and those behind it as they were.

Law: (a + da) b - a b = da b, one table after the other; n tables have n terms, and those of tables that did not change vanish.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from nearly.plan.expressions import Call, Column, Expression, columns_of, conjunction
from nearly.plan.nodes import Join, Plan
from nearly.plan.types import LONG
from nearly.rewrite.delta.changed import ONE, ChangedRows, Deltas
from nearly.rewrite.delta.outer_joins import outer_join
from nearly.rewrite.delta.restrict import Match, equal_pairs, is_simple, restrict
from nearly.rewrite.logical.order_joins import connects, flattened, is_equality, is_inner


def join(deltas: Deltas, plan: Join) -> ChangedRows | None:
    return inner_join(deltas, plan) if is_inner(plan) else outer_join(deltas, plan)


def inner_join(deltas: Deltas, plan: Join) -> ChangedRows | None:
    """The sum of the terms. Parts whose old rows are stored stay whole, and come last: then most terms read them as they were."""
    found, parts = flattened(plan, deltas.stored)
    relations = sorted(found, key=lambda each: each in deltas.stored)
    terms = []
    for place, relation in enumerate(relations):
        change = deltas.kept(relation)
        if change is not None:
            before = [_now(deltas, each) for each in relations[:place]]
            after = [_Rows(each, deltas.old(each)) for each in relations[place + 1 :]]
            terms.append(_term(deltas, plan.columns, relation, change, [*before, *after], parts))
    return deltas.union(plan.columns, terms) if terms else None


@dataclass(frozen=True, slots=True)
class _Rows:
    """A relation of a join in one version; where that is told by an older one and its change, each row counts by its weight."""

    relation: Plan
    plan: Plan
    weight: Column | None = None
    ones: bool = True


def _now(deltas: Deltas, relation: Plan) -> _Rows:
    """A relation as it is: of one that is stored, what was and the change, without looking at its tables."""
    change = deltas.kept(relation) if relation in deltas.stored else None
    if change is None:
        return _Rows(relation, deltas.now(relation))
    both = deltas.union(relation.columns, (deltas.weighted(deltas.old(relation), relation.columns, ONE), change))
    return _Rows(relation, both.plan, both.weight, both.ones)


def _term(
    deltas: Deltas,
    columns: Sequence[Column],
    relation: Plan,
    change: ChangedRows,
    others: Sequence[_Rows],
    parts: Sequence[Expression],
) -> ChangedRows:
    """A change of a relation joined with all others, those of which it finds few rows first: of the rest only keys are asked."""
    current, waiting, left, joined = change.plan, list(others), list(parts), [relation]
    weights: list[Expression] = [change.weight]
    while waiting:
        chosen = _next(deltas, joined, current, waiting, left)
        waiting = [each for each in waiting if each is not chosen]
        joined.append(chosen.relation)
        rows = chosen.plan
        few = chosen.weight is None and (not is_simple(rows) or deltas.is_large(rows))
        matches = _matches(current, rows, left) if few else []
        if matches and current is not change.plan:
            current = deltas.stage("joined", current)
        rows = restrict(rows, matches, current, deltas.fresh)
        weights += [] if chosen.weight is None else [chosen.weight]
        visible = current.names | rows.names
        now = [part for part in left if columns_of(part) <= visible]
        left = [part for part in left if part not in now]
        condition = conjunction(now)
        current = Join(current, rows, "cross" if condition is None else "inner", condition)
    ones = change.ones and all(each.ones for each in others)
    if len(weights) == 1:
        return ChangedRows(current, change.weight, ones)
    product = ONE if ones else reduce(lambda a, b: Call(LONG, "*", (a, b)), weights)
    return deltas.weighted(current, columns, product)


def _next(deltas: Deltas, joined: Sequence[Plan], current: Plan, waiting: Sequence[_Rows], parts: list[Expression]) -> _Rows:
    """The relation to join now: one that an equality connects, of which few rows are found, and that is simply read."""
    equalities = [part for part in parts if is_equality(part)]

    def urgency(rows: _Rows) -> tuple[bool, int, bool, bool]:
        linked, equal = connects(current, rows.plan, parts), connects(current, rows.plan, equalities)
        return (not linked, _found(deltas, joined, current, rows, parts), not is_simple(rows.plan), not equal)

    return min(waiting, key=urgency)


ONE_ROW, OWN_ROWS, ANY_ROWS = range(3)
"""How many rows a row finds: one at most; those that only it finds, so that all rows find each once at most; or any."""


def _found(deltas: Deltas, joined: Sequence[Plan], current: Plan, rows: _Rows, parts: Sequence[Expression]) -> int:
    """How many rows of a relation a row finds, as far as the keys of tables tell."""
    pairs = equal_pairs(rows.relation, current, parts)
    if deltas.is_told_apart(rows.relation, _names(theirs for theirs, _ in pairs)):
        return ONE_ROW
    mine = _names(own for _, own in pairs)
    return OWN_ROWS if any(deltas.is_told_apart(each, mine) for each in joined) else ANY_ROWS


def _names(expressions: Iterable[Expression]) -> set[str]:
    return {each.name for each in expressions if isinstance(each, Column)}


def _matches(current: Plan, chosen: Plan, parts: Sequence[Expression]) -> list[Match]:
    """What a row of one relation must be equal to in the other."""
    return [Match(mine, theirs) for mine, theirs in equal_pairs(chosen, current, parts) if isinstance(theirs, Column)]
