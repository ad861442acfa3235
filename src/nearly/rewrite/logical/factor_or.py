"""`(a AND b) OR (a AND c)` becomes `a AND (b OR c)`: a join condition hidden in every branch becomes visible.

And `(a AND x) OR (b AND y)` implies `a OR b`, which may read one side of a join only.

Laws: distributivity of AND over OR holds in three-valued logic; where a predicate is true, what it implies is true.
"""

from __future__ import annotations

from nearly.plan.expressions import Call, Column, Expression, Literal, chain, chained, columns_of, conjunction, conjuncts, transform
from nearly.plan.nodes import Filter, Join, Plan


def factor_or(plan: Plan) -> Plan:
    """Factor common conjuncts out of every OR in filters and join conditions."""

    def change(node: Plan) -> Plan:
        if isinstance(node, Filter | Join):
            return node.map_own_expressions(lambda expression: transform(expression, _factor))
        return node

    return plan.transform(change)


def implied(predicate: Expression, names: frozenset[str]) -> Expression | None:
    """What an OR implies for some columns alone; only tests that cannot fail on any row, since they will see more rows."""
    branches = chain(predicate, "or")
    if len(branches) < 2:
        return None
    parts = [conjunction([each for each in conjuncts(branch) if _is_plain(each, names)]) for branch in branches]
    found = [part for part in parts if part is not None]
    return chained(list(dict.fromkeys(found)), "or") if len(found) == len(parts) else None


def _is_plain(test: Expression, names: frozenset[str]) -> bool:
    """Whether a test compares columns of these names with literals."""
    return (
        isinstance(test, Call)
        and test.function in _COMPARISONS
        and all(isinstance(each, Column | Literal) for each in test.arguments)
        and bool(columns_of(test))
        and columns_of(test) <= names
    )


_COMPARISONS = frozenset({"=", "<", "<=", ">", ">=", "in"})


def _factor(expression: Expression) -> Expression:
    if not isinstance(expression, Call) or expression.function != "or":
        return expression
    first, *others = chain(expression, "or")
    common = list(dict.fromkeys(conjuncts(first)))
    for branch in others:
        parts = conjuncts(branch)
        common = [part for part in common if part in parts]
        if not common:
            return expression
    branches = [list(dict.fromkeys(conjuncts(branch))) for branch in (first, *others)]
    rests = [conjunction([part for part in branch if part not in common]) for branch in branches]
    if any(rest is None for rest in rests):
        return conjunction(common) or expression
    return conjunction([*common, chained([rest for rest in rests if rest is not None], "or")]) or expression
