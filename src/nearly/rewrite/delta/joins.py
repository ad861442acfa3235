"""Inner joins: the change of each table, joined with the tables before it as they are now and those behind it as they were.

Law: (a + da) b - a b = da b, one table after the other; n tables have n terms, and those of tables that did not change vanish.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from nearly.plan.expressions import Call, Column, Expression, columns_of, conjunction
from nearly.plan.nodes import Join, Plan
from nearly.plan.types import LONG
from nearly.rewrite.delta.changed import ONE, ChangedRows, Deltas
from nearly.rewrite.delta.outer_joins import outer_join
from nearly.rewrite.delta.restrict import Match, equal_pairs, is_simple, restrict
from nearly.rewrite.delta.waiting import stored_waiting
from nearly.rewrite.logical.order_joins import connects, flattened, is_equality, is_inner


def join(deltas: Deltas, plan: Join) -> ChangedRows | None:
    return inner_join(deltas, plan) if is_inner(plan) else outer_join(deltas, plan)


def inner_join(deltas: Deltas, plan: Join) -> ChangedRows | None:
    """The sum of the terms. Those that have joined the same tables go on as one, so that the others are asked once for all of them.

    Parts whose old rows are stored stay whole, and come last, then those that refer to most others: most terms read them as they
    were, and in one version. So do parts whose waiting rows are stored: a change that they wait for meets these instead.
    """
    waiting = stored_waiting(deltas, plan)
    kept = {*deltas.stored, *(mine for mine, _ in waiting)}
    found, parts = flattened(plan, kept)
    referring = _referring(deltas, found, parts)
    relations = sorted(found, key=lambda each: (each in kept, referring[each]))
    terms, done = list[_Term](), list[_Term]()
    for place, relation in enumerate(relations):
        change = deltas.kept(relation)
        if change is not None:
            sides = [_side(deltas, each, relation, waiting, is_new=at < place) for at, each in enumerate(relations) if at != place]
            others = tuple(rows for side in sides for rows in side.rows)
            tests = (*parts, *(part for side in sides for part in side.parts))
            terms.append(_Term((relation,), change.plan, (change.weight,), change.ones, others, tests))
    while terms:
        most = max(len(each.others) for each in terms)
        now, terms = [each for each in terms if len(each.others) == most], [each for each in terms if len(each.others) < most]
        terms += [_joined(deltas, each) for each in _together(deltas, now)] if most else []
        done += [] if most else now
    return deltas.union(plan.columns, [_weighted(deltas, each, plan.columns) for each in done]) if done else None


def _referring(deltas: Deltas, relations: Sequence[Plan], parts: Sequence[Expression]) -> dict[Plan, int]:
    """How many of the others a row of each relation leads to, by keys of which it finds one row at most."""

    def finds_one(mine: Plan, other: Plan) -> bool:
        return deltas.is_told_apart(other, _names(own for own, _ in equal_pairs(other, mine, parts)))

    near = {mine: [other for other in relations if other is not mine and finds_one(mine, other)] for mine in relations}
    counts = {}
    for relation in relations:
        reached, waiting = {relation}, [relation]
        while waiting:
            further = [each for each in near[waiting.pop()] if each not in reached]
            reached.update(further)
            waiting += further
        counts[relation] = len(reached) - 1
    return counts


@dataclass(frozen=True, slots=True)
class _Rows:
    """A relation of a join in one version; where that is told by an older one and its change, each row counts by its weight.

    Those that `waited` are the ones that a change can meet, of which few are expected.
    """

    relation: Plan
    plan: Plan
    weight: Column | None = None
    ones: bool = True
    waited: bool = False


@dataclass(frozen=True, slots=True)
class _JoinSide:
    """What a term meets of a relation: its rows, or those of its parts, and what these must be equal in."""

    rows: tuple[_Rows, ...]
    parts: tuple[Expression, ...] = ()


def _side(deltas: Deltas, relation: Plan, changed: Plan, waiting: Mapping[tuple[Plan, Plan], Plan], *, is_new: bool) -> _JoinSide:
    """A relation as it is, or as it was, for the change of another one.

    A join that was left whole, though none of its rows that this change meets are stored, is told by its parts.
    """
    waited = waiting.get((relation, changed))
    if waited is not None:
        return _JoinSide((replace(_version(deltas, relation, waited, is_new=is_new), waited=True),))
    relations, parts = ([relation], []) if relation in deltas.stored else flattened(relation, deltas.stored)
    versions = (_version(deltas, each, deltas.stored.get(each), is_new=is_new) for each in relations)
    return _JoinSide(tuple(versions), tuple(parts))


def _version(deltas: Deltas, relation: Plan, stored: Plan | None, *, is_new: bool) -> _Rows:
    """A relation in one version: by those of its old rows that are stored and its change, without looking at its tables."""
    if stored is None:
        return _Rows(relation, deltas.now(relation) if is_new else deltas.old(relation))
    change = deltas.kept(relation) if is_new else None
    if change is None:
        return _Rows(relation, stored)
    both = deltas.union(relation.columns, (deltas.weighted(stored, relation.columns, ONE), change))
    return _Rows(relation, both.plan, both.weight, both.ones)


@dataclass(frozen=True, slots=True)
class _Term:
    """A change on its way: what was joined so far, its rows, what their weights are the product of, and what it has yet to meet."""

    joined: tuple[Plan, ...]
    plan: Plan
    weights: tuple[Column, ...]
    ones: bool
    others: tuple[_Rows, ...]
    parts: tuple[Expression, ...]


def _together(deltas: Deltas, terms: Sequence[_Term]) -> list[_Term]:
    """Terms that have joined the same, and have to meet the same rows, as one."""
    alike: dict[tuple[frozenset[Plan], frozenset[_Rows]], list[_Term]] = {}
    for each in terms:
        alike.setdefault((frozenset(each.joined), frozenset(each.others)), []).append(each)
    return [_united(deltas, some) if len(some) > 1 else some[0] for some in alike.values()]


def _united(deltas: Deltas, terms: Sequence[_Term]) -> _Term:
    columns = [column for relation in terms[0].joined for column in relation.columns]
    found = deltas.union(columns, [_weighted(deltas, each, columns) for each in terms])
    return replace(terms[0], plan=found.plan, weights=(found.weight,), ones=found.ones)


def _joined(deltas: Deltas, term: _Term) -> _Term:
    """A term joined with one relation more: one of which it finds few rows; of the rest only keys are asked."""
    current = term.plan
    chosen = _next(deltas, term.joined, current, term.others, list(term.parts))
    rows = chosen.plan
    few = chosen.weight is None and (not is_simple(rows) or deltas.is_large(rows))
    matches = _matches(current, rows, term.parts) if few else []
    if matches and len(term.joined) > 1:
        current = deltas.stage("joined", current)
    rows = restrict(rows, matches, current, deltas.fresh)
    visible = current.names | rows.names
    condition = conjunction([part for part in term.parts if columns_of(part) <= visible])
    return _Term(
        (*term.joined, chosen.relation),
        Join(current, rows, "cross" if condition is None else "inner", condition),
        (*term.weights, *([] if chosen.weight is None else [chosen.weight])),
        term.ones and chosen.ones,
        tuple(each for each in term.others if each is not chosen),
        tuple(part for part in term.parts if not columns_of(part) <= visible),
    )


def _weighted(deltas: Deltas, term: _Term, columns: Sequence[Column]) -> ChangedRows:
    """The rows of a term, each with its weight."""
    if len(term.weights) == 1:
        return ChangedRows(term.plan, term.weights[0], term.ones)
    weights: tuple[Expression, ...] = (ONE,) if term.ones else term.weights
    return deltas.weighted(term.plan, columns, reduce(lambda a, b: Call(LONG, "*", (a, b)), weights))


def _next(deltas: Deltas, joined: Sequence[Plan], current: Plan, waiting: Sequence[_Rows], parts: list[Expression]) -> _Rows:
    """The relation to join now: one that an equality connects, of which few rows are there or found, and that is simply read."""
    equalities = [part for part in parts if is_equality(part)]

    def urgency(rows: _Rows) -> tuple[bool, bool, int, bool, bool]:
        linked, equal = connects(current, rows.plan, parts), connects(current, rows.plan, equalities)
        return (not linked, not rows.waited, _found(deltas, joined, current, rows, parts), not is_simple(rows.plan), not equal)

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
