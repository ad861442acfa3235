"""The cases of aggregates and window functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nearly.plan import functions
from nearly.plan.expressions import AggregateCall, Expression, SortKey, WindowCall, WindowFrame
from nearly.plan.types import DataType
from tests.plan.dialects.conformance.language import Number, typed, written


@dataclass(frozen=True)
class Aggregated:
    """An aggregate as a user writes it."""

    name: str
    arguments: tuple[Any, ...] = ()
    distinct: bool = False
    where: Any = None

    def typed(self, columns: dict[str, DataType]) -> AggregateCall:
        where = None if self.where is None else typed(self.where, columns)
        return functions.aggregate(self.name, [typed(each, columns) for each in self.arguments], self.distinct, where)

    def written(self) -> str:
        inside = ", ".join(written(each) for each in self.arguments) or "*"
        condition = "" if self.where is None else f" FILTER (WHERE {written(self.where)})"
        return f"{self.name}({'DISTINCT ' if self.distinct else ''}{inside}){condition}"


@dataclass(frozen=True)
class Windowed:
    """A call over a window that is partitioned and ordered by columns; `frame` is (unit, start, end)."""

    call: Any
    partition: tuple[str, ...] = ()
    order: tuple[tuple[str, bool, bool], ...] = ()
    frame: tuple[str, int | None, int | None] | None = None

    def typed(self, columns: dict[str, DataType]) -> Expression:
        if isinstance(self.call, Aggregated):
            call: Expression = self.call.typed(columns)
        else:
            call = functions.window(self.call[0], [typed(each, columns) for each in self.call[1:]])
        partition = tuple(typed(each, columns) for each in self.partition)
        order = tuple(SortKey(typed(name, columns), ascending, first) for name, ascending, first in self.order)
        return WindowCall(call.type, call, partition, order, None if self.frame is None else WindowFrame(*self.frame))

    def written(self) -> str:
        call = self.call.written() if isinstance(self.call, Aggregated) else written(self.call)
        parts = [f"PARTITION BY {', '.join(self.partition)}"] if self.partition else []
        if self.order:
            keys = [
                f"{name} {'ASC' if ascending else 'DESC'} NULLS {'FIRST' if first else 'LAST'}"
                for name, ascending, first in self.order
            ]
            parts.append(f"ORDER BY {', '.join(keys)}")
        if self.frame is not None:
            unit, start, end = self.frame
            parts.append(f"{unit} BETWEEN {_bound(start, 'PRECEDING')} AND {_bound(end, 'FOLLOWING')}")
        return f"{call} OVER ({' '.join(parts)})"


def _bound(offset: int | None, open_side: str) -> str:
    if offset is None:
        return f"UNBOUNDED {open_side}"
    if offset == 0:
        return "CURRENT ROW"
    return f"{abs(offset)} {'PRECEDING' if offset < 0 else 'FOLLOWING'}"


AGGREGATES = [
    Aggregated("count"),
    *(Aggregated("count", (a,)) for a in "idnt"),
    *(Aggregated("count", (a,), distinct=True) for a in "bidfnt"),
    Aggregated("count", ("i", "n")),
    Aggregated("count", ("i", "t"), distinct=True),
    Aggregated("count", ("d", "n"), distinct=True),
    *(Aggregated(name, (a,)) for name in ("sum", "avg") for a in "bhilgcenopqwv"),
    *(Aggregated(name, (a,)) for name in ("sum", "avg") for a in "df"),
    *(Aggregated(name, (a,), distinct=True) for name in ("sum", "avg") for a in "iecn"),
    *(Aggregated(name, (a,), where=(">", "i", 0)) for name in ("sum", "avg", "count", "min") for a in "ijne"),
    Aggregated("sum", (("*", "n", ("-", 1, "o")),)),
    Aggregated("sum", (("case", "t", "n", 0),)),
    Aggregated("avg", (("*", "n", "o"),)),
    *(Aggregated(name, (a,)) for name in ("min", "max") for a in "bhilfdcnopqwvt"),
    *(
        Aggregated(name, (a,))
        for name in ("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")
        for a in "ilcen"
    ),
    *(Aggregated(name, ("c", "e")) for name in ("corr", "covar_samp", "covar_pop")),
    Aggregated("corr", ("i", "n")),
    Aggregated("count_if", ("t",)),
    Aggregated("count_if", ((">", "i", 0),)),
    *(Aggregated(name, ("t",)) for name in ("bool_and", "bool_or", "every", "some", "any")),
    *(Aggregated("median", (a,)) for a in "bilcen"),
    *(Aggregated("percentile", (a, Number(share))) for a in "ien" for share in ("0.0", "0.25", "0.9", "1.0")),
    Aggregated("mean", ("n",)),
]

_BY_ID = (("id", True, True),)
_BY_VALUE = (("j", True, True), ("id", True, True))
_TIES = (("j", False, False),)

WINDOWS = [
    *(Windowed((name,), ("u",), order) for name in ("row_number",) for order in (_BY_ID, _BY_VALUE)),
    *(
        Windowed((name,), ("u",), order)
        for name in ("rank", "dense_rank", "percent_rank", "cume_dist")
        for order in (_TIES, (("n", True, True),), (("d", True, False),))
    ),
    *(Windowed(("ntile", parts), ("u",), _BY_ID) for parts in (1, 3, 7)),
    *(Windowed((name, "n"), ("u",), _BY_VALUE) for name in ("lag", "lead")),
    *(Windowed((name, "n", 2, 0), ("u",), _BY_ID) for name in ("lag", "lead")),
    *(Windowed((name, "i", 3), (), _BY_ID) for name in ("lag", "lead", "nth_value")),
    *(Windowed((name, "n"), ("u",), _BY_VALUE) for name in ("first_value", "last_value")),
    *(Windowed((name, "n", True), ("u",), _BY_VALUE) for name in ("first_value", "last_value")),
    *(
        Windowed((name, "i"), ("u",), _BY_ID, frame)
        for name in ("first_value", "last_value")
        for frame in (("rows", -2, 1), ("rows", None, None), ("rows", 0, None))
    ),
    *(Windowed(Aggregated(name, (a,)), ("u",)) for name in ("sum", "avg", "min", "max", "count") for a in "in"),
    *(
        Windowed(Aggregated(name, (a,)), ("u",), order)
        for name in ("sum", "avg", "min", "max", "count")
        for a in "in"
        for order in (_BY_ID, _TIES)
    ),
    *(
        Windowed(Aggregated(name, (a,)), ("u",), _BY_ID, frame)
        for name in ("sum", "avg", "max")
        for a in "ine"
        for frame in (("rows", -2, 0), ("rows", -1, 1), ("rows", None, -1), ("rows", 1, 3))
    ),
    Windowed(Aggregated("count"), ("u", "t")),
    Windowed(Aggregated("count"), (), _TIES, ("range", None, 0)),
    Windowed(Aggregated("stddev", ("c",)), ("u",), _BY_ID),
    Windowed(Aggregated("sum", ("n",), where=(">", "i", 0)), ("u",), _BY_ID),
]
