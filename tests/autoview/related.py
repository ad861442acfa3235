"""Random queries that are related: the same joins and groups with other constants, fewer keys, and other aggregates."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.fixtures.generation import Pick

VALUES: dict[str, list[Any]] = {
    "k": [None, 0, 1, 2, 3], "g": [None, "a", "b", "", "A"], "x": [None, 0, 1, 2, 5, -3, 10],
    "y": [None, Decimal("0.00"), Decimal("1.50"), Decimal("-2.25"), Decimal("10.00")],
    "z": [None, 0.0, -0.0, float("nan"), 1.5, -2.25, float("inf")], "d": [None, *(dt.date(2020, 1, day) for day in (1, 2, 3, 15))],
    "t": [None, *(dt.datetime(2020, 1, day, hour, tzinfo=dt.UTC) for day in (1, 2) for hour in (0, 12))], "f": [None, True, False],
}  # fmt: skip
TYPES = {
    "k": pa.int32(), "g": pa.string(), "x": pa.int64(), "y": pa.decimal128(9, 2), "z": pa.float64(), "d": pa.date32(),
    "t": pa.timestamp("us", "UTC"), "f": pa.bool_(),
}  # fmt: skip
LITERALS = {
    "k": ("0", "1", "2", "3"), "g": ("'a'", "'b'", "''"), "x": ("0", "1", "2", "5", "-3", "2.5", "'2'"),
    "y": ("0", "1.5", "1.50", "10", "-2.25"), "z": ("0.0", "1.5D", "cast('NaN' as double)", "1", "-0.0D"),
    "d": ("date'2020-01-01'", "date'2020-01-02'", "'2020-01-03'", "timestamp'2020-01-02 05:00:00'"),
    "t": ("timestamp'2020-01-01 12:00:00'", "'2020-01-02'", "date'2020-01-02'"), "f": ("true", "false"),
}  # fmt: skip
SOURCES = (
    "fact a", "fact a", "fact a", "fact a join dim b on a.k = b.k", "fact a join dim b on a.k = b.k and a.x = b.x",
    "fact a join fact b on a.k = b.k and a.g = b.g", "fact a left join dim b on a.k = b.k",
    "(select * from fact where x >= 0) a join dim b on a.k = b.k",
)  # fmt: skip


def rows(first: int, count: int, pick: Pick) -> pa.Table:
    """Rows of either table, whose ids go on from a number."""
    columns = {name: pa.array([pick(VALUES[name]) for _ in range(count)], type_) for name, type_ in TYPES.items()}
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), **columns})


class Related:
    """Writes queries over `fact` and `dim`, and variants of them."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick

    def query(self) -> str:
        source = self.pick(SOURCES)
        tables = ("a", "b") if "join" in source else ("a",)
        tests = [self._test(tables) for _ in range(self.pick((0, 1, 1, 2, 3)))]
        rest = f"from {source}" + (f" where {' and '.join(tests)}" if tests else "")
        return self._grouped(tables, rest) if self.pick((True, True, True, False)) else self._plain(tables, rest)

    def variant(self, text: str) -> str:
        """The same query with some other constants."""
        return re.sub(r"(?<=[<>=] )\d+(?![\d.-])", lambda found: self.pick((found.group(), "0", "1", "2", "5")), text)

    def _column(self, tables: tuple[str, ...], among: str = "kgxyzdtf") -> str:
        return f"{self.pick(tables)}.{self.pick(among)}"

    def _test(self, tables: tuple[str, ...]) -> str:
        column = self._column(tables)
        first, second = (self.pick(LITERALS[column[-1]]) for _ in range(2))
        comparison = self.pick(("=", "<", "<=", ">", ">=", "<>", "<=>"))
        return str(self.pick((
            f"{column} {comparison} {first}", f"{column} {comparison} {first}", f"{first} < {column}",
            f"{column} between {first} and {second}", f"{column} in ({first}, {second})", f"{column} is not null",
            f"({column} < {first} or {column} = {second})",
        )))  # fmt: skip

    def _grouped(self, tables: tuple[str, ...], rest: str) -> str:
        keys = [self._key(tables) for _ in range(self.pick((0, 1, 1, 2)))]
        shown = [*keys, *(self._aggregate(tables) for _ in range(self.pick((1, 2, 3))))]
        group = f" group by {', '.join(keys)}" if keys else ""
        having = self.pick(("", "", "", " having count(*) > 1", " having sum(a.x) > 2"))
        text = f"select {_named(shown)} {rest}{group}{having}"
        again = keys and self.pick(range(5)) == 0
        return f"select c0, count(*) as n, max(c{len(keys)}) as m from ({text}) group by c0" if again else text

    def _key(self, tables: tuple[str, ...]) -> str:
        column = self._column(tables)
        others = (f"{self.pick(tables)}.k + 1", f"upper({self.pick(tables)}.g)", f"cast({self.pick(tables)}.t as date)")
        return str(self.pick((column, column, *others)))

    def _aggregate(self, tables: tuple[str, ...]) -> str:
        number, column = self._column(tables, "kxy"), self._column(tables)
        text = self.pick((
            "count(*)", f"count({column})", f"sum({number})", f"avg({number})", f"min({column})", f"max({column})",
            f"count(distinct {column})", f"sum({number} * 2)", f"bool_or({self._column(tables, 'f')})",
            f"avg({self.pick(tables)}.z)",
        ))  # fmt: skip
        return f"{text} filter (where {self._test(tables)})" if self.pick(range(6)) == 0 else str(text)

    def _plain(self, tables: tuple[str, ...], rest: str) -> str:
        shown = [self._column(tables) for _ in range(self.pick((1, 2, 3)))]
        text = f"select {self.pick(('', 'distinct '))}{_named(shown)} {rest}"
        return str(self.pick((text, text, f"select c0, rank() over (order by c0) as r from ({text})", f"{text} union all {text}")))


def _named(shown: list[str]) -> str:
    return ", ".join(f"{each} as c{place}" for place, each in enumerate(shown))
