"""Window functions in DuckDB."""

from __future__ import annotations

from sqlglot import exp

from nearly.plan.dialects import sql
from nearly.plan.dialects.native_build import Builder
from nearly.plan.dialects.sql import Node
from nearly.plan.expressions import Call, Literal


def _of_frame(kind: type[Node]) -> Builder:
    """The typed nodes here, because the generator writes IGNORE NULLS only for them."""

    def build(call: Call, arguments: list[Node]) -> Node:
        skip = call.arguments[1]
        value = kind(this=arguments[0])
        return exp.IgnoreNulls(this=value) if isinstance(skip, Literal) and skip.value else value

    return build


def _plain(call: Call, arguments: list[Node]) -> Node:
    return sql.function(call.function, *arguments)


LOWERINGS: dict[str, Builder] = {
    "row_number": _plain,
    "rank": _plain,
    "dense_rank": _plain,
    "percent_rank": _plain,
    "cume_dist": _plain,
    "ntile": _plain,
    "lag": _plain,
    "lead": _plain,
    "first_value": _of_frame(exp.FirstValue),
    "last_value": _of_frame(exp.LastValue),
    "nth_value": _plain,
}
