"""Syntax trees of expressions to typed expressions: names are resolved, functions looked up, types made to fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce

from sqlglot import exp

from nearly.errors import SchemaError, UnknownName, Unsupported
from nearly.plan import functions
from nearly.plan.binding.scope import Scope
from nearly.plan.binding.windows import window
from nearly.plan.expressions import AggregateCall, Expression, Literal, Sizes, SortKey, Subquery, WindowCall, children, size
from nearly.plan.nodes import Plan
from nearly.plan.syntax.parse import refuse_clauses_besides
from nearly.plan.types import BOOLEAN, DATE, NULL, STRING, common_type, from_name
from nearly.plan.user_functions import marked

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
MOST_PARTS = 20_000
"""Functions that stand for expressions with an argument in two places make nested calls grow exponentially."""

BindPlan = Callable[[exp.Expr, Scope], Plan]

BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "div", exp.Mod: "%",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>",
    exp.And: "and", exp.Or: "or", exp.Like: "like", exp.ILike: "ilike", exp.RegexpLike: "rlike", exp.DPipe: "||",
    exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^",
}  # fmt: skip
UNARY: dict[type[exp.Expr], str] = {exp.Not: "not", exp.Neg: "neg", exp.BitwiseNot: "~"}
SHAPED: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.StrPosition: ("locate", ("substr", "this", "position")),
    exp.Ceil: ("ceil", ("this", "decimals")),
    exp.Floor: ("floor", ("this", "decimals")),
    exp.If: ("if", ("this", "true", "false")),
    exp.Between: ("between", ("this", "low", "high")),
}
"""Nodes that the grammar builds itself: the function each one is and where its arguments are."""


@dataclass(frozen=True, slots=True)
class ExpressionBinder:
    """Binds expressions in one scope.

    `aliases` are select items that may be named where no column has the name; `windows` are the named windows of the query.
    """

    scope: Scope
    bind_plan: BindPlan
    aliases: dict[str, Expression] = field(default_factory=dict)
    windows: dict[str, exp.Window] = field(default_factory=dict)
    grouping: Callable[[str, list[Expression]], Expression] | None = None
    sizes: Sizes = field(default_factory=dict)

    def __call__(self, node: exp.Expr) -> Expression:
        bound = self._bound(node)
        if size(bound, self.sizes) > MOST_PARTS:
            raise Unsupported(f"an expression that repeats its arguments in more than {MOST_PARTS:,} parts")
        return bound

    def _bound(self, node: exp.Expr) -> Expression:
        handler = HANDLERS.get(type(node))
        if handler is None:
            raise Unsupported(f"{node.key} ({node.sql(dialect='spark')[:80]}) is not in nearly's plan algebra")
        return handler(self, node)

    def boolean(self, node: exp.Expr) -> Expression:
        """A predicate; whether an untyped NULL may be one depends on the clause and is left to Spark."""
        bound = self(node)
        if bound.type == NULL:
            raise Unsupported("a condition that is NULL without a type")
        if bound.type != BOOLEAN:
            raise SchemaError(f"a condition must be boolean, {node.sql(dialect='spark')[:80]} is {bound.type}")
        return bound

    def sort_key(self, node: exp.Expr, bind: Callable[[exp.Expr], Expression] | None = None) -> SortKey:
        bind = bind or self
        if not isinstance(node, exp.Ordered):
            return SortKey(bind(node))
        refuse_clauses_besides(node, "this", "desc", "nulls_first")
        descending = bool(node.args.get("desc"))
        nulls_first = node.args.get("nulls_first")
        return SortKey(bind(node.this), not descending, (not descending) if nulls_first is None else bool(nulls_first))

    def binary(self, node: exp.Expr, *more: exp.Expr) -> Expression:
        """An operator; `more` are arguments besides the two sides. NOT LIKE comes as LIKE with a mark."""
        refuse_clauses_besides(node, "this", "expression", "negate", "safe")
        arguments = [self(each) for each in (node.this, node.expression, *more)]
        result = functions.call(BINARY[type(node)], arguments)
        return functions.call("not", [result]) if node.args.get("negate") else result

    def unary(self, node: exp.Expr) -> Expression:
        refuse_clauses_besides(node, "this")
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
            return functions.number(f"-{node.this.name}")
        return functions.call(UNARY[type(node)], [self(node.this)])

    def shaped(self, node: exp.Expr) -> Expression:
        name, places = SHAPED[type(node)]
        refuse_clauses_besides(node, *places, "symmetric", "big_int", "zero_start")
        if node.args.get("symmetric"):
            raise Unsupported("BETWEEN SYMMETRIC is not Spark SQL")
        return functions.call(name, [self(node.args[place]) for place in places if node.args.get(place) is not None])

    def column(self, node: exp.Column) -> Expression:
        refuse_clauses_besides(node, "this", "table")
        if isinstance(node.this, exp.Star):
            raise Unsupported("a star inside an expression")
        name, qualifier = node.name, node.table or None
        try:
            return self.scope.resolve(name, qualifier)
        except UnknownName:
            if qualifier is None and name.lower() in self.aliases:
                return self.aliases[name.lower()]
            raise

    def case(self, node: exp.Case) -> Expression:
        refuse_clauses_besides(node, "this", "ifs", "default")
        subject = self(node.this) if node.this is not None else None
        arguments: list[Expression] = []
        for branch in node.args["ifs"]:
            when = self(branch.this)
            arguments += [when if subject is None else functions.call("=", [subject, when]), self(branch.args["true"])]
        if node.args.get("default") is not None:
            arguments.append(self(node.args["default"]))
        return functions.call("case", arguments)

    def cast(self, node: exp.Cast) -> Expression:
        refuse_clauses_besides(node, "this", "to", "safe")
        target = from_name(node.args["to"].sql(dialect="spark"))
        operand = self(node.this)
        safe = isinstance(node, exp.TryCast)
        if target == DATE and isinstance(operand, Literal) and operand.type == STRING and _ISO_DATE.fullmatch(operand.value or ""):
            try:
                return functions.date(operand.value)
            except SchemaError as wrong:
                raise Unsupported(str(wrong)) from None  # DATE '...' is an error, CAST one only where there are rows
        return functions.cast(operand, target, safe=safe)

    def is_(self, node: exp.Is) -> Expression:
        refuse_clauses_besides(node, "this", "expression")
        subject = self(node.this)
        match node.expression:
            case exp.Null():
                return functions.call("isnull", [subject])
            case exp.Boolean(this=value):
                return functions.call("<=>", [subject, Literal(BOOLEAN, bool(value))])
        raise Unsupported(f"IS {node.expression.sql(dialect='spark')}")

    def in_(self, node: exp.In) -> Expression:
        refuse_clauses_besides(node, "this", "expressions", "query")
        operands = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        bound = [self(operand) for operand in operands]
        if node.args.get("query") is not None:
            return self._in_query(bound, node.args["query"])
        if len(bound) > 1:
            return self._tuple_in(bound, node.expressions)
        return functions.call("in", [bound[0], *(self(option) for option in node.expressions)])

    def _in_query(self, operands: list[Expression], query: exp.Expr) -> Expression:
        plan = self.bind_plan(query.unnest(), self.scope)
        if len(plan.columns) != len(operands):
            raise SchemaError(f"IN compares {len(operands)} value(s) with a subquery of {len(plan.columns)} column(s)")
        for operand, column in zip(operands, plan.columns, strict=True):
            if common_type(operand.type, column.type) is None:
                raise SchemaError(f"IN compares {operand.type} with {column.type}")
        return Subquery(BOOLEAN, "in", plan, tuple(operands))

    def _tuple_in(self, operands: list[Expression], options: list[exp.Expr]) -> Expression:
        rows = []
        for option in options:
            if not isinstance(option, exp.Tuple) or len(option.expressions) != len(operands):
                raise SchemaError(f"IN compares a row of {len(operands)} values with {option.sql(dialect='spark')}")
            pairs = zip(operands, (self(each) for each in option.expressions), strict=True)
            rows.append(_fold("and", [functions.call("=", list(pair)) for pair in pairs]))
        return _fold("or", rows)

    def exists(self, node: exp.Exists) -> Expression:
        refuse_clauses_besides(node, "this")
        return Subquery(BOOLEAN, "exists", self.bind_plan(node.this.unnest(), self.scope))

    def scalar(self, node: exp.Expr) -> Expression:
        refuse_clauses_besides(node, "this", "alias")
        plan = self.bind_plan(node.unnest(), self.scope)
        if len(plan.columns) != 1:
            raise SchemaError(f"a subquery used as a value must have one column, this one has {len(plan.columns)}")
        return Subquery(plan.columns[0].type, "scalar", plan)

    def interval(self, node: exp.Interval) -> Expression:
        refuse_clauses_besides(node, "this", "unit")
        if node.this is None or not isinstance(node.this, exp.Literal):
            raise Unsupported(f"interval {node.sql(dialect='spark')}")
        unit = node.args.get("unit")
        return functions.interval(node.this.name, unit.sql(dialect="spark").lower() if unit is not None else "")

    def extract(self, node: exp.Extract) -> Expression:
        refuse_clauses_besides(node, "this", "expression")
        return functions.call("extract", [Literal(STRING, node.name or node.this.name), self(node.expression)])

    def trim(self, node: exp.Trim) -> Expression:
        refuse_clauses_besides(node, "this", "expression", "position")
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get((node.args.get("position") or "").upper(), "btrim")
        if node.args.get("expression") is None:
            return functions.call(name, [self(node.this)])
        text, characters = self(node.this), self(node.expression)
        return functions.call(name, [text, characters] if name == "btrim" else [characters, text])

    def escape(self, node: exp.Escape) -> Expression:
        if BINARY.get(type(node.this)) not in ("like", "ilike"):
            raise Unsupported("ESCAPE outside LIKE")
        return self.binary(node.this, node.expression)

    def function(self, node: exp.Anonymous) -> Expression:
        refuse_clauses_besides(node, "this", "expressions")
        users = marked(node)
        if users is not None:
            return users.call(tuple(self(each) for each in node.expressions))
        name = str(node.this).lower()
        if name in ("grouping", "grouping_id"):
            if self.grouping is None:
                raise SchemaError(f"{name}() needs GROUPING SETS, ROLLUP or CUBE")
            return self.grouping(name, [self(each) for each in node.expressions])
        if functions.is_aggregate(name):
            return self.aggregate(node)
        if functions.is_window(name):
            raise SchemaError(f"{name}() needs an OVER clause")
        if not functions.is_spelled(name):
            raise Unsupported(f"function {name!r} is not in nearly's verified set")
        return functions.call(name, [self(each) for each in node.expressions])

    def aggregate(self, node: exp.Anonymous, where: exp.Expr | None = None, over_window: bool = False) -> AggregateCall:
        """An aggregate call; only one over a window may have aggregates inside, those of the grouping below it."""
        arguments, distinct = node.expressions, False
        if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
            refuse_clauses_besides(arguments[0], "expressions")
            arguments, distinct = arguments[0].expressions, True
        if not arguments:
            raise SchemaError(f"{node.this}() has no argument; write count(*) to count rows")
        if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
            arguments = []
        condition = None if where is None else self.boolean(where)
        bound = [self(each) for each in arguments]
        for each in bound:
            if not over_window and any(isinstance(inner, AggregateCall) for inner in _walk_outside_windows(each)):
                raise SchemaError(f"aggregate inside aggregate: {node.sql(dialect='spark')[:80]}")
        return functions.aggregate(str(node.this).lower(), bound, distinct=distinct, where=condition)

    def filtered(self, node: exp.Filter, over_window: bool = False) -> Expression:
        refuse_clauses_besides(node, "this", "expression")
        called = str(node.this.this).lower() if isinstance(node.this, exp.Anonymous) else ""
        if not isinstance(node.this, exp.Anonymous) or not functions.is_aggregate(called):
            if not functions.is_function(called):
                raise Unsupported(f"{called or node.this.key} with FILTER")
            raise SchemaError(f"FILTER needs an aggregate: {node.sql(dialect='spark')[:80]}")
        return self.aggregate(node.this, node.expression.this, over_window)


def _fold(operator: str, parts: list[Expression]) -> Expression:
    return reduce(lambda left, right: functions.call(operator, [left, right]), parts)


def _walk_outside_windows(expression: Expression) -> list[Expression]:
    if isinstance(expression, WindowCall):
        return []
    return [expression, *(inner for child in children(expression) for inner in _walk_outside_windows(child))]


HANDLERS: dict[type[exp.Expr], Callable[..., Expression]] = {
    exp.Column: ExpressionBinder.column,
    exp.Literal: lambda _binder, node: Literal(STRING, node.this) if node.is_string else functions.number(node.this),
    exp.Null: lambda _binder, _node: Literal(NULL, None),
    exp.Boolean: lambda _binder, node: Literal(BOOLEAN, bool(node.this)),
    exp.Paren: lambda binder, node: binder(node.this),
    exp.Alias: lambda binder, node: binder(node.this),
    exp.Concat: lambda binder, node: functions.call("concat", [binder(each) for each in node.expressions]),
    exp.RawString: lambda _binder, node: Literal(STRING, str(node.this)),
    exp.Case: ExpressionBinder.case,
    exp.Cast: ExpressionBinder.cast,
    exp.TryCast: ExpressionBinder.cast,
    exp.Is: ExpressionBinder.is_,
    exp.In: ExpressionBinder.in_,
    exp.Exists: ExpressionBinder.exists,
    exp.Subquery: ExpressionBinder.scalar,
    exp.Interval: ExpressionBinder.interval,
    exp.Extract: ExpressionBinder.extract,
    exp.Trim: ExpressionBinder.trim,
    exp.Escape: ExpressionBinder.escape,
    exp.NullSafeNEQ: lambda binder, node: functions.call("not", [_fold("<=>", [binder(node.this), binder(node.expression)])]),
    exp.Anonymous: ExpressionBinder.function,
    exp.Filter: ExpressionBinder.filtered,
    exp.Window: window,
    **dict.fromkeys(BINARY, ExpressionBinder.binary),
    **dict.fromkeys(UNARY, ExpressionBinder.unary),
    **dict.fromkeys(SHAPED, ExpressionBinder.shaped),
}
