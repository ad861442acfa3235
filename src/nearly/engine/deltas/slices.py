"""Rows of large tables by key, read once: stages ask for the same keys of a table again and again, in both of its versions.

A slice has all rows of a table whose value in one column is among some keys; it grows when keys are asked for that it lacks. Of a
table that moved the present version is read, and the one before is made of it by what came and went. Of a table that the plan reads
a sample of, a slice has the rows in the sample.
Law: a semi join over a slice that has its keys gives what it gives over the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from nearly.engine.deltas.lookups import MOST_LOOKED_UP, KeyLookup, equality, is_part
from nearly.engine.deltas.neighbours import Neighbours
from nearly.engine.deltas.reading import TableReader
from nearly.engine.deltas.workspace import Workspace
from nearly.engine.jobs.native_kernel import STATIC_ROWS
from nearly.engine.native.pieces import blocks_with
from nearly.plan.expressions import Call, Column, conjuncts
from nearly.plan.nodes import Input, Join, Output, Plan, Project, Scan
from nearly.plan.quoting import native_name
from nearly.plan.types import DATE, DOUBLE, FLOAT, INTEGERS
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
    """The temporary tables of a slice: its rows, and the keys it has."""

    rows: str
    keys: str


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
        name, table = scan.table.lower(), self.tables.kernel.catalog.table(scan.table)
        is_alone = all(field.source == column for field in scan.fields) and len(self.tables.columns_of(table)) > 1
        if not is_alone or (name, column) in self._made:
            return True
        if table.column(column).type not in (*INTEGERS, DATE) or self.rows.get(keys.rows, 0) > MOST_LOOKED_UP:
            return False
        self.show_changes()
        values = [value for (value,) in self.space.execute(keys.distinct)]
        return is_part(blocks_with(table.base.blocks, column, values), table)

    def _slice(self, scan: Scan, column: str, keys: KeyTable) -> Plan:
        """A scan over the slice that has these keys."""
        self.show_changes()
        made = self._having(scan.table.lower(), column, keys)
        read = tuple(dict.fromkeys(Column(each.type, each.source) for each in scan.fields))
        outputs = tuple(Output(each.name, Column(each.type, each.source)) for each in scan.fields)
        return Project(Input(made.rows, read), outputs)

    def _having(self, table: str, column: str, keys: KeyTable) -> _Slice:
        """The slice of a table by a column, which has the rows of these keys; of a table as it was, made from that as it is."""
        newer = self._newer(table)
        now = self._having(newer, column, keys) if newer is not None else None
        made = self._made.get((table, column))
        if made is None:
            made = self._begun(table, column, keys, now)
            self._made[table, column] = made
        else:
            self._grow(made, table, column, keys)
        return made

    def _newer(self, table: str) -> str | None:
        """The present version of a table that is asked for as it was; doubles are read, since 0.0 would be taken for -0.0."""
        for name, moved in self.tables.moved.items():
            if table == moved.names.before.lower() and moved.parts:
                columns = self.tables.columns_of(moved.after)
                return None if any(moved.after.column(each).type in (FLOAT, DOUBLE) for each in columns) else name
        return None

    def _begun(self, table: str, column: str, keys: KeyTable, now: _Slice | None) -> _Slice:
        made = _Slice(f"slice {len(self._made)} of {table}", f"keys {len(self._made)} of {table}")
        if now is not None:
            self.space.keep(made.keys, f"SELECT k FROM {native_name(now.keys)}")
            self.space.keep(made.rows, self._as_it_was(table, column, made.keys, now))
            return made
        neighbours, known = Neighbours(self.tables, self.space, self.rows), domain(keys.rows, keys.column, self.plans)
        around = neighbours.around(table, column, known, self.rows.get(keys.rows, 0)) if known is not None else None
        count = self.space.keep(made.keys, keys.distinct if around is None else around.keys)
        if around is not None:
            self.space.keep_given(made.rows, neighbours.keep(around, made.keys))
        else:
            self.space.keep(made.rows, self._rows(table, column, made.keys, count))
        return made

    def _grow(self, made: _Slice, table: str, column: str, keys: KeyTable) -> None:
        """Have the rows of further keys."""
        own, more = native_name(made.keys), f"more {made.keys}"
        lacking = f"SELECT n.k FROM ({keys.distinct}) AS n ANTI JOIN {own} AS o ON n.k IS NOT DISTINCT FROM o.k"
        count = self.space.keep(more, lacking)
        if count:
            newer = self._newer(table)
            now = None if newer is None else self._made[newer, column]
            rows = self._rows(table, column, more, count) if now is None else self._as_it_was(table, column, more, now)
            self.space.execute(f"INSERT INTO {native_name(made.rows)} {rows}")
            self.space.execute(f"INSERT INTO {own} SELECT k FROM {native_name(more)}")

    def _rows(self, name: str, column: str, keys: str, count: int) -> str:
        """The rows of a table with some keys, as far as the plan looks at them."""
        table = self.tables.kernel.catalog.table(name)
        files = self.tables.files.get(name.lower())
        wanted = KeyLookup(self.tables.kernel.reader, self.space, table, column, keys)
        return self.tables.sampled(name, wanted.rows(self.tables.columns_of(table), count, files))

    def _as_it_was(self, table: str, column: str, keys: str, now: _Slice) -> str:
        """The rows with some keys in the version before, from those of the present one, which has the keys, and the change."""
        moved = next(each for each in self.tables.moved.values() if each.names.before.lower() == table)
        names = ", ".join(native_name(each) for each in self.tables.columns_of(moved.after))
        weight = native_name(WEIGHT)  # no table of a view has a column of this name
        both = (
            f"SELECT {names}, 1 AS {weight} FROM {native_name(now.rows)} UNION ALL "
            f"SELECT {names}, -{weight} AS {weight} FROM {native_name(moved.names.source)}"
        )
        test = f"s.{native_name(column)} {equality(self.space, keys)} n.k"
        matching = f"SELECT s.* FROM ({both}) AS s SEMI JOIN {native_name(keys)} AS n ON {test}"
        net = f"SELECT {names}, sum({weight})::BIGINT AS {weight} FROM ({matching}) GROUP BY ALL HAVING sum({weight}) > 0"
        return f"SELECT {names} FROM (SELECT {names}, unnest(range({weight})) FROM ({net}))"


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
