"""`(a AND b) OR (a AND c)` becomes `a AND (b OR c)`: a join condition hidden in every branch becomes visible.

Law: distributivity of AND over OR holds in three-valued logic.
"""

from __future__ import annotations

from nearly.plan.expressions import Call, Expression, conjunction, conjuncts, transform
from nearly.plan.nodes import Filter, Join, Plan
from nearly.plan.types import BOOLEAN


def factor_or(plan: Plan) -> Plan:
    """Factor common conjuncts out of every OR in filters and join conditions."""

    def change(node: Plan) -> Plan:
        if isinstance(node, Filter | Join):
            return node.map_own_expressions(lambda expression: transform(expression, _factor))
        return node

    return plan.transform(change)


def _factor(expression: Expression) -> Expression:
    if not isinstance(expression, Call) or expression.function != "or":
        return expression
    branches = [list(dict.fromkeys(conjuncts(branch))) for branch in _disjuncts(expression)]
    common = [part for part in branches[0] if all(part in branch for branch in branches[1:])]
    if not common:
        return expression
    rests = [conjunction([part for part in branch if part not in common]) for branch in branches]
    if any(rest is None for rest in rests):
        return conjunction(common) or expression
    return conjunction([*common, _disjunction([rest for rest in rests if rest is not None])]) or expression


def _disjuncts(expression: Expression) -> list[Expression]:
    if isinstance(expression, Call) and expression.function == "or":
        return [branch for argument in expression.arguments for branch in _disjuncts(argument)]
    return [expression]


def _disjunction(parts: list[Expression]) -> Expression:
    result = parts[0]
    for part in parts[1:]:
        result = Call(BOOLEAN, "or", (result, part))
    return result
