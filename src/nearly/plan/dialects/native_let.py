"""Values that DuckDB's SQL needs in several places, computed in one.

Many lowerings name an argument more than once: to test it, and to use it. The text of nested calls would grow exponentially.
Here a large argument becomes the parameter of a lambda over a list of one element, so that it is written, and computed, once.
Law: the text of an expression is at most as long as a constant times the number of its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from sqlglot import exp

from nearly.plan.dialects import sql
from nearly.plan.dialects.sql import Node

LARGE = 60
"""Nodes of an argument from which on it is not repeated; less costs less than a lambda."""

_PARAMETER = "let_value"


def built(build: Callable[[list[Node]], Node], arguments: Sequence[Node]) -> Node:
    """What `build` makes of the arguments, in which none that is large occurs twice."""
    if not any(_is_large(argument) for argument in arguments):
        return build(list(arguments))
    places = [exp.Column(this=exp.to_identifier(f"let_place_{place}", quoted=True)) for place in range(len(arguments))]
    given = [
        argument if isinstance(argument, exp.Literal | exp.Null | exp.Boolean) else place
        for argument, place in zip(arguments, places, strict=True)
    ]
    made = build(list(given))
    uses = [[node for node in made.find_all(exp.Column) if node == place] for place in places]
    if all(len(found) <= 1 or not _is_large(argument) for found, argument in zip(uses, arguments, strict=True)):
        values = arguments
    else:
        used = [place for place, found in enumerate(uses) if found]
        made, values = _let(made, [arguments[place] for place in used]), _parameters(used, len(arguments))
    return _substituted(made, uses, values)


def _is_large(node: Node) -> bool:
    return sum(1 for _ in islice(node.walk(), LARGE + 1)) > LARGE


def _let(body: Node, values: Sequence[Node]) -> Node:
    """`list_transform([{c0: value, ...}], lambda let_value: body)[1]`."""
    fields = [exp.PropertyEQ(this=exp.to_identifier(f"c{place}"), expression=value) for place, value in enumerate(values)]
    given = exp.Array(expressions=[exp.Struct(expressions=fields)])
    function = exp.Lambda(this=body, expressions=[exp.to_identifier(_PARAMETER)])
    return sql.function("list_extract", sql.function("list_transform", given, function), sql.integer(1))


def _parameters(used: Sequence[int], count: int) -> list[Node]:
    """How the lambda's body names the arguments."""
    found: list[Node] = [exp.Null()] * count
    for number, place in enumerate(used):
        parameter = exp.Column(this=exp.to_identifier(_PARAMETER))
        found[place] = sql.function("struct_extract", parameter, sql.text(f"c{number}"))
    return found


def _substituted(made: Node, uses: Sequence[Sequence[Node]], values: Sequence[Node]) -> Node:
    for found, value in zip(uses, values, strict=True):
        for node in found:
            put = sql.operand(value.copy() if len(found) > 1 else value)
            if node is made:
                made = put
            else:
                node.replace(put)
    return made
