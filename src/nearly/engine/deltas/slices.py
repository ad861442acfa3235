"""Rows of large tables by key, read once: stages ask for the same keys of a table again and again, in both of its versions.

A slice has all rows of a table whose value in one column is among some keys; it grows when keys are asked for that it lacks. Of a
table that moved it has the rows that stayed: with those that came they are the present ones, with those that went the ones before.
Of a table that the plan reads a sample of, a slice has the rows in the sample.
Law: a semi join over a slice that has its keys gives what it gives over the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from nearly.engine.deltas.lookups import MOST_LOOKED_UP, KeyLookup, blocks_of, is_part
from nearly.engine.deltas.neighbours import Around, Neighbours
from nearly.engine.deltas.reading import TableReader
from nearly.engine.deltas.workspace import Workspace
from nearly.engine.jobs.native_kernel import STATIC_ROWS
from nearly.engine.native.pieces import blocks_with
from nearly.engine.storage.differences import stayed
from nearly.engine.storage.layouts import Table
from nearly.plan.expressions import Call, Column, Literal, conjuncts
from nearly.plan.nodes import Filter, Input, Join, Output, Plan, Project, Scan, SetOperation
from nearly.plan.quoting import native_name
from nearly.plan.types import BOOLEAN, DATE, INTEGERS, LONG
from nearly.rewrite.delta.changed import WEIGHT
from nearly.rewrite.delta.domains import domain
from nearly.rewrite.delta.sharpen import origin

MOST_KEYS = 0.1
"""A slice is made for keys that are fewer than this share of the table's rows: for more, its rows are most of the table."""


@dataclass(frozen=True, slots=True)
class KeyTable:
    """Where keys are: a temporary table, and its column."""

    rows: str
    column: str

    @property
    def distinct(self) -> str:
        return f"SELECT DISTINCT {native_name(self.column)} AS k FROM {native_name(self.rows)}"


@dataclass(frozen=True, slots=True)
class _Slice:
    """The tables of a slice: its rows, and the keys it has, which are those `around` a change, where this is known, and others."""

    rows: str
    keys: str
    around: Around | None = None


@dataclass(frozen=True, slots=True)
class _Lying:
    """A table that is sliced, or some of its files, and which rows of a change these lack: those with weights above or below 0."""

    table: Table
    files: tuple[str, ...] | None = None
    change: str | None = None
    sign: str = ">"

    @property
    def name(self) -> str:
        return self.table.name.lower()


@dataclass(slots=True)
class Slices:
    """The slices that the stages of one delta asked for."""

    tables: TableReader
    space: Workspace
    rows: Mapping[str, int]
    """Rows of the stages that have run and have some."""
    plans: Mapping[str, Plan]
    """The plans of these stages."""
    show_changes: Callable[[], None]
    """Lets changes be read by name."""
    _made: dict[tuple[str, str], _Slice] = field(default_factory=dict)
    _lying: dict[str, _Lying] = field(default_factory=dict)
    _with_keys: set[str] = field(default_factory=set)
    """The tables of keys that are there."""
    _empty: set[str] = field(default_factory=set)

    def applied(self, plan: Plan) -> Plan:
        """The plan with slices in the place of large tables that are asked for keys only."""

        def change(node: Plan) -> Plan:
            if isinstance(node, Join) and node.kind == "semi" and isinstance(node.left, Scan):
                asked = _asked(node, node.left)
                if asked is not None and self._is_large(node.left.table, asked[1]) and self._is_worth_it(node.left, *asked):
                    return replace(node, left=self._slice(node.left, *asked))
            return node

        return plan.transform(change)

    def _is_large(self, table: str, keys: KeyTable) -> bool:
        rows = self.tables.kernel.catalog.table(table).rows
        return rows > STATIC_ROWS and self.rows.get(keys.rows, rows) < MOST_KEYS * rows

    def _is_worth_it(self, scan: Scan, column: str, keys: KeyTable) -> bool:
        """Whether a slice spares more than it takes: keys alone are read quicker than rows, save in few blocks."""
        lying = self._lies(scan.table)
        is_alone = all(field.source == column for field in scan.fields) and len(self.tables.columns_of(lying.table)) > 1
        if not is_alone or (lying.name, column) in self._made:
            return True
        if lying.table.column(column).type not in (*INTEGERS, DATE) or self.rows.get(keys.rows, 0) > MOST_LOOKED_UP:
            return False
        self.show_changes()
        values = [value for (value,) in self.space.execute(keys.distinct)]
        blocks = blocks_of(lying.table, lying.files)
        return is_part(blocks_with(blocks, column, values), blocks)

    def _lies(self, name: str) -> _Lying:
        """What is sliced for a table: of both versions of one that moved, where files tell it, the rows that stayed."""
        if name.lower() not in self._lying:
            self._lying[name.lower()] = self._found(name.lower())
        return self._lying[name.lower()]

    def _found(self, name: str) -> _Lying:
        for now, moved in self.tables.moved.items():
            signs = {now: ">", moved.names.before.lower(): "<"}
            files = stayed(moved.before, moved.after) if name in signs and moved.names.source in self.rows else None
            if files is not None:
                return _Lying(moved.after, files, moved.names.source, signs[name])
        return _Lying(self.tables.kernel.catalog.table(name), self.tables.files.get(name))

    def _slice(self, scan: Scan, column: str, keys: KeyTable) -> Plan:
        """A scan over the slice that has these keys, and over what it lacks of a change."""
        self.show_changes()
        lying = self._lies(scan.table)
        made = self._having(lying, column, keys)
        read = tuple(dict.fromkeys(Column(each.type, each.source) for each in scan.fields))
        outputs = tuple(Output(each.name, Column(each.type, each.source)) for each in scan.fields)
        rows = Project(Input(made.rows, read), outputs)
        if lying.change is None:
            return rows
        weight = Column(LONG, WEIGHT)
        others = Filter(Input(lying.change, (*read, weight)), Call(BOOLEAN, lying.sign, (weight, Literal(LONG, 0))))
        moved = Project(others, outputs)
        return moved if made.rows in self._empty else SetOperation(rows, moved, "union", True, scan.columns)

    def _having(self, lying: _Lying, column: str, keys: KeyTable) -> _Slice:
        """The slice of a table by a column, which has the rows of these keys."""
        known = (lying.name, column)
        made = self._made.get(known)
        if made is None:
            self._made[known] = self._begun(lying, column, keys)
        elif not self._has(made, keys):
            self._made[known] = self._grown(made, lying, column, keys)
        return self._made[known]

    @property
    def _neighbours(self) -> Neighbours:
        return Neighbours(self.tables, self.space, self.rows)

    def _has(self, made: _Slice, keys: KeyTable) -> bool:
        """Whether a slice is known to have some keys."""
        known = domain(keys.rows, keys.column, self.plans)
        return made.around is not None and known is not None and self._neighbours.has(made.around, known)

    def _begun(self, lying: _Lying, column: str, keys: KeyTable) -> _Slice:
        known, asked = domain(keys.rows, keys.column, self.plans), self.rows.get(keys.rows, 0)
        around = None if known is None else self._neighbours.around(lying.table, lying.files, column, known, asked)
        number = len(self._made)
        made = _Slice(f"slice {number} of {lying.name}", f"keys {number} of {lying.name}", around)
        if around is None:
            count = self.space.keep(made.keys, keys.distinct)
            self._with_keys.add(made.keys)
            self._note(made, self.space.keep(made.rows, self._rows(lying, column, made.keys, count)))
        else:
            found = self._neighbours.keep(around, lambda: self._keys(made))
            self.space.show(made.rows, found)
            self._note(made, found.num_rows)
        return made

    def _note(self, made: _Slice, rows: int) -> None:
        if not rows:
            self._empty.add(made.rows)

    def _keys(self, made: _Slice) -> str:
        """The table of a slice's keys, which nobody may need."""
        if made.around is not None and made.keys not in self._with_keys:
            self.space.keep(made.keys, made.around.keys)
            self._with_keys.add(made.keys)
        return made.keys

    def _grown(self, made: _Slice, lying: _Lying, column: str, keys: KeyTable) -> _Slice:
        """A slice with the rows of further keys, too."""
        own, more = native_name(self._keys(made)), f"more {made.keys}"
        lacking = f"SELECT n.k FROM ({keys.distinct}) AS n ANTI JOIN {own} AS o ON n.k IS NOT DISTINCT FROM o.k"
        count = self.space.keep(more, lacking)
        if not count:
            return made
        grown = _Slice(f"{made.rows} and more", f"{made.keys} and more", made.around)
        columns = ", ".join(map(native_name, self.tables.columns_of(lying.table)))
        further = self._rows(lying, column, more, count)
        rows = f"SELECT {columns} FROM {native_name(made.rows)} UNION ALL SELECT {columns} FROM ({further})"
        self._note(grown, self.space.keep(grown.rows, rows))
        self.space.keep(grown.keys, f"SELECT k FROM {own} UNION ALL SELECT k FROM {native_name(more)}")
        self._with_keys.add(grown.keys)
        return grown

    def _rows(self, lying: _Lying, column: str, keys: str, count: int) -> str:
        """The rows of a table with some keys, as far as the plan looks at them."""
        wanted = KeyLookup(self.tables.kernel.reader, self.space, lying.table, column, keys, lying.files)
        return self.tables.sampled(lying.table.name, wanted.rows(self.tables.columns_of(lying.table), count))


def _asked(node: Join, scan: Scan) -> tuple[str, KeyTable] | None:
    """The column of a table that must be among some keys, and where these are."""
    for part in conjuncts(node.condition):
        if isinstance(part, Call) and part.function in ("=", "<=>"):
            for mine, theirs in (part.arguments, part.arguments[::-1]):
                if isinstance(mine, Column) and isinstance(theirs, Column) and mine.name in scan.names:
                    keys = origin(node.right, theirs.name)
                    source = next(each.source for each in scan.fields if each.name == mine.name)
                    if keys is not None:
                        return source, KeyTable(*keys)
    return None
