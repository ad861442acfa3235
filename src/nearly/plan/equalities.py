"""Which columns of a plan are equal in every one of its rows.

Law: in each row, two columns of a class are equal, or both are null. Columns of whole numbers that differ only in width may share
a class.
"""

from __future__ import annotations

from collections.abc import Iterable

from nearly.plan.expressions import Call, Cast, Column, Expression, conjuncts
from nearly.plan.nodes import Filter, GroupBy, Join, Limit, Output, Plan, Project, SetOperation, Sort, Window
from nearly.plan.types import INTEGERS

Classes = tuple[frozenset[str], ...]
"""Disjoint sets of names, each of at least two."""

_TESTS = ("=", "<=>")


def equal_columns(plan: Plan) -> Classes:
    """The classes of columns that are equal throughout."""
    match plan:
        case Filter():
            return united((*equal_columns(plan.child), *equated_in(plan.predicate)))
        case Project():
            return _renamed(equal_columns(plan.child), plan.outputs)
        case GroupBy(sets=None):
            return _renamed(equal_columns(plan.child), plan.keys)
        case Join():
            return _joined(plan)
        case Sort() | Limit() | Window():
            return equal_columns(plan.child)
        case SetOperation(kind="intersect" | "except"):
            names = {a.name: b.name for a, b in zip(plan.left.columns, plan.given, strict=True)}
            return tuple(frozenset(names[name] for name in found) for found in equal_columns(plan.left))
    return ()


def equated_in(condition: Expression | None) -> Classes:
    """The pairs of columns that a condition makes equal, where it holds."""
    pairs = []
    for part in conjuncts(condition):
        if isinstance(part, Call) and part.function in _TESTS:
            names = [_column(argument) for argument in part.arguments]
            if None not in names and len(set(names)) > 1:
                pairs.append(frozenset(name for name in names if name is not None))
    return tuple(pairs)


def united(sets: Iterable[frozenset[str]]) -> Classes:
    """Sets that share a name as one.

    >>> [sorted(each) for each in united([frozenset("ab"), frozenset("cd"), frozenset("bc")])]
    [['a', 'b', 'c', 'd']]
    """
    found: list[frozenset[str]] = []
    for each in sets:
        touching = [other for other in found if other & each]
        found = [other for other in found if not other & each]
        found.append(each.union(*touching))
    return tuple(each for each in found if len(each) > 1)


def class_of(name: str, classes: Classes) -> frozenset[str]:
    """The columns that are equal to this one, itself included."""
    return next((each for each in classes if name in each), frozenset({name}))


def _column(expression: Expression) -> str | None:
    """The column whose value an expression has: one, or a whole number in another width."""
    match expression:
        case Column():
            return expression.name
        case Cast(operand=Column() as column, safe=False) if expression.type in INTEGERS and column.type in INTEGERS:
            return column.name
    return None


def _renamed(below: Classes, outputs: tuple[Output, ...]) -> Classes:
    made: dict[str, set[str]] = {}
    for output in outputs:
        if isinstance(output.expression, Column):
            made.setdefault(output.expression.name, set()).add(output.name)
    copies = [frozenset(names) for names in made.values()]
    kept = [frozenset(name for old in found for name in made.get(old, ())) for found in below]
    return united((*copies, *kept))


def _joined(plan: Join) -> Classes:
    left = equal_columns(plan.left)
    match plan.kind:
        case "inner" | "cross":
            return united((*left, *equal_columns(plan.right), *equated_in(plan.condition)))
        case "semi":
            own = [each for each in equated_in(plan.condition) if each <= plan.left.names]
            return united((*left, *own))
        case "anti":
            return left
    return united((*left, *equal_columns(plan.right))) if plan.kind in ("left", "right", "full") else ()
