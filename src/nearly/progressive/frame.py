"""Evolving data frames: answers that can be worked on while they still tighten.

A frame stands for a function of the progress t, 0 <= t <= 1, to rows; at t = 1 the rows are exact. Frames are closed under their
operations: every operation on a frame gives a frame, which evolves in turn (WAKE, "A Step Toward Deep Online Aggregation", section
3). A chain of operations is one query over the tables it began with, so that nothing is computed before an answer is asked for.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa
from sqlglot import exp

from nearly.answer import Answer
from nearly.display.show import show
from nearly.engine.engine import Engine
from nearly.engine.native.python_functions import Columns, columns_of
from nearly.engine.planner import Prepared
from nearly.engine.storage.layouts import Table
from nearly.errors import EngineError, SchemaError, unknown
from nearly.plan.syntax import compose
from nearly.plan.syntax.parse import to_text
from nearly.printing.html import card
from nearly.progressive.evolution import Evolution
from nearly.progressive.frame_properties import clustering_key, key, mutable
from nearly.progressive.measures import Measure
from nearly.progressive.run import Request, Run
from nearly.progressive.user_aggregate import Finish, Steps, UserMeasure

Names = str | Sequence[str]
TableFunction = Callable[[pa.Table], Any]


@dataclass(frozen=True, slots=True)
class FrameWorkspace:
    """Where frames run, and what is asked of their answers."""

    engine: Engine
    request: Request = field(default_factory=Request)

    def frame(self, name: str) -> Frame:
        """The frame of a stored table."""
        info = self.engine.catalog.table(name)
        return Frame(self, compose.table(info.name, info.shown), info)


class Frame:
    """A relation that evolves while its tables are read.

    The first use of `get`, `get_final` or an iteration starts a run in the background; frames made from this one run by themselves.
    """

    def __init__(self, workspace: FrameWorkspace, query: exp.Query, info: Table | None = None) -> None:
        self._workspace = workspace
        self._query = query
        self._info = info
        self._evolution: Evolution | None = None
        self._planned: Prepared | None = None
        self._running_for: Prepared | None = None
        self._starting = threading.Lock()
        if info is None or info.view is not None:
            self._schema = workspace.engine.columns(self._prepared)
        else:
            self._schema = tuple((column.name, column.type) for column in info.columns)
        compose.refuse_repeated(self.columns, "rename or drop one")

    # What it is

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(name for name, _ in self._schema)

    @property
    def schema(self) -> dict[str, str]:
        """Spark's type of every column; it is the same in every answer."""
        return {name: str(type_) for name, type_ in self._schema}

    @property
    def info(self) -> Table:
        """What is known of the stored table whose frame this is: layouts, rows, version."""
        if self._info is None:
            raise SchemaError("only the frame of a table, db.table(name), has info; this one is computed")
        return self._info

    @property
    def sql(self) -> str:
        """The query that the frame stands for."""
        return to_text(self._query)

    def explain(self) -> str:
        """The plan, what runs where, and why."""
        return self._workspace.engine.explain(self._prepared)

    @cached_property
    def mutable(self) -> frozenset[str]:
        """Columns whose values may change while more is read: those that depend on aggregates over rows of several blocks."""
        return mutable(self._prepared, self._run())

    @property
    def constant(self) -> frozenset[str]:
        """Columns whose values never change once their row is there."""
        return frozenset(self.columns) - self.mutable

    @property
    def key(self) -> tuple[str, ...] | None:
        """Columns that identify a row, () when there is at most one row, None when no key is known."""
        return key(self._prepared)

    @property
    def clustering_key(self) -> tuple[str, ...]:
        """Columns whose equal values are read together."""
        return clustering_key(self._prepared)

    # Operations

    def map(self, *columns: str | TableFunction, schema: Mapping[str, str] | pa.Schema | None = None, **derived: str) -> Frame:
        """Columns and expressions: `frame.map("id", total="price * (1 - discount)")`; `"*"` stands for all columns.

        `frame.map(function, schema={"id": "bigint", ...})` gives the rows that a Python function makes of Arrow tables of rows. It
        is called with pieces of the frame, of any size and in any order, so it must treat rows one by one; on a frame with a
        clustering key it may also treat rows of equal keys together.
        """
        if len(columns) == 1 and callable(columns[0]):
            if derived:
                raise SchemaError("map takes a Python function or named expressions, not both; call it twice")
            title = str(getattr(columns[0], "__name__", type(columns[0]).__name__))
            return self._mapped(title, columns[0], columns_of(schema), None)
        if schema is not None:
            raise SchemaError("schema= goes with one Python function: frame.map(function, schema={...})")
        texts = [text for text in columns if isinstance(text, str)]
        if len(texts) < len(columns):
            raise SchemaError("map takes SQL texts, or one Python function with schema=")
        items = [each for text in texts for each in self._items(text)]
        items += [compose.named(self._expression(text), name) for name, text in derived.items()]
        if not items:
            raise SchemaError("map needs at least one column")
        compose.refuse_repeated([each.alias_or_name for each in items], "give one of them another name")
        return self._next(compose.project(self._query, items))

    def select(self, *columns: str) -> Frame:
        """Some of the columns, in this order."""
        if not columns:
            raise SchemaError("select needs at least one column")
        kept = [self._column(name) for name in columns]
        compose.refuse_repeated(kept, "select it once")
        return self._next(compose.project(self._query, [compose.column(name) for name in kept]))

    def drop(self, *columns: str) -> Frame:
        """All columns but these."""
        gone = {self._column(name) for name in columns}
        if len(gone) == len(self.columns):
            raise SchemaError("drop would leave no column")
        return self.select(*(name for name in self.columns if name not in gone))

    def rename(self, names: Mapping[str, str] | None = None, **more: str) -> Frame:
        """Columns under new names: `frame.rename({"old": "new"})` or `frame.rename(old="new")`."""
        renamed = {self._column(old): new for old, new in {**(names or {}), **more}.items()}
        for new in renamed.values():
            if not isinstance(new, str) or not new:
                raise SchemaError(f"a column's name is text, not {new!r}")
        after = [renamed.get(name, name) for name in self.columns]
        compose.refuse_repeated(after, "give it another name")
        items = [compose.named(compose.column(old), new) for old, new in zip(self.columns, after, strict=True)]
        return self._next(compose.project(self._query, items))

    def filter(self, predicate: str) -> Frame:
        """The rows for which a predicate is true; on a mutable column, rows may come and go until it is exact."""
        return self._next(compose.filtered(self._query, self.columns, compose.item(predicate).unalias()))

    def join(self, other: Frame, on: Names | Mapping[str, str], how: str = "inner") -> Frame:
        """Rows of both frames that agree: `on` names columns of both, or maps columns of this one to the other's.

        `how` is inner, left, semi or anti. A key of the same name on both sides is there once.
        """
        self._refuse_other(other)
        if how not in compose.JOINS:
            raise unknown("kind of join", str(how), compose.JOINS)
        wanted = on if isinstance(on, Mapping) else {name: name for name in _names(on)}
        pairs = {self._column(a): other._column(b) for a, b in wanted.items()}
        if not pairs:
            raise SchemaError("join needs at least one column in on=")
        shared = {b for a, b in pairs.items() if a.lower() == b.lower()}
        kept = [] if how in ("semi", "anti") else [name for name in other.columns if name not in shared]
        compose.refuse_repeated([*self.columns, *kept], "rename or drop it in one of the frames before the join")
        items = [compose.column(name, compose.LEFT) for name in self.columns]
        items += [compose.column(name, compose.RIGHT) for name in kept]
        return self._next(compose.joined(self._query, other._query, pairs, how, items))

    def agg(self, by: Names = (), **measures: Measure | UserMeasure) -> Frame:
        """Aggregates by columns: `frame.agg(total=nearly.sum("x"), by="g")`; without `by` over all rows."""
        keys = [each for text in _names(by) for each in self._items(text)]
        for name, measure in measures.items():
            if not isinstance(measure, Measure | UserMeasure):
                raise SchemaError(f"{name}={measure!r} is no aggregate; write for example {name}=nearly.sum('x')")
        if not keys and not measures:
            raise SchemaError("agg needs an aggregate such as total=nearly.sum('x'), or by= for distinct values")
        names = [each.alias_or_name for each in keys]
        compose.refuse_repeated([*names, *measures], "give one of them another name")
        texts = {name: each for name, each in measures.items() if isinstance(each, Measure)}
        users = {name: each for name, each in measures.items() if isinstance(each, UserMeasure)}
        aggregates = [compose.named(compose.item(each.text), name) for name, each in texts.items()]
        if not users:
            return self._next(compose.grouped(self._query, keys, aggregates))
        by_users = self._aggregated(keys, users)
        if not texts:
            return by_users
        items = [compose.column(name, compose.LEFT if name in (*names, *texts) else compose.RIGHT) for name in (*names, *measures)]
        plain = compose.grouped(self._query, keys, aggregates)
        same = {name: name for name in names}
        return self._next(compose.joined(plain, by_users._query, same, "inner", items, null_safe=True))

    def sort(self, *keys: str) -> Frame:
        """The rows in order of columns or expressions; a leading minus is descending: `frame.sort("-total", "name")`."""
        if not keys:
            raise SchemaError("sort needs at least one column")
        return self._next(compose.ordered(self._query, self.columns, [self._sort_key(text) for text in keys]))

    def limit(self, count: int) -> Frame:
        """The first rows; after `sort` the first ones in that order."""
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 2**31:
            raise SchemaError(f"limit {count!r} must be a whole number from 0 to {2**31 - 1}")
        return self._next(compose.limited(self._query, self.columns, count))

    def union(self, other: Frame) -> Frame:
        """The rows of both frames, which must have the same columns in any order; duplicates stay."""
        self._refuse_other(other)
        mine, theirs = ({name.lower() for name in frame.columns} for frame in (self, other))
        if mine != theirs:
            raise SchemaError(f"union of different columns: {', '.join(sorted(mine ^ theirs))} are only in one of the frames")
        sides = [frame.select(*self.columns)._query for frame in (self, other)]
        both = compose.united(sides[0], sides[1])
        return self._next(compose.project(both, [compose.column(name) for name in self.columns]))

    # Answers

    def get(self) -> Answer:
        """The newest answer; the first call starts the run and waits for the first answer."""
        return self._running.first()

    def get_final(self) -> Answer:
        """The exact answer; waits until everything is read."""
        return self._running.final()

    def __iter__(self) -> Iterator[Answer]:
        yield from self._running.answers()

    @property
    def is_final(self) -> bool:
        """Whether the newest answer is the exact one."""
        latest = self._evolution.latest if self._evolution is not None else None
        return latest is not None and latest.exact

    @property
    def progress(self) -> float:
        """The share of the input that the newest answer has seen; 0 before there is one."""
        latest = self._evolution.latest if self._evolution is not None else None
        return 0.0 if latest is None else latest.progress

    @property
    def growth(self) -> float | None:
        """The exponent w of rows(t) = c * t^w, fitted to the answers so far; None before two of them with rows."""
        found = self._evolution.growth if self._evolution is not None else None
        return None if found is None else found.exponent

    def stop(self) -> None:
        """End the run, if there is one; the newest answer stays."""
        if self._evolution is not None:
            self._evolution.stop()

    def live(self) -> Answer:
        """Show the answers as they come, in a notebook or on the terminal, and return the last one; an interrupt stops the run."""
        shown = show(iter(self), self.stop).answer
        if shown is None:
            raise EngineError("the frame was stopped before its first answer")
        return shown

    def __repr__(self) -> str:
        return f"Frame({', '.join(f'{name} {type_}' for name, type_ in self.schema.items())})"

    def _repr_html_(self) -> str:
        """Its columns, and the newest answer where there is one; nothing is run for it."""
        latest = self._evolution.latest if self._evolution is not None else None
        return card("Frame", self.schema, "" if latest is None else latest._repr_html_())

    @property
    def _prepared(self) -> Prepared:
        """The frame's query as planned for its tables as they are now."""
        engine = self._workspace.engine
        if self._planned is None or not engine.planner.is_current(self._planned):
            self._planned = engine.prepare(self.sql)
        return self._planned

    @property
    def _running(self) -> Evolution:
        self._workspace.engine.life.refuse_over()
        with self._starting:
            prepared = self._prepared
            if self._evolution is None or self._running_for is not prepared:
                if self._evolution is not None:
                    self._evolution.stop()
                self._evolution, self._running_for = Evolution(self._run()), prepared
                weakref.finalize(self, self._evolution.stop)
            return self._evolution

    def _run(self) -> Run:
        return Run(self._workspace.engine, self._prepared, self._workspace.request)

    def _next(self, query: exp.Query) -> Frame:
        return Frame(self._workspace, query)

    def _mapped(
        self, title: str, function: TableFunction, gives: Columns, keys: int | None, estimates: tuple[str | None, ...] = ()
    ) -> Frame:
        """What a function makes of this frame's rows."""
        compose.refuse_repeated([name for name, _ in gives], "name each column of schema= once")
        mapped = self._workspace.engine.functions.add_mapped(title, function, self._query, self._schema, gives, keys, estimates)
        return self._next(compose.table(mapped.name, [name for name, _ in gives]))

    def _aggregated(self, keys: Sequence[exp.Expr], users: Mapping[str, UserMeasure]) -> Frame:
        """Aggregates that are written in Python: states of pieces, then their merge."""
        read = [[self._items(text)[0] for text in each.columns] for each in users.values()]
        items = [compose.named(each.unalias().copy(), f"c{place}") for place, each in enumerate([*keys, *chain(*read)])]
        rows = self._next(compose.project(self._query, items))
        width, aggregates = len(keys), tuple(each.aggregate for each in users.values())
        names = tuple(each.alias_or_name for each in chain(*read))
        steps = Steps(aggregates, width, tuple(len(each) for each in read), names)
        title = f"agg({', '.join(users)})"
        states = columns_of({f"c{width + place}": "binary" for place in range(len(users))})
        parts = rows._mapped(title, steps, (*rows._schema[:width], *states), None)
        values = columns_of({f"c{width + place}": each.returns for place, each in enumerate(aggregates)})
        estimates = tuple(each.estimates for each in aggregates)
        merged = parts._mapped(title, Finish(aggregates, width), (*rows._schema[:width], *values), width, estimates)
        shown = [*(each.alias_or_name for each in keys), *users]
        return merged.rename({f"c{place}": name for place, name in enumerate(shown)})

    def _refuse_other(self, other: object) -> None:
        if not isinstance(other, Frame):
            raise SchemaError(f"a frame is expected, not {type(other).__name__}; write db.table(name)")
        if other._workspace.engine is not self._workspace.engine:
            raise SchemaError("the frames are of different sessions")

    def _find(self, name: str) -> str | None:
        return next((each for each in self.columns if each.lower() == name.strip("`").lower()), None)

    def _column(self, name: str) -> str:
        """The column's own spelling of a name given in any case."""
        if not isinstance(name, str):
            raise SchemaError(f"a column's name is text, not {name!r}")
        found = self._find(name)
        if found is None:
            raise unknown("column", name, [each.lower() for each in self.columns])
        return found

    def _items(self, text: str) -> list[exp.Expr]:
        """Select items: a column, an expression with a name, or `*` for all columns."""
        if isinstance(text, str) and text.strip() == "*":
            return [compose.column(name) for name in self.columns]
        found = self._expression(text)
        if not found.alias_or_name:
            raise SchemaError(f"{text!r} needs a name; write name={text!r}, or '{text} AS name'")
        return [found]

    def _expression(self, text: str) -> exp.Expr:
        found = self._find(text) if isinstance(text, str) else None
        return compose.column(found) if found is not None else compose.item(text)

    def _sort_key(self, text: str) -> tuple[exp.Expr, bool]:
        descending = isinstance(text, str) and text.startswith("-") and self._find(text) is None
        return self._expression(text[1:] if descending else text).unalias(), descending


def _names(given: Names) -> Sequence[str]:
    return (given,) if isinstance(given, str) else tuple(given)
