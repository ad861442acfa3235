"""Constraints that no instance satisfies, and a smallest subset of them that is to blame.

Removing a constraint only removes restrictions, so conflicts are monotone: a superset of a conflicting set conflicts. QuickXplain
(U. Junker, AAAI 2004) then finds a subset that conflicts while each of its proper subsets is satisfiable, with few checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from nearly.algebra.boxes import EVERYWHERE
from nearly.errors import ConstraintError
from nearly.missing.programmes.allocation import Programme
from nearly.missing.programmes.cells import TimeLimit, decompose
from nearly.missing.programmes.problem import Problem
from nearly.missing.statements.bound_set import BoundConstraint, BoundSet

T = TypeVar("T")


def refuse_conflicts(problem: Problem, deadline: TimeLimit) -> None:
    """Raise a `ConstraintError` that names a minimal conflicting subset, if there is one."""
    bound = problem.bound
    for constraint in bound.constraints:
        if constraint.low and not constraint.allowed:
            raise _error(bound, [constraint])
    for component in bound.components:
        members = [bound.constraints[place] for place in component]
        if len(component) > 1 and any(member.low for member in members):
            part = problem.part(component, EVERYWHERE, deadline)
            if part.block.instance([False] * len(part.cells)) is None:
                raise _error(bound, minimal_conflict(members, lambda chosen: not is_satisfiable(chosen, bound, deadline)))


def is_satisfiable(constraints: Sequence[BoundConstraint], bound: BoundSet, deadline: TimeLimit) -> bool:
    """Whether some instance satisfies these constraints; what the time limit leaves open counts as satisfiable."""
    if any(each.low and not each.allowed for each in constraints):
        return False
    if not any(each.low for each in constraints):
        return True
    cells = tuple(decompose(constraints, EVERYWHERE, bound.rows.everything, deadline).cells)
    low, high = tuple(each.low for each in constraints), tuple(each.high for each in constraints)
    return Programme(cells, low, high, deadline).instance([False] * len(cells)) is not None


def minimal_conflict(members: Sequence[T], conflicts: Callable[[Sequence[T]], bool]) -> list[T]:
    """A subset that conflicts, no proper subset of which does. Law: `conflicts` holds for `members` and is monotone.

    >>> minimal_conflict(range(8), lambda chosen: {2, 5} <= set(chosen))
    [2, 5]
    """
    return _quick_explain([], False, list(members), conflicts)


def _quick_explain(kept: list[T], grew: bool, open_: list[T], conflicts: Callable[[Sequence[T]], bool]) -> list[T]:
    """What of `open_` is needed for a conflict beside `kept`."""
    if grew and conflicts(kept):
        return []
    if len(open_) == 1:
        return open_
    half = len(open_) // 2
    first, second = open_[:half], open_[half:]
    from_second = _quick_explain(kept + first, bool(first), second, conflicts)
    from_first = _quick_explain(kept + from_second, bool(from_second), first, conflicts)
    return from_first + from_second


def _error(bound: BoundSet, blamed: Sequence[BoundConstraint]) -> ConstraintError:
    lines = "; ".join(repr(each.given) for each in blamed)
    if len(blamed) == 1:
        return ConstraintError(
            f"table {bound.rows.table!r}: no rows can satisfy {lines}: it asks for rows where no value is allowed"
        )
    return ConstraintError(
        f"table {bound.rows.table!r}: these {len(blamed)} constraints cannot hold together, any fewer can: {lines}"
    )
