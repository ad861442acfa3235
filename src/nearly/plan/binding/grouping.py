"""GROUP BY: keys by position, alias or expression, ROLLUP, CUBE and GROUPING SETS, and what may stand above a grouping."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import combinations, product

from sqlglot import exp

from nearly.errors import SchemaError, Unsupported
from nearly.plan import expressions, functions
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import AggregateCall, Column, Expression, Literal, Subquery, WindowCall, has_aggregate, has_subquery
from nearly.plan.nodes import GroupBy, Output, Plan, Project, passed
from nearly.plan.types import BYTE, LONG

BindKey = Callable[[exp.Expr], Expression]
Sets = tuple[tuple[int, ...], ...]
MAX_SETS = 4096


@dataclass(frozen=True, slots=True)
class Grouping:
    """The keys of a GROUP BY; `sets` when it has several grouping sets, with the column for their id."""

    keys: tuple[Expression, ...]
    sets: Sets | None
    grouping_id: Column | None
    mixed: bool = False
    """Plain keys stand beside ROLLUP and the like: the syntax tree has lost their order, which `grouping_id` shows."""

    def marker(self, name: str, arguments: list[Expression]) -> Expression:
        """`grouping(key)` and `grouping_id(keys...)` from the id column."""
        if self.grouping_id is None:
            raise SchemaError(f"{name}() needs GROUPING SETS, ROLLUP or CUBE")
        if name == "grouping_id":
            if self.mixed:
                raise Unsupported("grouping_id() where plain keys stand beside ROLLUP, CUBE or GROUPING SETS")
            if arguments and tuple(arguments) != self.keys:
                raise SchemaError("grouping_id() takes no columns, or all grouping columns in their order")
            return self.grouping_id
        if len(arguments) != 1 or arguments[0] not in self.keys:
            raise SchemaError("grouping() takes one of the grouping columns")
        place = len(self.keys) - 1 - self.keys.index(arguments[0])
        bit = functions.call("div", [self.grouping_id, Literal(LONG, 2**place)])
        return functions.cast(functions.call("%", [bit, Literal(LONG, 2)]), BYTE)


def bind_grouping(node: exp.Group | None, bind: BindKey, everything: Iterable[Expression], fresh: FreshNames) -> Grouping:
    """The grouping of a query; `everything` are its select items, for GROUP BY ALL."""
    if node is None:
        return Grouping((), None, None)
    if node.args.get("all"):
        return Grouping(tuple(dict.fromkeys(each for each in everything if not has_aggregate(each))), None, None)
    keys: list[Expression] = []
    parts = [_sets_of(part, bind, keys) for part in _parts(node)]
    if all(len(part) == 1 for part in parts):
        return Grouping(tuple(keys), None, None)
    sets = tuple(tuple(sorted({place for piece in choice for place in piece})) for choice in product(*parts))
    if len(sets) > MAX_SETS:
        raise Unsupported(f"{len(sets)} grouping sets, at most {MAX_SETS} are planned")
    if len(set(sets)) < len(sets):
        raise Unsupported("repeated grouping sets")
    return Grouping(tuple(keys), sets, Column(LONG, fresh("grouping_id")), mixed=len(parts) > 1)


def _parts(node: exp.Group) -> list[exp.Expr]:
    plain = list(node.expressions)
    special = [part for name in ("rollup", "cube", "grouping_sets") for part in node.args.get(name) or ()]
    if node.args.get("totals"):
        raise Unsupported("GROUP BY ... WITH TOTALS")
    if any(not part.expressions for part in special):
        return [_trailing(special, plain)]
    return [*plain, *special]


def _trailing(special: list[exp.Expr], plain: list[exp.Expr]) -> exp.Expr:
    """`GROUP BY a, b WITH ROLLUP` is `GROUP BY ROLLUP (a, b)`."""
    if len(special) > 1 or not isinstance(special[0], exp.Rollup | exp.Cube):
        raise Unsupported("GROUP BY with WITH ROLLUP or WITH CUBE beside other grouping sets")
    return type(special[0])(expressions=plain)


def _sets_of(part: exp.Expr, bind: BindKey, keys: list[Expression]) -> list[tuple[int, ...]]:
    """The alternatives that one element of GROUP BY stands for, as positions in `keys`."""
    match part:
        case exp.Rollup():
            units = [_unit(each, bind, keys) for each in part.expressions]
            return [_flat(units[:count]) for count in range(len(units), -1, -1)]
        case exp.Cube():
            units = [_unit(each, bind, keys) for each in part.expressions]
            return [_flat(chosen) for count in range(len(units), -1, -1) for chosen in combinations(units, count)]
        case exp.GroupingSets():
            return [choice for each in part.expressions for choice in _sets_of(each, bind, keys)]
        case _:
            return [_unit(part, bind, keys)]


def _unit(node: exp.Expr, bind: BindKey, keys: list[Expression]) -> tuple[int, ...]:
    members = node.expressions if isinstance(node, exp.Tuple) else [node]
    return tuple(_place(bind(member.unnest()), keys) for member in members)


def _place(key: Expression, keys: list[Expression]) -> int:
    if has_aggregate(key):
        raise SchemaError("an aggregate cannot be a grouping key")
    if key not in keys:
        keys.append(key)
    return keys.index(key)


def _flat(units: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(place for unit in units for place in unit)


@dataclass(slots=True)
class Grouped:
    """A grouped query under construction: rewrites what stands above the grouping and collects its aggregates."""

    grouping: Grouping
    fresh: FreshNames
    keys: tuple[Output, ...]
    inputs: frozenset[str]
    aggregates: dict[AggregateCall, Output] = field(default_factory=dict)

    @classmethod
    def over(cls, child: Plan, grouping: Grouping, fresh: FreshNames) -> Grouped:
        keys = tuple(Output(_key_name(key, grouping, fresh), key) for key in grouping.keys)
        return cls(grouping, fresh, keys, child.names)

    def above(self, expression: Expression) -> Expression:
        """The expression in terms of keys and aggregates."""
        rewritten = self._replace(expression)
        allowed = {key.name for key in self.keys} | {output.name for output in self.aggregates.values()}
        allowed |= {self.grouping.grouping_id.name} if self.grouping.grouping_id else set()
        self._check(rewritten, allowed)
        return rewritten

    def plan(self, child: Plan) -> Plan:
        """The Aggregate node; keys and arguments that hold subqueries, and keys of grouping sets, are computed below it."""
        outputs: dict[Expression, Output] = {}

        def below(expression: Expression, force: bool) -> Expression:
            if isinstance(expression, Column) or not (force or has_subquery(expression)):
                return expression
            if expression not in outputs:
                outputs[expression] = Output(self.fresh("value"), expression)
            return outputs[expression].column

        keys = tuple(Output(k.name, below(k.expression, self.grouping.sets is not None)) for k in self.keys)
        aggregates = tuple(
            Output(output.name, expressions.map_children(call, lambda each: below(each, False)))
            for call, output in self.aggregates.items()
        )
        if outputs:
            child = Project(child, (*passed(child.columns), *outputs.values()))
        return GroupBy(child, keys, aggregates, self.grouping.sets, self.grouping.grouping_id)

    def _replace(self, expression: Expression) -> Expression:
        for key in self.keys:
            if expression == key.expression:
                return key.column
        if isinstance(expression, AggregateCall):
            return self._aggregate(expression).column
        if isinstance(expression, Subquery):
            values: dict[str, Expression] = {
                key.expression.name: key.column for key in self.keys if isinstance(key.expression, Column)
            }
            plan = expression.plan.map_expressions(lambda inner: expressions.substitute(inner, values))
            return replace(expression, plan=plan, operands=tuple(self._replace(each) for each in expression.operands))
        if isinstance(expression, WindowCall) and isinstance(expression.call, AggregateCall):
            return self._replace_window(expression, expression.call)
        return expressions.map_children(expression, self._replace)

    def _replace_window(self, window: WindowCall, call: AggregateCall) -> Expression:
        """`sum(sum(x)) over (...)`: the outer aggregate belongs to the window, the ones inside it to the grouping."""
        inner = expressions.map_children(call, self._replace)
        return expressions.map_children(window, lambda each: inner if each is call else self._replace(each))

    def _aggregate(self, call: AggregateCall) -> Output:
        if call not in self.aggregates:
            self.aggregates[call] = Output(self.fresh(call.function), call)
        return self.aggregates[call]

    def _check(self, expression: Expression, allowed: set[str]) -> None:
        for each in expressions.walk(expression):
            if isinstance(each, Subquery):
                continue
            if isinstance(each, Column) and each.name not in allowed and each.name in self.inputs:
                shown = each.name.rsplit("_", 1)[0]
                if any(has_subquery(key.expression) for key in self.keys):
                    raise Unsupported(f"column {shown!r} above a grouping by a subquery, which may be part of the key")
                raise SchemaError(f"column {shown!r} is neither grouped nor aggregated; add it to GROUP BY or aggregate it")


def _key_name(key: Expression, grouping: Grouping, fresh: FreshNames) -> str:
    """A plain column keeps its name, so that references from subqueries still mean it; grouping sets change its values."""
    if isinstance(key, Column) and grouping.sets is None:
        return key.name
    return fresh(key.name.rsplit("_", 1)[0] if isinstance(key, Column) else "key")
