"""FROM clauses to plans: tables, derived tables, VALUES, and every kind of join."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from nearly.errors import SchemaError, Unsupported
from nearly.plan import functions
from nearly.plan.binding.expression import BindPlan, ExpressionBinder
from nearly.plan.binding.scope import FreshNames, Scope, Visible
from nearly.plan.expressions import Column, Expression, conjunction
from nearly.plan.nodes import Field, Join, Output, Plan, Project, Scan, Values
from nearly.plan.schema import FindTable
from nearly.plan.syntax.parse import refuse_clauses_besides
from nearly.plan.types import NULL, DataType, common_type


@dataclass(frozen=True, slots=True)
class Named:
    """A plan with the names its columns have for whoever selects from it; None where only Spark knows the name."""

    plan: Plan
    names: tuple[str | None, ...]


Environment = dict[str, Named]
"""The common table expressions in sight, by lower-case name."""

NO_ROWS_NEEDED = Values((), ((),))
"""The one empty row that a SELECT without FROM reads."""


@dataclass(frozen=True, slots=True)
class FromBinder:
    """Binds one FROM clause."""

    find_table: FindTable
    fresh: FreshNames
    environment: Environment
    outer: Scope | None
    bind_query: Callable[[exp.Expr, Scope | None], Named]
    bind_plan: BindPlan

    def __call__(self, select: exp.Select) -> tuple[Plan, Scope]:
        source = select.args.get("from_")
        if source is None:
            return NO_ROWS_NEEDED, Scope([], self.outer)
        plan, visible = self._joins(*self.relation(source.this), select)
        return plan, Scope(visible, self.outer)

    def relation(self, node: exp.Expr) -> tuple[Plan, list[Visible]]:
        alias: str | None
        match node:
            case exp.Table():
                named, alias = self.table(node), node.alias or node.name
            case exp.Subquery(this=exp.Table()):  # `(a JOIN b ON ...)`: the tables inside keep their names
                refuse_clauses_besides(node, "this", "joins")
                return self._joins(*self.relation(node.this), node)
            case exp.Subquery():
                refuse_clauses_besides(node, "this", "alias", "joins")
                named, alias = self.bind_query(node.unnest(), self.outer), node.alias or None
            case exp.Values():
                refuse_clauses_besides(node, "expressions", "alias", "joins")
                named, alias = self.values(node), node.alias or None
            case _:
                raise Unsupported(f"{node.key} in FROM")
        return self._joins(named.plan, _visible(named, alias, node), node)

    def _joins(self, plan: Plan, visible: list[Visible], node: exp.Expr) -> tuple[Plan, list[Visible]]:
        for join in node.args.get("joins") or ():
            plan, visible = self.join(plan, visible, join)
        return plan, visible

    def table(self, node: exp.Table) -> Named:
        refuse_clauses_besides(node, "this", "alias", "joins", "hints")
        if isinstance(node.this, exp.Anonymous | exp.Func):
            raise Unsupported(f"table function {node.name}")
        shared = self.environment.get(node.name.lower())
        return self.rename(shared) if shared is not None else self.scan(node.name)

    def rename(self, shared: Named) -> Named:
        """A use of a common table expression: the same plan under names of its own."""
        outputs = tuple(Output(self.fresh(column.name.rsplit("_", 1)[0]), column) for column in shared.plan.columns)
        return replace(shared, plan=Project(shared.plan, outputs))

    def scan(self, name: str) -> Named:
        schema = self.find_table(name)
        fields = tuple(Field(self.fresh(c.name), c.name, c.type, c.nullable) for c in schema.columns)
        rows = Scan(schema.name, fields, version=schema.version)
        if schema.reading is not None:
            return Named(schema.reading.over(rows, self.fresh), schema.reading.names)
        return Named(rows, tuple(column.name for column in schema.columns))

    def values(self, node: exp.Values) -> Named:
        bind = ExpressionBinder(Scope(), self.bind_plan)
        rows = [[bind(cell) for cell in (row.expressions if isinstance(row, exp.Tuple) else [row])] for row in node.expressions]
        widths = {len(row) for row in rows}
        if len(widths) != 1:
            raise SchemaError("VALUES: rows of different lengths")
        types = [
            common_type_of(f"column {place + 1} of VALUES", [row[place].type for row in rows]) for place in range(widths.pop())
        ]
        names = tuple(f"col{place + 1}" for place in range(len(types)))
        given = tuple(Column(type_, self.fresh(name)) for type_, name in zip(types, names, strict=True))
        cells = tuple(tuple(functions.cast(c, t) for c, t in zip(row, types, strict=True)) for row in rows)
        return Named(Values(given, cells), names)

    def join(self, left: Plan, seen: list[Visible], node: exp.Join) -> tuple[Plan, list[Visible]]:
        refuse_clauses_besides(node, "this", "side", "kind", "method", "on", "using", "hint")
        if node.method not in ("", "NATURAL"):
            raise Unsupported(f"{node.method} join")
        right, added = self.relation(node.this)
        kind = _kind(node)
        names = _using(node, seen, added)
        if names is not None:
            return self._join_using(left, seen, right, added, kind, names)
        condition = None
        if node.args.get("on") is not None:
            condition = ExpressionBinder(Scope([*seen, *added], self.outer), self.bind_plan).boolean(node.args["on"])
        visible = seen if kind in ("semi", "anti") else [*seen, *added]
        return _joined(left, right, kind, condition), visible

    def _join_using(
        self, left: Plan, seen: list[Visible], right: Plan, added: list[Visible], kind: str, names: list[str]
    ) -> tuple[Plan, list[Visible]]:
        pairs = [(Scope(seen).resolve(name), Scope(added).resolve(name)) for name in names]
        equal = conjunction([functions.call("=", list(pair)) for pair in pairs])
        plan = _joined(left, right, kind, equal)
        if kind in ("semi", "anti"):
            return plan, seen
        lowered = {name.lower() for name in names}
        merged = [Visible(None, name, _merged(kind, *pair)) for name, pair in zip(names, pairs, strict=True)]
        rest = [
            replace(each, qualified_only=True) if (each.name or "").lower() in lowered and not each.qualified_only else each
            for each in (*seen, *added)
        ]
        return plan, [*merged, *rest]


def _visible(named: Named, alias: str | None, node: exp.Expr) -> list[Visible]:
    given = node.args.get("alias")
    columns = [identifier.name for identifier in (given.columns if given is not None else ())]
    if columns and len(columns) != len(named.names):
        raise SchemaError(f"alias {alias!r} names {len(columns)} columns, the relation has {len(named.names)}")
    names: Sequence[str | None] = columns or named.names
    return [Visible(alias, name, column) for name, column in zip(names, named.plan.columns, strict=True)]


def _kind(node: exp.Join) -> str:
    side, kind = (node.side or "").lower(), (node.kind or "").lower()
    if kind in ("semi", "anti"):
        if side == "right":
            raise Unsupported(f"right {kind} join")
        return kind
    if kind in ("", "inner", "outer", "cross"):
        return side or ("cross" if kind == "cross" else "inner")
    raise Unsupported(f"{kind} join")


def _using(node: exp.Join, seen: list[Visible], added: list[Visible]) -> list[str] | None:
    if node.method == "NATURAL":
        if any(each.name is None for each in (*seen, *added)):
            raise Unsupported("a natural join with a column that has no alias")
        right = {each.name.lower() for each in added if each.name and not each.qualified_only}
        return [each.name for each in seen if each.name and each.name.lower() in right and not each.qualified_only]
    using = node.args.get("using")
    return [identifier.name for identifier in using] if using else None


def _merged(kind: str, left: Expression, right: Expression) -> Expression:
    if kind == "full":
        return functions.call("coalesce", [left, right])
    return right if kind == "right" else left


def _joined(left: Plan, right: Plan, kind: str, condition: Expression | None) -> Plan:
    if condition is None:
        if kind in ("inner", "cross"):
            return Join(left, right, "cross")
        raise Unsupported(f"a {kind} join without a condition")
    return Join(left, right, "inner" if kind == "cross" else kind, condition)


def common_type_of(what: str, types: list[DataType]) -> DataType:
    result: DataType = NULL
    for type_ in types:
        both = common_type(result, type_)
        if both is None:
            raise SchemaError(f"{what} mixes {result} and {type_}")
        result = both
    return result
