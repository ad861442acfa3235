"""One SELECT: items, WHERE, GROUP BY, HAVING, windows, QUALIFY, DISTINCT, ORDER BY and LIMIT, in the order SQL evaluates them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from sqlglot import exp

from nearly.errors import SchemaError, Unsupported
from nearly.plan.binding.expression import BindPlan, ExpressionBinder
from nearly.plan.binding.from_clause import Named
from nearly.plan.binding.grouping import Grouped, Grouping, bind_grouping
from nearly.plan.binding.naming import pretty_name
from nearly.plan.binding.scope import FreshNames, Scope
from nearly.plan.expressions import Expression, SortKey, Subquery, WindowCall, has_aggregate, map_children, walk
from nearly.plan.nodes import Filter, GroupBy, Limit, Output, Plan, Project, Sort, Window, passed
from nearly.plan.syntax.parse import refuse_clauses_besides

_CLAUSES = (
    "expressions", "from_", "joins", "where", "group", "having", "windows", "qualify", "distinct", "order", "limit", "offset",
    "with_", "hint", "kind",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SelectItem:
    """A select item: its expression and the name the user sees, None when only Spark knows it."""

    expression: Expression
    name: str | None


@dataclass(frozen=True, slots=True)
class SelectBinder:
    """Binds one SELECT in the scope of its FROM clause."""

    fresh: FreshNames
    bind_plan: BindPlan
    scope: Scope

    @property
    def expressions(self) -> ExpressionBinder:
        return ExpressionBinder(self.scope, self.bind_plan)

    def __call__(self, node: exp.Select, source: Plan) -> Named:
        refuse_clauses_besides(node, *_CLAUSES)
        if node.args.get("kind"):
            raise Unsupported(f"SELECT AS {node.args['kind']}")
        named = {window.name.lower(): window for window in node.args.get("windows") or ()}
        binder = replace(self.expressions, windows=named)
        grouping = self._grouping(node, binder)
        binder = replace(binder, grouping=grouping.marker if grouping.sets else None)
        items = self._items(node, binder)
        plan = self._where(node, source)
        having = self._predicate(node, "having", binder, items)
        qualify = self._predicate(node, "qualify", binder, items)
        order = self._order(node, binder, items)
        involved = [*(i.expression for i in items), *(k.expression for k in order), *(e for e in (having, qualify) if e)]
        if node.args.get("group") is not None or having is not None or any(has_aggregate(each) for each in involved):
            grouped = Grouped.over(plan, grouping, self.fresh)
            above = grouped.above
            items = [replace(item, expression=above(item.expression)) for item in items]
            for item in items:
                _refuse_correlated(item.expression, "the select list of a grouped query")
            order = [replace(key, expression=above(key.expression)) for key in order]
            having, qualify = (each and above(each) for each in (having, qualify))
            plan = grouped.plan(plan)
            plan = plan if having is None else Filter(plan, having)
        return self._finish(node, plan, items, order, qualify)

    def _finish(
        self, node: exp.Select, plan: Plan, items: list[SelectItem], order: list[SortKey], qualify: Expression | None
    ) -> Named:
        windows = _WindowCalls(self.fresh)
        _refuse_hidden_order(order, items)
        items = [replace(item, expression=windows.out(item.expression)) for item in items]
        order = [replace(key, expression=windows.out(key.expression)) for key in order]
        qualify = qualify and windows.out(qualify)
        plan = windows.over(plan)
        plan = plan if qualify is None else Filter(plan, qualify)
        outputs = tuple(Output(self.fresh(item.name or "value"), item.expression) for item in items)
        plan = self._project(node, plan, outputs, order)
        return Named(plan, tuple(item.name for item in items))

    def _project(self, node: exp.Select, plan: Plan, outputs: tuple[Output, ...], order: list[SortKey]) -> Plan:
        """Select items, DISTINCT, ORDER BY and LIMIT; what is only sorted by rides along and is dropped at the end."""
        places = {output.expression: output.column for output in reversed(outputs)}
        extra: list[Output] = []
        keys = []
        for key in order:
            if key.expression not in places:
                extra.append(Output(self.fresh("order"), key.expression))
                places[key.expression] = extra[-1].column
            keys.append(replace(key, expression=places[key.expression]))
        plan = Project(plan, (*outputs, *extra))
        if node.args.get("distinct") is not None:
            refuse_clauses_besides(node.args["distinct"])
            if extra:
                raise Unsupported("SELECT DISTINCT ordered by something that is not selected")
            plan = GroupBy(plan, passed(output.column for output in outputs), ())
        plan = limited(node, Sort(plan, tuple(keys)) if keys else plan)
        return Project(plan, passed(output.column for output in outputs)) if extra else plan

    def _where(self, node: exp.Select, source: Plan) -> Plan:
        clause = node.args.get("where")
        if clause is None:
            return source
        predicate = self.expressions.boolean(clause.this)
        if has_aggregate(predicate):
            raise SchemaError("an aggregate in WHERE; use HAVING")
        return Filter(source, predicate)

    def _items(self, node: exp.Select, binder: ExpressionBinder) -> list[SelectItem]:
        items: list[SelectItem] = []
        aliases: dict[str, Expression] = {}
        for each in node.expressions:
            if _is_star(each):
                items += self._star(each)
                continue
            bound = replace(binder, aliases=aliases)(each)
            items.append(SelectItem(bound, each.alias if isinstance(each, exp.Alias) else pretty_name(each)))
            if isinstance(each, exp.Alias):
                aliases = {**aliases, each.alias.lower(): bound}
        return items

    def _star(self, node: exp.Expr) -> list[SelectItem]:
        star = node.this if isinstance(node, exp.Column) else node
        refuse_clauses_besides(star, "except_")
        qualifier = node.table if isinstance(node, exp.Column) else None
        left_out = {each.name.lower() for each in star.args.get("except_") or ()}
        shown = [SelectItem(each.expression, each.name) for each in self.scope.star(qualifier or None)]
        missing = left_out - {(item.name or "").lower() for item in shown}
        if missing:
            raise SchemaError(f"EXCEPT names {sorted(missing)}, which the star does not contain")
        kept = [item for item in shown if (item.name or "").lower() not in left_out]
        if not kept:
            raise Unsupported("the star stands for no column")
        return kept

    def _grouping(self, node: exp.Select, binder: ExpressionBinder) -> Grouping:
        """Keys may be positions and aliases, so the items are bound first, without `grouping()`, as far as keys need them."""
        clause = node.args.get("group")
        if clause is None:
            return Grouping((), None, None)
        items = cache(lambda: self._items(node, replace(binder, grouping=_any_marker)))

        def key(inner: exp.Expr) -> Expression:
            place = place_of(inner)
            if place is not None:
                return position(place, [item.expression for item in items()], "GROUP BY")
            if isinstance(inner, exp.Column) and not inner.table and self.scope.find(inner.name) is None:
                return replace(binder, aliases=_aliases(items()))(inner)
            return binder(inner)

        everything = [item.expression for item in items()] if clause.args.get("all") else []
        return bind_grouping(clause, key, everything, self.fresh)

    def _predicate(self, node: exp.Select, clause: str, binder: ExpressionBinder, items: list[SelectItem]) -> Expression | None:
        part = node.args.get(clause)
        if part is None:
            return None
        aliases = _aliases(items)
        self._refuse_mixed_names(part, aliases, clause)
        return replace(binder, aliases=aliases).boolean(part.this)

    def _order(self, node: exp.Select, binder: ExpressionBinder, items: list[SelectItem]) -> list[SortKey]:
        clause = node.args.get("order")
        if clause is None:
            return []
        aliases = _aliases(items)

        def key(inner: exp.Expr) -> Expression:
            place = place_of(inner)
            if place is not None:
                return position(place, [item.expression for item in items], "ORDER BY")
            if isinstance(inner, exp.Column) and not inner.table and inner.name.lower() in aliases:
                return aliases[inner.name.lower()]
            self._refuse_mixed_names(inner, aliases, "order by")
            return replace(binder, aliases=aliases)(inner)

        if any(isinstance(each.unnest(), exp.Column) and each.name.upper() == "ALL" for each in clause.expressions):
            raise Unsupported("ORDER BY ALL")
        return [binder.sort_key(each, key) for each in clause.expressions]

    def _refuse_mixed_names(self, node: exp.Expr, aliases: dict[str, Expression], clause: str) -> None:
        """A name may mean an item or a column; when they differ the choice is Spark's."""
        for column in node.find_all(exp.Column):
            alias = None if column.table else aliases.get(column.name.lower())
            if alias is not None and self.scope.find(column.name) not in (None, alias):
                raise Unsupported(f"{clause.upper()} uses {column.name!r}, which is both a column and an alias")


class _WindowCalls:
    """Takes the window calls out of expressions, for a Window node below them."""

    def __init__(self, fresh: FreshNames) -> None:
        self._fresh = fresh
        self._outputs: dict[WindowCall, Output] = {}

    def out(self, expression: Expression) -> Expression:
        if not isinstance(expression, WindowCall):
            return map_children(expression, self.out)
        if any(isinstance(inner, WindowCall) for inner in list(walk(expression))[1:]):
            raise Unsupported("a window function inside a window function")
        if expression not in self._outputs:
            self._outputs[expression] = Output(self._fresh("window"), expression)
        return self._outputs[expression].column

    def over(self, plan: Plan) -> Plan:
        return Window(plan, tuple(self._outputs.values())) if self._outputs else plan


def _refuse_hidden_order(order: list[SortKey], items: list[SelectItem]) -> None:
    """Spark sorts by window functions and correlated subqueries only where they are selected too."""
    selected = {item.expression for item in items}
    for key in order:
        if key.expression not in selected:
            _refuse_correlated(key.expression, "ORDER BY")
            if any(isinstance(each, WindowCall) for each in walk(key.expression)):
                raise Unsupported("ORDER BY a window function that is not selected")


def _refuse_correlated(expression: Expression, where: str) -> None:
    """Spark takes correlated subqueries in some places only, and it is the judge of them."""
    if any(isinstance(each, Subquery) and each.plan.outer_columns() for each in walk(expression)):
        raise Unsupported(f"a correlated subquery in {where}")


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def _any_marker(name: str, arguments: list[Expression]) -> Expression:
    raise Unsupported(f"{name}() together with GROUP BY positions or aliases")


def _aliases(items: list[SelectItem]) -> dict[str, Expression]:
    """Items by lower-case name; a name that means two different things is left out."""
    found: dict[str, Expression] = {}
    clashing = set()
    for item in items:
        if item.name is None:
            continue
        name = item.name.lower()
        if found.setdefault(name, item.expression) != item.expression:
            clashing.add(name)
    return {name: value for name, value in found.items() if name not in clashing}


def limited(node: exp.Expr, plan: Plan) -> Plan:
    """The plan under the node's LIMIT and OFFSET."""
    count, offset = _whole(node.args.get("limit")), _whole(node.args.get("offset"))
    return plan if count is None and not offset else Limit(plan, count, offset or 0)


def _whole(node: exp.Expr | None) -> int | None:
    if node is None or (isinstance(node.expression, exp.Var) and node.expression.name.upper() == "ALL"):
        return None
    value = node.expression
    if isinstance(value, exp.Literal) and value.is_int:
        return int(value.name)
    raise Unsupported(f"{node.key.upper()} that is not a whole number")


def place_of(node: exp.Expr) -> int | None:
    """The number that a key of GROUP BY or ORDER BY is, parentheses and sign included; None when it is no plain number."""
    inner = node.unnest()
    if isinstance(inner, exp.Neg):
        below = place_of(inner.this)
        return None if below is None else -below
    return int(inner.name) if isinstance(inner, exp.Literal) and inner.is_int else None


def position(place: int, columns: list[Expression], clause: str) -> Expression:
    """The select item that a number in GROUP BY or ORDER BY stands for."""
    if not 1 <= place <= len(columns):
        raise SchemaError(f"{clause} position {place} is not in the select list (1 to {len(columns)})")
    return columns[place - 1]
