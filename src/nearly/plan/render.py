"""Plans to SQL of either kernel, as a syntax tree that is turned into text once.

Every node becomes one SELECT over its children. Joins that follow each other are one FROM, with the filters between and above them,
since an engine orders joins only as far as no other SELECT lies between. A subplan that occurs more than once becomes a common
table expression.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from sqlglot import exp

from nearly.errors import Unsupported
from nearly.plan import nodes
from nearly.plan.dialects import native, spark, sql
from nearly.plan.expressions import Expression, SortKey, conjunction, conjuncts
from nearly.plan.nodes import Input, Output, Plan, Scan


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kernel spells expressions; `name` is sqlglot's name of the generator."""

    name: str
    expression: Callable[[Expression], exp.Expr]
    sort_key: Callable[[SortKey], exp.Expr]


NATIVE = Dialect("duckdb", native.expression, native.sort_key)
SPARK = Dialect("spark", spark.expression, spark.sort_key)

Source = Callable[[Scan | Input], exp.Expr]
"""What a leaf of the plan reads: a table expression whose columns have the leaf's source names."""

INNER = ("inner", "cross")
_PLACEHOLDER = "_"
"""The column of a relation without columns; SQL has no such relation."""


def render(plan: Plan, dialect: Dialect, source: Source) -> str:
    """The SQL text of the plan; the result's columns have the plan's unique names, in order."""
    return text_of(rendered(plan, dialect, source), dialect)


def rendered(plan: Plan, dialect: Dialect, source: Source) -> exp.Expr:
    """The same as a syntax tree; `Unsupported` where the dialect has no form for something."""
    return _Renderer(plan, dialect, source).tree(plan)


def text_of(tree: exp.Expr, dialect: Dialect) -> str:
    """The text of a tree that is not used any more."""
    return str(tree.sql(dialect=dialect.name, copy=False))


class _Renderer:
    def __init__(self, plan: Plan, dialect: Dialect, source: Source) -> None:
        self.dialect = dialect
        self.source = source
        self._aliases = 0
        self._shared = _repeated(plan)
        self._common: dict[Plan, str] = {}
        self._definitions: list[exp.CTE] = []

    def tree(self, plan: Plan) -> exp.Expr:
        query = self.node(plan)
        if self._definitions:
            query.set("with_", exp.With(expressions=self._definitions))
        return query

    def query(self, plan: Plan) -> exp.Expr:
        """The plan as something to select from: a derived table, or the name of a common table expression."""
        if plan not in self._shared:
            return exp.Subquery(this=self.node(plan), alias=self._alias())
        if plan not in self._common:
            name = f"common_{len(self._common) + 1}"
            self._common[plan] = name
            body = self.node(plan)
            self._definitions.append(exp.CTE(this=body, alias=exp.TableAlias(this=exp.to_identifier(name))))
        return exp.Table(this=exp.to_identifier(self._common[plan]), alias=self._alias())

    def node(self, plan: Plan) -> exp.Expr:
        lower = LOWERING.get(type(plan))
        if lower is None:
            raise Unsupported(f"{type(plan).__name__} has no SQL form")
        return lower(self, plan)

    def _alias(self) -> exp.TableAlias:
        self._aliases += 1
        return exp.TableAlias(this=exp.to_identifier(f"t{self._aliases}"))

    def outputs(self, outputs: Sequence[Output]) -> list[exp.Expr]:
        if not outputs:
            return [_named(exp.Literal.number(0), _PLACEHOLDER)]
        return [_named(self.dialect.expression(o.expression), o.name) for o in outputs]

    def scan(self, plan: Scan) -> exp.Expr:
        columns = [_named(exp.column(f.source, quoted=True), f.name) for f in plan.fields]
        return _select(columns or self.outputs(()), self.source(plan))

    def input(self, plan: Input) -> exp.Expr:
        return _select([_column(column.name) for column in plan.given] or self.outputs(()), self.source(plan))

    def values(self, plan: nodes.Values) -> exp.Expr:
        rows = [
            exp.select(*(_named(self.dialect.expression(cell), column.name) for cell, column in
                         zip(row, plan.given, strict=True))) if row else exp.select(*self.outputs(()))
            for row in plan.rows
        ]  # fmt: skip
        query: exp.Expr = rows[0]
        for row in rows[1:]:
            query = exp.Union(this=query, expression=row, distinct=False)
        return query

    def filter(self, plan: nodes.Filter) -> exp.Expr:
        return self.over([exp.Star()], plan.child).where(self.dialect.expression(plan.predicate), copy=False)

    def project(self, plan: nodes.Project) -> exp.Expr:
        if isinstance(plan.child, nodes.Values) and plan.child.rows == ((),):
            return exp.select(*self.outputs(plan.outputs))
        return self.over(self.outputs(plan.outputs), plan.child)

    def join(self, plan: nodes.Join) -> exp.Expr:
        return self._joined([exp.Star()], plan)

    def over(self, columns: Sequence[exp.Expr], plan: Plan) -> exp.Select:
        """A select of some columns from a plan's rows; where these are joined, that is part of it, and so is a filter on top."""
        match plan:
            case nodes.Filter(child=nodes.Join()):
                return self.over(columns, plan.child).where(self.dialect.expression(plan.predicate), copy=False)
            case nodes.Join() if plan not in self._shared:
                return self._joined(columns, plan)
        return _select(columns, self.query(plan))

    def _joined(self, columns: Sequence[exp.Expr], plan: nodes.Join) -> exp.Select:
        first, joins = self._chain(plan)
        query = _select(columns, first)
        query.set("joins", joins)
        return query

    def _chain(self, plan: nodes.Join) -> tuple[exp.Expr, list[exp.Join]]:
        """What a chain of joins begins with, and what is joined to it, one after the other."""
        rows, tests = _unfiltered(plan.left)
        if self._is_chained(rows) and (not tests or plan.kind in INNER):
            first, joins = self._chain(rows)
        else:
            first, joins, tests = self.query(plan.left), [], ()
        condition = conjunction((*tests, *conjuncts(plan.condition)))
        words = _join_words("inner" if condition is not None and plan.kind == "cross" else plan.kind, self.dialect)
        on = None if condition is None else self.dialect.expression(condition)
        return first, [*joins, exp.Join(this=self._operand(plan.right), on=on, **words)]

    def _operand(self, plan: Plan) -> exp.Expr:
        """The right side of a join, which may be a chain in parentheses."""
        if not self._is_chained(plan):
            return self.query(plan)
        first, joins = self._chain(plan)
        first.set("joins", joins)
        return exp.Paren(this=first)

    def _is_chained(self, plan: Plan) -> TypeGuard[nodes.Join]:
        return isinstance(plan, nodes.Join) and plan not in self._shared

    def aggregate(self, plan: nodes.GroupBy) -> exp.Expr:
        keys = [self.dialect.expression(key.expression) for key in plan.keys]
        columns = [_named(key, output.name) for key, output in zip(keys, plan.keys, strict=True)]
        columns += self.outputs(plan.aggregates) if plan.aggregates else []
        if plan.grouping_id is not None:
            columns.append(_named(_grouping_id(keys, self.dialect), plan.grouping_id.name))
        query = self.over(columns or [_named(_count_rows(), _PLACEHOLDER)], plan.child)
        if plan.sets is not None:
            sets = [exp.Tuple(expressions=[keys[place].copy() for place in places]) for places in plan.sets]
            query.set("group", exp.Group(expressions=[exp.GroupingSets(expressions=sets)]))
            if self.dialect is NATIVE:
                some = exp.GT(this=_count_rows(), expression=exp.Literal.number(0))
                query.set("having", exp.Having(this=some))  # Spark gives no grand total of grouping sets over no rows
        elif keys:
            query.set("group", exp.Group(expressions=[exp.Literal.number(place + 1) for place in range(len(keys))]))
        return query

    def window(self, plan: nodes.Window) -> exp.Expr:
        return _select([exp.Star(), *self.outputs(plan.outputs)], self.query(plan.child))

    def set_operation(self, plan: nodes.SetOperation) -> exp.Expr:
        kinds = {"union": exp.Union, "intersect": exp.Intersect, "except": exp.Except}
        sides = [
            _select([_column(column.name) for column in side.columns] or self.outputs(()), self.query(side))
            for side in (plan.left, plan.right)
        ]
        both = kinds[plan.kind](this=sides[0], expression=sides[1], distinct=not plan.every)
        alias = self._alias()
        if plan.given:
            alias.set("columns", [exp.to_identifier(column.name, quoted=True) for column in plan.given])
        return _select([exp.Star()], exp.Subquery(this=both, alias=alias))

    def sort(self, plan: nodes.Sort) -> exp.Expr:
        query = _select([exp.Star()], self.query(plan.child))
        query.set("order", exp.Order(expressions=[self.dialect.sort_key(key) for key in plan.keys]))
        return query

    def limit(self, plan: nodes.Limit) -> exp.Expr:
        query = self.node(plan.child) if isinstance(plan.child, nodes.Sort) else _select([exp.Star()], self.query(plan.child))
        if plan.count is not None:
            query.set("limit", exp.Limit(expression=exp.Literal.number(plan.count)))
        if plan.offset:
            query.set("offset", exp.Offset(expression=exp.Literal.number(plan.offset)))
        return query

    def apply(self, plan: nodes.Apply) -> exp.Expr:
        """The rows of each piece as one list, to which the function is applied, and the lists it gives as rows again."""
        if self.dialect is not NATIVE:
            raise Unsupported("Python functions over rows have no form in Spark SQL")
        by = [] if plan.by is None else [_column(plan.by.name)]
        fields = [exp.PropertyEQ(this=exp.to_identifier(f"c{place}"), expression=_column(column.name)) for place, column in
                  enumerate(plan.taken)]  # fmt: skip
        rows = sql.function(plan.function, sql.function("list", exp.Struct(expressions=fields)))
        pieces = _select([*by, _named(rows, "made")], self.query(plan.child))
        if by:
            pieces.set("group", exp.Group(expressions=[exp.Literal.number(1)]))
        row = _named(sql.function("unnest", exp.column("made")), "made")
        unnested = _select([*(each.copy() for each in by), row], exp.Subquery(this=pieces, alias=self._alias()))
        columns = [_named(sql.function("struct_extract", exp.column("made"), sql.text(f"c{place}")), column.name)
                   for place, column in enumerate(plan.given)]  # fmt: skip
        return _select([*columns, *(each.copy() for each in by)], exp.Subquery(this=unnested, alias=self._alias()))


LOWERING: dict[type[Plan], Callable[..., exp.Expr]] = {
    Scan: _Renderer.scan,
    Input: _Renderer.input,
    nodes.Values: _Renderer.values,
    nodes.Filter: _Renderer.filter,
    nodes.Project: _Renderer.project,
    nodes.Join: _Renderer.join,
    nodes.GroupBy: _Renderer.aggregate,
    nodes.Window: _Renderer.window,
    nodes.SetOperation: _Renderer.set_operation,
    nodes.Sort: _Renderer.sort,
    nodes.Limit: _Renderer.limit,
    nodes.Apply: _Renderer.apply,
}


def _unfiltered(plan: Plan) -> tuple[Plan, tuple[Expression, ...]]:
    """A plan below the filter on top of it, and the tests of that."""
    return (plan.child, conjuncts(plan.predicate)) if isinstance(plan, nodes.Filter) else (plan, ())


def _join_words(kind: str, dialect: Dialect) -> dict[str, str]:
    """The join's kind as sqlglot's arguments; DuckDB spells a left semi join without LEFT."""
    if kind in ("semi", "anti"):
        return {"kind": kind.upper(), **({} if dialect is NATIVE else {"side": "LEFT"})}
    return {"kind": kind.upper()} if kind in ("inner", "cross") else {"side": kind.upper()}


def _grouping_id(keys: Sequence[exp.Expr], dialect: Dialect) -> exp.Expr:
    if dialect is SPARK:
        return exp.Anonymous(this="grouping_id", expressions=[])
    marks = exp.Anonymous(this="grouping", expressions=[key.copy() for key in keys])
    return exp.Cast(this=marks, to=exp.DataType.build("bigint"))


def _count_rows() -> exp.Expr:
    return exp.Anonymous(this="count", expressions=[exp.Star()])


def _select(columns: Sequence[exp.Expr], source: exp.Expr) -> exp.Select:
    return exp.Select(expressions=list(columns), from_=exp.From(this=source))


def _named(expression: exp.Expr, name: str) -> exp.Expr:
    """With an alias; the expression is not copied as sqlglot's own builder does, which took a third of the time of rendering."""
    return exp.Alias(this=expression, alias=exp.to_identifier(name, quoted=True))


def _column(name: str) -> exp.Expr:
    return exp.column(name, quoted=True)


def _repeated(plan: Plan) -> frozenset[Plan]:
    """Subplans that occur more than once and cost enough to be worth computing once."""
    costly = nodes.GroupBy | nodes.Apply | nodes.Join | nodes.Window | nodes.SetOperation | nodes.Sort
    counts = Counter(node for node in plan.walk() if isinstance(node, costly))
    return frozenset(node for node, count in counts.items() if count > 1)
