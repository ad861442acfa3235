"""Automatic views as statements that a person might want to make permanent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sqlglot import exp

from nearly.autoview.candidates import Candidate
from nearly.autoview.store import MadeView
from nearly.plan.expressions import AggregateCall, Column, Expression, substitute
from nearly.plan.nodes import GroupBy, Plan, Scan
from nearly.plan.render import SPARK
from nearly.rewrite.views.blocks import JoinBlock, block_of

ADVISED = 2
"""A view that was used so often may be worth making permanent."""


def advised(kept: Iterable[MadeView]) -> list[str]:
    """Statements that would make the views permanent that were used most, those that saved most first."""
    known = (each for each in kept if each.holding.uses >= ADVISED and not each.candidate.hidden)
    used = sorted(known, key=lambda each: -each.holding.saved)
    return [statement(each.candidate, suggested_name(each.candidate, place)) for place, each in enumerate(used, 1)]


def statement(candidate: Candidate, name: str) -> str:
    """`CREATE MATERIALIZED VIEW name AS SELECT ...` for what a view computes."""
    return f"CREATE MATERIALIZED VIEW {name} AS\n{candidate.text.strip().rstrip(';') or query_text(candidate.plan)}"


def named_apart(text: str, names: Sequence[str]) -> str:
    """A query whose columns have these names, with others in their place where two are the same: no view can have such.

    >>> named_apart("select a.k, b.k, c.K from a, b, c", ["k", "k", "K"])
    'SELECT * FROM (select a.k, b.k, c.K from a, b, c) AS `rows` (`k`, `k_2`, `K_3`)'
    """
    taken = {name.lower() for name in names}
    if len(taken) == len(names):
        return text
    seen: set[str] = set()
    found = []
    for place, name in enumerate(names, 1):
        apart = name
        while apart.lower() in seen or (apart != name and apart.lower() in taken):
            apart = f"{apart}_{place}"
        seen.add(apart.lower())
        found.append(apart)
    shown = ", ".join(exp.to_identifier(each, quoted=True).sql(dialect="spark") for each in found)
    return f"SELECT * FROM ({text.strip().rstrip(';')}) AS `rows` ({shown})"


def suggested_name(candidate: Candidate, number: int) -> str:
    """A name that needs no quotes, whatever tables and columns are called."""
    tables = "_".join(dict.fromkeys(candidate.shape.tables))[:40]
    groups = "_".join(each.rpartition(".")[2] for each in candidate.shape.groups)[:40]
    return re.sub(r"\W", "_", f"auto_{tables}{f'_by_{groups}' if groups else ''}_{number}")


def query_text(plan: Plan) -> str:
    """A select of the rows of a block, with a grouping where there is one."""
    group = plan if isinstance(plan, GroupBy) else None
    block = block_of(plan if group is None else group.child)
    aliases = {leaf: f"t{place}" for place, leaf in enumerate(block.leaves, 1)}
    spelled = _Spelling(block, aliases)
    tables = [exp.table_(_table(leaf)).as_(alias) for leaf, alias in aliases.items()]
    query = exp.select(*_shown(plan, group, block, spelled)).from_(tables[0])
    for table in tables[1:]:
        query = query.join(table, join_type="cross")
    if block.predicates:
        query = query.where(*(spelled(each) for each in block.predicates))
    if group is not None and group.keys:
        query = query.group_by(*(spelled(substitute(key.expression, block.outputs)) for key in group.keys))
    return query.sql(dialect="spark", pretty=True, identify=True)


def _table(leaf: Plan) -> str:
    return leaf.table if isinstance(leaf, Scan) else "?"


def _shown(plan: Plan, group: GroupBy | None, block: JoinBlock, spelled: _Spelling) -> list[exp.Expr]:
    outputs = (*group.keys, *group.aggregates) if group is not None else ()
    values = [substitute(each.expression, block.outputs) for each in outputs] or [block.outputs[each.name] for each in plan.columns]
    names: dict[str, int] = {}
    shown: list[exp.Expr] = []
    for value in values:
        base = _name(value, spelled)
        names[base] = names.get(base, 0) + 1
        shown.append(exp.alias_(spelled(value), base if names[base] == 1 else f"{base}_{names[base]}"))
    return shown


def _name(value: Expression, spelled: _Spelling) -> str:
    match value:
        case Column():
            return spelled.source(value.name)
        case AggregateCall(function=function, arguments=(Column() as of,)):
            return f"{function}_{spelled.source(of.name)}"
        case AggregateCall(function=function):
            return f"{function}_all"
    return "value"


class _Spelling:
    """Expressions over the columns of leaves as SQL has them."""

    def __init__(self, block: JoinBlock, aliases: dict[Plan, str]) -> None:
        self._places = {
            field.name: (aliases[leaf], field.source) for leaf in block.leaves if isinstance(leaf, Scan) for field in leaf.fields
        }

    def source(self, name: str) -> str:
        return self._places[name][1]

    def __call__(self, expression: Expression) -> exp.Expr:
        return SPARK.expression(expression).transform(self._placed)

    def _placed(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in self._places:
            alias, source = self._places[node.name]
            return exp.column(source, table=alias)
        return node
