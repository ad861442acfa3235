"""Syntax trees of queries to plans: common table expressions, set operations, and the clauses of a SELECT in SQL's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from nearly.errors import SchemaError, Unsupported
from nearly.plan import functions
from nearly.plan.binding.from_clause import Environment, FromBinder, Named, common_type_of
from nearly.plan.binding.scope import FreshNames, Scope, Visible
from nearly.plan.binding.select import SelectBinder, limited, place_of, position
from nearly.plan.expressions import Column, Expression
from nearly.plan.nodes import Apply, BoundQuery, Output, Plan, Project, SetOperation, Sort
from nearly.plan.schema import FindTable
from nearly.plan.syntax.parse import refuse_clauses_besides
from nearly.plan.user_functions import Mapped

_SET_KINDS = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}


def bind(tree: exp.Expr, find_table: FindTable, relations: Sequence[Mapped] = ()) -> BoundQuery:
    """The plan of a parsed query over the tables that `find_table` knows, and `relations`, each after those it is made from."""
    binder = QueryBinder(find_table, FreshNames(), {})
    for each in relations:
        binder = binder.knowing(each)
    named = binder.query(tree, None)
    names = tuple(name or column.name for name, column in zip(named.names, named.plan.columns, strict=True))
    return BoundQuery(named.plan, names, unnamed=None in named.names)


@dataclass(frozen=True, slots=True)
class QueryBinder:
    """Binds queries that see the common table expressions of `environment`."""

    find_table: FindTable
    fresh: FreshNames
    environment: Environment = field(default_factory=dict)

    def knowing(self, mapped: Mapped) -> QueryBinder:
        """A binder whose queries may select from what a user's function makes of a query."""
        rows = self.query(mapped.query, None).plan
        given = tuple(Column(type_, self.fresh(name)) for name, type_ in mapped.outputs)
        made = Apply(rows, mapped.name, rows.columns, given, mapped.keys, estimates=mapped.estimates)
        named = Named(made, tuple(name for name, _ in mapped.outputs))
        return replace(self, environment={**self.environment, mapped.name.lower(): named})

    def query(self, node: exp.Expr, outer: Scope | None) -> Named:
        inner = self._with(node, outer)
        match node:
            case exp.Select():
                plan, scope = inner._from(outer)(node)
                return SelectBinder(inner.fresh, inner.plan, scope)(node, plan)
            case exp.SetOperation():
                return inner._ordered(node, inner._set_operation(node, outer), outer)
            case exp.Subquery():
                refuse_clauses_besides(node, "this", "with_", "order", "limit", "offset", "alias")
                return inner._ordered(node, inner.query(node.this, outer), outer)
            case exp.Values():
                return inner._ordered(node, inner._from(outer).values(node), outer)
        raise Unsupported(f"{node.key} as a query")

    def plan(self, node: exp.Expr, scope: Scope) -> Plan:
        """A subquery inside an expression of `scope`."""
        return self.query(node, scope).plan

    def _from(self, outer: Scope | None) -> FromBinder:
        return FromBinder(self.find_table, self.fresh, self.environment, outer, self.query, self.plan)

    def _with(self, node: exp.Expr, outer: Scope | None) -> QueryBinder:
        clause = node.args.get("with_")
        if clause is None:
            return self
        if clause.args.get("recursive"):
            raise Unsupported("WITH RECURSIVE")
        binder = self
        for common in clause.expressions:
            refuse_clauses_besides(common, "this", "alias")
            named = binder.query(common.this, outer)
            columns = [identifier.name for identifier in common.args["alias"].columns]
            if columns and len(columns) != len(named.names):
                raise SchemaError(f"{common.alias!r} names {len(columns)} columns, its query has {len(named.names)}")
            if columns:
                named = replace(named, names=tuple(columns))
            binder = replace(binder, environment={**binder.environment, common.alias.lower(): named})
        return binder

    def _set_operation(self, node: exp.SetOperation, outer: Scope | None) -> Named:
        refuse_clauses_besides(node, "this", "expression", "distinct", "with_", "order", "limit", "offset", "by_name")
        if node.args.get("by_name") or type(node) not in _SET_KINDS:
            raise Unsupported("set operation BY NAME")
        left, right = self.query(node.this, outer), self.query(node.expression, outer)
        kind = _SET_KINDS[type(node)]
        if len(left.names) != len(right.names):
            raise SchemaError(f"{kind.upper()} of {len(left.names)} and {len(right.names)} columns")
        pairs = zip(left.plan.columns, right.plan.columns, strict=True)
        types = [common_type_of(f"column {place + 1} of {kind.upper()}", [a.type, b.type]) for place, (a, b) in enumerate(pairs)]
        given = tuple(Column(type_, self.fresh(name or "value")) for type_, name in zip(types, left.names, strict=True))
        sides = [self._cast_to(side.plan, given) for side in (left, right)]
        plan = SetOperation(sides[0], sides[1], kind, not node.args.get("distinct"), given)
        return Named(plan, left.names)

    def _cast_to(self, plan: Plan, target: tuple[Column, ...]) -> Plan:
        if all(a.type == b.type for a, b in zip(plan.columns, target, strict=True)):
            return plan
        pairs = zip(plan.columns, target, strict=True)
        return Project(plan, tuple(Output(self.fresh("cast"), functions.cast(a, b.type)) for a, b in pairs))

    def _ordered(self, node: exp.Expr, named: Named, outer: Scope | None) -> Named:
        """ORDER BY, LIMIT and OFFSET after a set operation or parenthesis: they see its columns only."""
        plan = named.plan
        order = node.args.get("order")
        if order is not None:
            visible = [Visible(None, n, c) for n, c in zip(named.names, plan.columns, strict=True)]
            binder = SelectBinder(self.fresh, self.plan, Scope(visible, outer))

            def bind_key(inner: exp.Expr) -> Expression:
                place = place_of(inner)
                return binder.expressions(inner) if place is None else position(place, list(named.plan.columns), "ORDER BY")

            plan = Sort(plan, tuple(binder.expressions.sort_key(key, bind_key) for key in order.expressions))
        return replace(named, plan=limited(node, plan))
