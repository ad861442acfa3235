"""What is known of a plan's rows: which columns identify them, and which ones their blocks are clustered by.

Law of keys: no two rows of the plan are equal in all columns of a key. The empty key says that there is at most one row.
Law of clustering: rows equal in a clustering column come from the same block, or from two neighbouring ones.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, TypeVar

from nearly.plan.expressions import Call, Column, Literal, conjuncts
from nearly.plan.nodes import Apply, Filter, GroupBy, Join, Limit, Output, Plan, Project, Scan, SetOperation, Sort, Values
from nearly.plan.schema import FindTable

T = TypeVar("T")
Key = frozenset[str]
Keys = frozenset[Key]
NO_KEYS: Keys = frozenset()
MOST_KEYS = 8
"""A join of many tables has a key for every choice of their keys; a few are enough."""


def keys(plan: Plan, find_table: FindTable) -> Keys:
    """Column sets that identify a row of the plan, as far as they can be derived."""

    def below(child: Plan) -> Keys:
        return keys(child, find_table)

    match plan:
        case Scan():
            names = {field.source: field.name for field in plan.fields}
            key = find_table(plan.table).key
            return frozenset({frozenset(names[name] for name in key)}) if key and set(key) <= set(names) else NO_KEYS
        case Values():
            return frozenset({frozenset[str]()}) if len(plan.rows) <= 1 else NO_KEYS
        case Project():
            return _renamed(below(plan.child), plan.outputs)
        case GroupBy():
            if plan.sets is not None:
                extra = {plan.grouping_id.name} if plan.grouping_id else set()
                return frozenset({frozenset({key.name for key in plan.keys} | extra)})
            return frozenset({frozenset(key.name for key in plan.keys)})
        case Join():
            return _joined(plan, below)
        case Apply():
            return NO_KEYS if plan.keys is None else frozenset({frozenset(column.name for column in plan.given[: plan.keys])})
        case SetOperation():
            return _of_union(plan, below) if plan.kind == "union" and plan.every else _of_set(plan, below)
    return below(plan.children[0]) if plan.children else NO_KEYS


def clustering(plan: Plan, find_table: FindTable) -> frozenset[str]:
    """Columns whose equal values stay together in blocks, from the scan that a plan reads in blocks upwards."""
    match plan:
        case Scan():
            column = find_table(plan.table).ranges_of
            return frozenset(field.name for field in plan.fields if field.source == column)
        case Project():
            names = clustering(plan.child, find_table)
            return frozenset(o.name for o in plan.outputs if isinstance(o.expression, Column) and o.expression.name in names)
        case GroupBy():
            names = clustering(plan.child, find_table)
            grouped = [key for key in plan.keys if isinstance(key.expression, Column) and key.expression.name in names]
            return frozenset(key.name for key in grouped) if plan.sets is None else frozenset()
        case Join():
            return after_join(plan, clustering(plan.left, find_table), clustering(plan.right, find_table))
        case SetOperation() | Values() | Apply():
            return frozenset()
    return clustering(plan.children[0], find_table) if plan.children else frozenset()


def _renamed(found: Keys, outputs: tuple[Output, ...]) -> Keys:
    names = {o.expression.name: o.name for o in reversed(outputs) if isinstance(o.expression, Column)}
    return frozenset(frozenset(names[name] for name in key) for key in found if key <= set(names))


def _joined(plan: Join, below: Callable[[Plan], Keys]) -> Keys:
    left = below(plan.left)
    if plan.kind in ("semi", "anti"):
        return left
    right = below(plan.right)
    pairs = equated(plan, ("=", "<=>"))
    from_left = {a.name for a, _ in pairs}
    from_right = {b.name for _, b in pairs}
    found: set[Key] = set()
    if any(key <= from_right for key in right) and plan.kind in ("inner", "left", "cross"):
        found |= left
    if any(key <= from_left for key in left) and plan.kind in ("inner", "right", "cross"):
        found |= right
    if not found and plan.kind != "full":
        found |= {a | b for a, b in product(left, right)}
    return frozenset(sorted(found, key=lambda key: (len(key), sorted(key)))[:MOST_KEYS])


def _of_set(plan: SetOperation, below: Callable[[Plan], Keys]) -> Keys:
    whole = frozenset({frozenset(column.name for column in plan.given)}) if not plan.every else NO_KEYS
    if plan.kind == "union":
        return whole
    names = {a.name: b.name for a, b in zip(plan.left.columns, plan.given, strict=True)}
    return whole | frozenset(frozenset(names[name] for name in key) for key in below(plan.left))


def _of_union(plan: SetOperation, below: Callable[[Plan], Keys]) -> Keys:
    """The keys of both sides together, where some column tells which side a row is of: it holds other constants in each."""
    sides = plan.left, plan.right
    for place, column in enumerate(plan.given):
        left, right = (_constants(side, place) for side in sides)
        if left and right and not left & right:
            places = [{frozenset(_places(side, key)) for key in below(side)} for side in sides]
            pairs = ((a, b) for a in places[0] for b in places[1])
            return frozenset(frozenset({column.name, *(plan.given[each].name for each in a | b)}) for a, b in pairs)
    return NO_KEYS


def _places(plan: Plan, key: Key) -> list[int]:
    return [place for place, column in enumerate(plan.columns) if column.name in key]


def _constants(plan: Plan, place: int) -> frozenset[Any]:
    """The only values that a column can have, as far as it is made of literals; none where it is not."""
    match plan:
        case Project() if isinstance(value := plan.outputs[place].expression, Literal) and value.value is not None:
            return frozenset({value.value})
        case SetOperation(kind="union"):
            left, right = _constants(plan.left, place), _constants(plan.right, place)
            return left | right if left and right else frozenset()
    return frozenset()


def after_join(plan: Join, left: frozenset[T], right: frozenset[T]) -> frozenset[T]:
    """Of what holds for the rows of either side, what holds for those of the join: nulls may come instead of a side's row."""
    return {"inner": left | right, "cross": left | right, "right": right, "full": frozenset[T]()}.get(plan.kind, left)


def equated(plan: Join, tests: tuple[str, ...] = ("=",)) -> list[tuple[Column, Column]]:
    """Pairs of columns, left one first, that the join's condition makes equal; with `<=>` among the tests, null equals null."""
    pairs = []
    for part in conjuncts(plan.condition):
        match part:
            case Call(function=function, arguments=(Column() as first, Column() as second)) if function in tests:
                if first.name in plan.left.names and second.name in plan.right.names:
                    pairs.append((first, second))
                elif second.name in plan.left.names and first.name in plan.right.names:
                    pairs.append((second, first))
    return pairs


def origins(plan: Plan) -> dict[str, str]:
    """Where the columns of a plan come from: the name that each has at the aggregate below, as long as it is only passed on."""
    match plan:
        case Sort() | Limit() | Filter():
            return origins(plan.child)
        case Project():
            below = origins(plan.child)
            columns = ((o.name, o.expression.name) for o in plan.outputs if isinstance(o.expression, Column))
            return {name: below[passed] for name, passed in columns if passed in below}
        case Join():
            return origins(plan.left) | origins(plan.right)
        case GroupBy():
            return {column.name: column.name for column in plan.columns}
    return {}
