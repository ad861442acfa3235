"""Subqueries in expressions become joins, with SQL's semantics for nulls and for empty sets.

- `EXISTS` and `IN` as a conjunct of a filter: semi join; `NOT EXISTS`: anti join.
- `x NOT IN S` as a conjunct keeps a row only when the comparison is false for every y in S. Three anti joins say so: no y equals x;
  no y is null; x is not null unless S is empty. The last two vanish where no null can occur.
- A scalar subquery: a join with its value. Correlated, it is grouped by the correlated columns and joined by a left join; a row
  without a group gets what the aggregate gives for no rows, so COUNT gives 0.
- `EXISTS` and `IN` inside other expressions: a left join with a mark; IN is true, false or null by the rule above. Spark gives
  false where SQL says null, so an IN that may be null is planned only where the two make no difference: in conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from nearly.errors import Unsupported
from nearly.plan import expressions, functions
from nearly.plan.binding.nullability import never_null
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import FALSE, TRUE, Call, Column, Expression, Literal, Subquery, columns_of, conjunction, conjuncts
from nearly.plan.nodes import Filter, GroupBy, Join, Limit, Output, Plan, Project, passed
from nearly.plan.types import LONG, STRING
from nearly.rewrite.logical.correlation import Pulled, correlated_keys, equalities, existing, pull_up
from nearly.rewrite.logical.reduce_domain import reduce_domain


def decorrelate(plan: Plan, fresh: FreshNames) -> Plan:
    """The same rows from a plan without subqueries in its expressions."""
    return _Decorrelator(fresh).plan(plan)


@dataclass(frozen=True, slots=True)
class _Decorrelator:
    fresh: FreshNames

    def plan(self, plan: Plan) -> Plan:
        plan = plan.map_children(self.plan)
        if not any(expressions.has_subquery(expression) for expression in plan.expressions()):
            return plan
        match plan:
            case Filter():
                return self._filter(plan)
            case Join():
                return self._join(plan)
            case Project():
                child, change = self._attach_all(plan.child, plan)
                return Project(child, tuple(replace(o, expression=change(o.expression)) for o in plan.outputs))
        raise Unsupported(f"a subquery inside {type(plan).__name__.upper()}")

    def _filter(self, plan: Filter) -> Plan:
        child = plan.child
        parts = conjuncts(plan.predicate)
        plain = conjunction([part for part in parts if not expressions.has_subquery(part)])
        child = child if plain is None else Filter(child, plain)
        hard = []
        for part in parts:
            subquery, negated = _as_subquery(part)
            if subquery is not None:
                child = self._conjunct(child, subquery, negated)
            elif expressions.has_subquery(part):
                hard.append(part)
        for part in hard:
            child = self._general(child, part, plan.columns)
        return child

    def _general(self, child: Plan, part: Expression, keep: tuple[Column, ...]) -> Plan:
        """A conjunct with a subquery somewhere inside: attach its value, filter, and drop what was attached."""
        attached, change = self._attach_all(child, part)
        return Project(Filter(attached, change(part)), passed(keep))

    def _join(self, plan: Join) -> Plan:
        """A subquery in ON: of an inner join it is a filter above; of others only when one side alone decides it."""
        parts = conjuncts(plan.condition)
        plain = [part for part in parts if not expressions.has_subquery(part)]
        hard = [part for part in parts if expressions.has_subquery(part)]
        if plan.kind == "inner":
            condition = conjunction(plain)
            below = Join(plan.left, plan.right, "inner" if condition else "cross", condition)
            return self._filter(Filter(below, conjunction(hard) or TRUE))
        if plan.kind in ("left", "semi", "anti") and all(columns_of(part) <= plan.right.names for part in hard):
            right = self._filter(Filter(plan.right, conjunction(hard) or TRUE))
            return Join(plan.left, right, plan.kind, conjunction(plain) or TRUE)
        raise Unsupported(f"a subquery in the condition of a {plan.kind} join")

    def _conjunct(self, child: Plan, subquery: Subquery, negated: bool) -> Plan:
        inner = self.plan(subquery.plan)
        if subquery.kind == "exists":
            pulled = self._pull_existing(inner)
            return Join(child, pulled.plan, "anti" if negated else "semi", conjunction(pulled.predicates) or TRUE)
        pulled = pull_up(inner, self.fresh)
        if pulled.ungrouped is not None and pulled.predicates:
            raise Unsupported("IN with a correlated aggregate")
        values = pulled.plan.columns[: len(subquery.operands)]
        same = _equal(subquery.operands, values)
        if not negated:
            return Join(child, pulled.plan, "semi", conjunction([*pulled.predicates, same]) or TRUE)
        return self._not_in(child, subquery, pulled, same)

    def _pull_existing(self, inner: Plan) -> Pulled:
        inner = existing(inner)
        pulled = pull_up(inner, self.fresh)
        if pulled.ungrouped is not None and pulled.predicates:
            raise Unsupported("EXISTS over a correlated aggregate")
        return pulled if pulled.predicates else replace(pulled, plan=Limit(pulled.plan, 1))

    def _not_in(self, child: Plan, subquery: Subquery, pulled: Pulled, same: Expression) -> Plan:
        values = pulled.plan.columns[: len(subquery.operands)]
        safe_values = all(never_null(value, pulled.plan) for value in values)
        safe_operands = all(never_null(operand, child) for operand in subquery.operands)
        if len(values) > 1 and not (safe_values and safe_operands):
            doubtful = functions.call("coalesce", [same, TRUE])
            return Join(child, pulled.plan, "anti", conjunction([*pulled.predicates, doubtful]) or TRUE)
        result: Plan = Join(child, pulled.plan, "anti", conjunction([*pulled.predicates, same]) or TRUE)
        if not safe_values:
            nulls = self._copy(Filter(pulled.plan, functions.call("isnull", [values[0]])), pulled)
            result = Join(result, nulls.plan, "anti", conjunction([*nulls.predicates, TRUE]))
        if not safe_operands:
            missing, some = functions.call("isnull", [subquery.operands[0]]), self._copy(pulled.plan, pulled)
            result = Join(result, some.plan, "anti", conjunction([*some.predicates, missing]))
        return result

    def _copy(self, plan: Plan, pulled: Pulled) -> Pulled:
        """The plan a second time, under fresh names, with the predicates in those names, to see whether there is a row."""
        outputs = tuple(Output(self.fresh("copy"), column) for column in plan.columns)
        renamed: dict[str, Expression] = {column.name: output.column for column, output in zip(plan.columns, outputs, strict=True)}
        predicates = tuple(expressions.substitute(part, renamed) for part in pulled.predicates)
        return Pulled(Project(plan, outputs) if predicates else Limit(Project(plan, outputs), 1), predicates)

    def _attach_all(self, child: Plan, where: Plan | Expression) -> tuple[Plan, Callable[[Expression], Expression]]:
        """The child with the value of every subquery of `where` as a column, and the rewriting that uses these columns."""
        values: dict[Subquery, Expression] = {}
        found = tuple(where.expressions()) if isinstance(where, Plan) else (where,)
        shown = {each for expression in found for each in _shown(expression, not isinstance(where, Plan))}
        for expression in found:
            for each in expressions.walk(expression):
                if isinstance(each, Subquery) and each not in values:
                    child, values[each] = self._attach(child, each, each in shown)

        def change(expression: Expression) -> Expression:
            if isinstance(expression, Subquery):
                return values[expression]
            return expressions.map_children(expression, change)

        return child, change

    def _attach(self, child: Plan, subquery: Subquery, shown: bool) -> tuple[Plan, Expression]:
        inner = self.plan(subquery.plan)
        match subquery.kind:
            case "scalar":
                return self._attach_scalar(child, inner)
            case "exists":
                return self._attach_mark(child, self._pull_existing(inner))
        return self._attach_in(child, subquery, inner, shown)

    def _attach_scalar(self, child: Plan, inner: Plan) -> tuple[Plan, Expression]:
        value: Expression = inner.columns[0]
        pulled = pull_up(inner, self.fresh)
        if not pulled.predicates:
            return self._attach_uncorrelated(child, inner)
        if pulled.ungrouped is None:
            pulled, value = self._at_most_one(pulled, child.names)
        keys = equalities(pulled.predicates, child.names | _outer_names(pulled))
        right = reduce_domain(pulled.plan, keys, child, self.fresh)
        joined = Join(child, right, "left", conjunction(pulled.predicates))
        found = functions.call("isnotnull", [keys[0].inner])
        return joined, _or_empty(value, found, inner)

    def _attach_uncorrelated(self, child: Plan, inner: Plan) -> tuple[Plan, Expression]:
        if _has_one_row(inner):
            return Join(child, inner, "cross"), inner.columns[0]
        one, value = self._at_most_one(Pulled(inner, ()), frozenset())
        checked = Output(self.fresh("value"), value)
        return Join(child, Project(one.plan, (checked,)), "cross"), checked.column

    def _at_most_one(self, pulled: Pulled, outer: frozenset[str]) -> tuple[Pulled, Expression]:
        """One row for each value of the correlated columns, and its value; a second row is the error it is in SQL.

        The value is to be read above the join with the enclosing query: rows that it does not ask for may well be several.
        """
        keys, predicates = correlated_keys(pulled.predicates, outer | _outer_names(pulled), self.fresh)
        value = pulled.plan.columns[0]
        rows = Output(self.fresh("rows"), functions.aggregate("count", []))
        only = Output(self.fresh("only"), functions.aggregate("max", [value]))
        grouped = GroupBy(pulled.plan, keys, (only, rows))
        trouble = Call(value.type, "raise_error", (Literal(STRING, "a subquery used as a value gave more than one row"),))
        several = functions.call(">", [rows.column, Literal(LONG, 1)])
        return Pulled(grouped, predicates), Call(value.type, "case", (several, trouble, only.column))

    def _attach_mark(self, child: Plan, pulled: Pulled) -> tuple[Plan, Expression]:
        """Whether a correlated row exists, as a boolean column."""
        if not pulled.predicates:
            count = Output(self.fresh("rows"), functions.aggregate("count", []))
            counted = GroupBy(pulled.plan, (), (count,))
            return Join(child, counted, "cross"), functions.call(">", [count.column, Literal(LONG, 0)])
        keys, predicates = correlated_keys(pulled.predicates, child.names | _outer_names(pulled), self.fresh, "mark")
        marks = GroupBy(pulled.plan, keys, ())
        return Join(child, marks, "left", conjunction(predicates)), functions.call("isnotnull", [keys[0].column])

    def _attach_in(self, child: Plan, subquery: Subquery, inner: Plan, shown: bool) -> tuple[Plan, Expression]:
        """IN as a value: true when some y equals x; else null when x or some y is null and S is not empty; else false."""
        if len(subquery.operands) > 1:
            raise Unsupported("IN with several columns inside an expression")
        operand = subquery.operands[0]
        pulled = pull_up(inner, self.fresh)
        if pulled.ungrouped is not None and pulled.predicates:
            raise Unsupported("IN with a correlated aggregate")
        value = pulled.plan.columns[0]
        certain = never_null(operand, child) and never_null(value, pulled.plan)
        if shown and not certain:
            raise Unsupported("the value of an IN that may be null, which Spark gives as false")
        child, found = self._attach_mark(child, replace(pulled, predicates=(*pulled.predicates, _equal((operand,), (value,)))))
        if certain:
            return child, found
        child, has_null = self._attach_mark(child, self._copy(Filter(pulled.plan, functions.call("isnull", [value])), pulled))
        child, has_row = self._attach_mark(child, self._copy(pulled.plan, pulled))
        no_operand = functions.call("and", [functions.call("isnull", [operand]), has_row])
        unknown = functions.call("or", [has_null, no_operand])
        return child, functions.call("case", [found, TRUE, unknown, Literal(found.type, None), FALSE])


def _shown(expression: Expression, condition: bool) -> Iterator[Subquery]:
    """The IN subqueries that stand where null and false differ; `condition` tells that the expression is a condition itself."""
    match expression:
        case Subquery(kind="in"):
            if not condition:
                yield expression
        case Call(function="and" | "or" | "not"):
            for argument in expression.arguments:
                yield from _shown(argument, condition)
        case Call(function="case"):
            tests = len(expression.arguments) // 2
            for place, argument in enumerate(expression.arguments):
                yield from _shown(argument, place < 2 * tests and place % 2 == 0)
        case _:
            for child in expressions.children(expression):
                yield from _shown(child, False)


def _as_subquery(part: Expression) -> tuple[Subquery | None, bool]:
    """The subquery that a conjunct is, negated or not."""
    negated = False
    while isinstance(part, Call) and part.function == "not":
        part, negated = part.arguments[0], not negated
    return (part, negated) if isinstance(part, Subquery) and part.kind != "scalar" else (None, negated)


def _equal(operands: tuple[Expression, ...], values: tuple[Column, ...]) -> Expression:
    pairs = [functions.call("=", [operand, value]) for operand, value in zip(operands, values, strict=True)]
    return conjunction(pairs) or TRUE


def _outer_names(pulled: Pulled) -> frozenset[str]:
    """Columns of the predicates that the subquery's own plan does not have."""
    return frozenset(name for part in pulled.predicates for name in columns_of(part)) - pulled.plan.names


def _has_one_row(plan: Plan) -> bool:
    while isinstance(plan, Project):
        plan = plan.child
    return isinstance(plan, GroupBy) and not plan.keys and plan.sets is None


def _or_empty(value: Expression, found: Expression, inner: Plan) -> Expression:
    """The joined value, or where nothing was found what the subquery gives for no rows."""
    nothing = _value_of_no_rows(value, inner)
    if nothing is None or _is_null(nothing):
        return value
    return functions.call("case", [found, value, nothing])


def _value_of_no_rows(value: Expression, plan: Plan) -> Expression | None:
    """The value with every aggregate replaced by what it is over no rows: 0 for counts, null for others."""
    if isinstance(plan, Project):
        outputs: dict[str, Expression] = {output.name: output.expression for output in plan.outputs}
        return _value_of_no_rows(expressions.substitute(value, outputs), plan.child)
    if isinstance(plan, GroupBy) and not plan.keys:
        empty: dict[str, Expression] = {output.name: _empty(output.expression) for output in plan.aggregates}
        return expressions.substitute(value, empty)
    return None


def _empty(call: Expression) -> Expression:
    counts = isinstance(call, expressions.AggregateCall) and call.function in ("count", "count_if", "regr_count")
    return Literal(call.type, 0 if counts else None)


def _is_null(expression: Expression) -> bool:
    """Whether it is null for sure: arithmetic and casts of a null are null."""
    match expression:
        case Literal(value=None):
            return True
        case expressions.Cast():
            return _is_null(expression.operand)
        case Call(function="+" | "-" | "*" | "/" | "neg"):
            return any(_is_null(argument) for argument in expression.arguments)
    return False
