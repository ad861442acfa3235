"""The one answer type: values with bounds."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from nearly.errors import SchemaError, Unsupported
from nearly.printing.chart import Chart, chart
from nearly.printing.echo import echo_is_due
from nearly.printing.frame import TextTable
from nearly.printing.html import html_table, paragraph
from nearly.printing.numbers import percent_text
from nearly.printing.plain import plain_table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

SHOWN_ROWS = 20
SHOWN_WIDTH = 120
MOST_NAMES = 8
"""How much of an answer its text shows."""


class Proof(Protocol):
    """What stands behind bounds that hold for sure: instances that reach them, and what they hang on."""

    def witness(self, end: str, row: int, column: str | int | None, *, counted: bool) -> pa.Table: ...

    def explain(self, row: int, column: str | int | None) -> Any: ...


@dataclass(frozen=True, slots=True)
class UnseenRows:
    """How many rows an answer lacks: an estimate, and the most there may be, infinite where nothing bounds them."""

    estimate: float
    most: float = float("inf")


NO_ROWS = UnseenRows(0.0, 0.0)


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """Values, bounds of the same shape, which rows there are, and how they came about.

    `low` and `high` bound each value with probability `confidence`, are null where nothing can be said, and equal it where it is
    certain; `hard_low` and `hard_high` bound it for sure and are null where nothing is known for sure.

    `complete` says that no row will come or go any more. Else `unseen` tells how many rows may come (None: nothing is known of
    them), and `tentative`, a flag for each row, which of those shown may go (None: none of them).

    `error` is how far the final answer may be from this one: the largest distance from a value to the farther end of its
    interval, relative to the value, or the share of rows that may come or go, whichever is larger. It is infinite where one of
    these has no bound.

    `source` names what answered: native, spark, progressive (an answer on the way), a view or a synopsis. A range over missing rows
    has a `proof` of its ends.
    """

    table: pa.Table
    low: pa.Table
    high: pa.Table
    hard_low: pa.Table
    hard_high: pa.Table
    progress: float
    exact: bool
    confidence: float
    error: float
    source: str
    stats: dict[str, Any] = field(default_factory=dict)
    proof: Proof | None = field(default=None, repr=False, compare=False)
    complete: bool = False
    unseen: UnseenRows | None = None
    tentative: pa.BooleanArray | None = None

    @classmethod
    def exactly(cls, table: pa.Table, source: str, confidence: float = 0.95, stats: dict[str, Any] | None = None) -> Answer:
        """The answer in which every bound equals the value."""
        bounds = (table, table, table, table)
        return cls(table, *bounds, 1.0, True, confidence, 0.0, source, stats or {}, complete=True, unseen=NO_ROWS)

    def to_pandas(self, bounds: bool = False) -> pd.DataFrame:
        """The values as a pandas frame; with `bounds`, each column is followed by its `_low` and `_high`."""
        return self.to_arrow(bounds).to_pandas()

    def to_polars(self, bounds: bool = False) -> pl.DataFrame:
        """The values as a polars frame; with `bounds`, each column is followed by its `_low` and `_high`."""
        frame: pl.DataFrame = loaded("polars", "to_polars").from_arrow(self.to_arrow(bounds))
        return frame

    def to_spark(self, spark: Any = None, bounds: bool = False) -> Any:
        """The values as a DataFrame of a Spark session, such as `db.spark`; without one, of the session that is active here."""
        if spark is None:
            active = getattr(sys.modules.get("pyspark.sql"), "SparkSession", None)
            spark = None if active is None else active.getActiveSession()
        if spark is None:
            raise SchemaError("there is no active Spark session; write answer.to_spark(db.spark)")
        return spark.createDataFrame(self.to_arrow(bounds))

    def to_arrow(self, bounds: bool = False) -> pa.Table:
        """The values; with `bounds`, each column is followed by its `_low` and `_high`."""
        if not bounds:
            return self.table
        columns, names = [], []
        for place, name in enumerate(self.table.column_names):
            columns += [self.table.column(place), self.low.column(place), self.high.column(place)]
            names += [name, f"{name}_low", f"{name}_high"]
        return pa.Table.from_arrays(columns, names=names)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The values as a stream of Arrow's C interface: `polars.DataFrame(answer)`, `pyarrow.table(answer)`, `from answer`."""
        return self.table.__arrow_c_stream__(requested_schema)

    def plot(self, y: str | None = None, x: str | None = None) -> Chart:
        """A drawing of the answer with its intervals: lines over times and numbers, else bars; `x` and `y` name columns."""
        return chart(self.table, self.low, self.high, x, y)

    @property
    def state(self) -> str:
        """How good the answer is, in a few words."""
        if self.exact:
            return "exact"
        error = f"{self.told_error} at {percent_text(self.confidence)} confidence"
        return ", ".join([f"{percent_text(self.progress)} read", error, *([self.lacks] if self.lacks else [])])

    @property
    def told_error(self) -> str:
        """The error in words; where only rows that may come or go have no bound, that of the rows shown."""
        shown = self.stats.get("shown_error", self.error)
        if isfinite(self.error) or not isfinite(shown):
            return f"error {percent_text(self.error)}"
        return f"error {percent_text(shown)} in the rows shown"

    @property
    def lacks(self) -> str:
        """What may change about the rows of the answer, in a few words; empty when nothing will."""
        if self.complete:
            return ""
        parts = []
        if self.unseen is None:
            parts.append("rows may be missing")
        elif self.unseen.most > 0:
            about = f"about {self.unseen.estimate:,.0f}" if self.unseen.estimate >= 0.5 else "few or no"
            most = f" (at most {self.unseen.most:,.0f})" if isfinite(self.unseen.most) else ""
            parts.append(f"{about} rows missing{most}")
        going = self.tentative.true_count if self.tentative is not None else 0
        if going:
            parts.append("rows may still go" if going == self.table.num_rows else f"{going:,} rows may still go")
        return ", ".join(parts)

    def witness(self, end: str = "high", *, row: int = 0, column: str | int | None = None, counted: bool = False) -> pa.Table:
        """Missing rows with which a cell takes the `low` or `high` end of its range; `counted` lists equal rows once."""
        return self._proof.witness(end, row, column, counted=counted)

    def explain(self, *, row: int = 0, column: str | int | None = None) -> Any:
        """Which constraints bind the range of a cell, and how much it would shrink if each were tighter."""
        return self._proof.explain(row, column)

    @property
    def _proof(self) -> Proof:
        if self.proof is None:
            raise Unsupported("only the answer of a range over missing rows has a witness and an explanation; ask query.range()")
        return self.proof

    def __repr__(self) -> str:
        """One line: how many rows of which columns, how good, and where from."""
        names = ", ".join(self.table.column_names[:MOST_NAMES]) + (", ..." if self.table.num_columns > MOST_NAMES else "")
        return f"<Answer: {self._counted} of ({names}), {self.state}, from {self.source}>"

    def _repr_html_(self) -> str:
        frame = TextTable.of(self.table, self.low, self.high, SHOWN_ROWS)
        notes = f"... {', '.join(frame.notes)}; " if frame.notes else ""
        return f"<div>{html_table(frame)}{paragraph(f'{notes}{self._counted}, {self.state}, from {self.source}')}</div>"

    def _ipython_display_(self) -> None:
        """Shown in a notebook as a table, unless the same cell has just drawn it."""
        if echo_is_due(self):
            display = loaded("IPython.display", "IPython")
            display.display({"text/plain": str(self), "text/html": self._repr_html_()}, raw=True)

    @property
    def _counted(self) -> str:
        return "1 row" if self.table.num_rows == 1 else f"{self.table.num_rows:,} rows"

    def __str__(self) -> str:
        """A table with the interval of each uncertain value, then how good it is and where it comes from."""
        shown = TextTable.of(self.table, self.low, self.high, SHOWN_ROWS).fitted(SHOWN_WIDTH)
        return f"{plain_table(shown)}\n({self._counted}, {self.state}, from {self.source})"


def loaded(module: str, what: str) -> Any:
    """A module that is no dependency of nearly; a clear error where it is not there."""
    try:
        return import_module(module)
    except ImportError:
        raise Unsupported(f"{what} needs the package {module.partition('.')[0]}, which is not installed") from None


def relative_error(value: Any, low: Any, high: Any) -> float:
    """How far the farther end of an interval is from the value, relative to that.

    It is 0 where both ends are the value, and infinite where one is not known or the value is 0.

    >>> relative_error(100, 90, 130), relative_error(0, 0, 0), relative_error(5, None, 7)
    (0.3, 0.0, inf)
    """
    if value is None or low is None or high is None:
        return inf
    if low == value == high:
        return 0.0
    try:
        middle = Fraction(value)
        reach = max(middle - Fraction(low), Fraction(high) - middle)
    except (TypeError, ValueError, OverflowError):  # no number, or no end
        return inf
    return float(reach / abs(middle)) if middle else inf
