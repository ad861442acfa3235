"""Plans as indented text, for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nearly.plan import nodes
from nearly.plan.expressions import AggregateCall, Call, Cast, Column, Expression, Literal, SortKey, Subquery, UserCall, WindowCall
from nearly.plan.nodes import Output, Plan

Note = Callable[[Plan], str]
_INFIX = frozenset({"+", "-", "*", "/", "%", "div", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "like", "||"})


def explain(plan: Plan, note: Note | None = None, depth: int = 0) -> str:
    """One line per node, children indented below; `note` may add a remark to a node."""
    remark = note(plan) if note else ""
    line = "  " * depth + describe(plan) + (f"    -- {remark}" if remark else "")
    return "\n".join([line, *(explain(child, note, depth + 1) for child in plan.children)])


def describe(plan: Plan) -> str:
    """The node alone."""
    teller = _TELLERS.get(type(plan))
    return type(plan).__name__ if teller is None else teller(plan)


def _aggregate(plan: nodes.GroupBy) -> str:
    sets = f" grouping sets {list(plan.sets)}" if plan.sets is not None else ""
    return f"Aggregate by [{_outputs(plan.keys)}] of [{_outputs(plan.aggregates)}]{sets}"


def _exchange(plan: nodes.Exchange) -> str:
    return f"Exchange {plan.kind}" + (f" by {', '.join(key.name for key in plan.keys)}" if plan.keys else "")


_TELLERS: dict[type[Plan], Callable[..., str]] = {
    nodes.Scan: lambda plan: f"Scan {plan.table} [{', '.join(field.source for field in plan.fields)}]",
    nodes.Input: lambda plan: f"Input {plan.source}",
    nodes.Values: lambda plan: f"Values {len(plan.rows)} row(s)",
    nodes.Filter: lambda plan: f"Filter {show(plan.predicate)}",
    nodes.Project: lambda plan: f"Project {_outputs(plan.outputs)}".rstrip(),
    nodes.Join: lambda plan: f"Join {plan.kind}" + (f" on {show(plan.condition)}" if plan.condition else ""),
    nodes.GroupBy: _aggregate,
    nodes.Window: lambda plan: f"Window {_outputs(plan.outputs)}",
    nodes.SetOperation: lambda plan: f"{plan.kind.capitalize()}{' all' if plan.every else ''}",
    nodes.Sort: lambda plan: f"Sort {', '.join(_key(key) for key in plan.keys)}",
    nodes.Limit: lambda plan: f"Limit {plan.count}" + (f" offset {plan.offset}" if plan.offset else ""),
    nodes.Apply: lambda plan: f"Apply {plan.function} to [{', '.join(column.name for column in plan.taken)}]",
    nodes.Exchange: _exchange,
}


def show(expression: Expression) -> str:
    """An expression in SQL-like text."""
    match expression:
        case Column():
            return expression.name
        case Literal():
            return _literal(expression.value)
        case Cast():
            return f"cast({show(expression.operand)} as {expression.type})"
        case Call() if expression.function in _INFIX and len(expression.arguments) == 2:
            left, right = (show(argument) for argument in expression.arguments)
            return f"({left} {expression.function} {right})"
        case Call() | UserCall():
            return f"{expression.function}({', '.join(show(argument) for argument in expression.arguments)})"
        case AggregateCall():
            inner = ", ".join(show(argument) for argument in expression.arguments) or "*"
            where = f" filter {show(expression.where)}" if expression.where else ""
            return f"{expression.function}({'distinct ' if expression.distinct else ''}{inner}){where}"
        case WindowCall():
            by = ", ".join(show(each) for each in expression.partition)
            order = ", ".join(_key(key) for key in expression.order)
            frame = expression.frame
            within = "" if frame is None else f" {frame.unit} {_bound(frame.start)} to {_bound(frame.end)}"
            return f"{show(expression.call)} over (by {by or '-'} order {order or '-'}{within})"
        case Subquery():
            inside = "; ".join(line.strip() for line in explain(expression.plan).splitlines())
            operands = ", ".join(show(each) for each in expression.operands)
            return f"{operands} {expression.kind} <{inside}>".lstrip()
    return type(expression).__name__


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    return repr(value) if isinstance(value, str) else str(value)


def _outputs(outputs: tuple[Output, ...]) -> str:
    return ", ".join(o.name if show(o.expression) == o.name else f"{o.name} = {show(o.expression)}" for o in outputs)


def _key(key: SortKey) -> str:
    nulls = "" if key.nulls_first == key.ascending else f" nulls {'first' if key.nulls_first else 'last'}"
    return f"{show(key.expression)} {'asc' if key.ascending else 'desc'}{nulls}"


def _bound(offset: int | None) -> str:
    return "unbounded" if offset is None else f"{offset:+d}" if offset else "current row"
