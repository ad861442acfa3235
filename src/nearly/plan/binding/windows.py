"""`OVER (...)`: calls over windows, their specification by name or in place, and their frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from nearly.errors import UnknownName, Unsupported
from nearly.plan import functions
from nearly.plan.expressions import AggregateCall, Expression, WindowCall, WindowFrame
from nearly.plan.syntax.parse import refuse_clauses_besides

if TYPE_CHECKING:
    from nearly.plan.binding.expression import ExpressionBinder


def window(binder: ExpressionBinder, node: exp.Window) -> Expression:
    refuse_clauses_besides(node, "this", "partition_by", "order", "spec", "alias", "over")
    spec = _specification(binder, node)
    call = _function(binder, node.this)
    partition = tuple(binder(each) for each in spec.args.get("partition_by") or ())
    order_node = spec.args.get("order")
    order = tuple(binder.sort_key(each) for each in order_node.expressions) if order_node else ()
    if not order and not isinstance(call, AggregateCall):
        raise Unsupported("a ranking or offset function over a window without ORDER BY")
    return WindowCall(call.type, call, partition, order, _frame(spec.args.get("spec")))


def _specification(binder: ExpressionBinder, node: exp.Window) -> exp.Window:
    name = node.alias
    if not name:
        return node
    refuse_clauses_besides(node, "this", "alias", "over")
    if name.lower() not in binder.windows:
        raise UnknownName(f"unknown window {name!r}; define it with WINDOW {name} AS (...)")
    return binder.windows[name.lower()]


def _function(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    if isinstance(node, exp.Filter):
        return binder.filtered(node, over_window=True)
    if not isinstance(node, exp.Anonymous):
        raise Unsupported(f"{node.key} over a window")
    name = str(node.this).lower()
    if functions.is_window(name):
        return functions.window(name, [binder(each) for each in node.expressions])
    if functions.is_aggregate(name):
        return binder.aggregate(node, over_window=True)
    raise Unsupported(f"function {name!r} over a window")


def _frame(spec: exp.WindowSpec | None) -> WindowFrame | None:
    if spec is None:
        return None
    if spec.args.get("exclude"):
        raise Unsupported("window frame EXCLUDE")
    unit = str(spec.args["kind"]).lower()
    start = _bound(spec.args.get("start"), spec.args.get("start_side"))
    end = 0 if spec.args.get("end") is None else _bound(spec.args["end"], spec.args.get("end_side"))
    return WindowFrame(unit, start, end)


def _bound(value: exp.Expr | str | None, side: str | None) -> int | None:
    if isinstance(value, str):
        return 0 if value.upper() == "CURRENT ROW" else None
    if isinstance(value, exp.Literal) and value.is_int:
        return -int(value.name) if str(side).lower() == "preceding" else int(value.name)
    raise Unsupported("a window frame whose bound is not a whole number")
