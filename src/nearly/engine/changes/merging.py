"""MERGE INTO: one join of the table with the source says for each row which clause applies, and what it becomes.

Law: of the clauses of a kind, the first whose condition is true applies to a row, and no other. A row of the table that several
rows of the source match is an error, unless it can only be deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from nearly.engine.changes.batch_files import Change
from nearly.engine.changes.finding import stored_rows
from nearly.engine.changes.operations import Changer
from nearly.engine.changes.row_files import FiledRows, ManyRows, batches_of, collected
from nearly.engine.native.places import Positions
from nearly.engine.native.reading import FILE, ROW
from nearly.errors import SchemaError
from nearly.plan.quoting import native_name
from nearly.plan.schema import SchemaColumn
from nearly.plan.syntax.statements import (
    DELETE,
    INSERT,
    MATCHED,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    UPDATE,
    MergeClause,
    MergeInto,
)

_HERE, _THERE, _CLAUSE, _NEW, _FOUND = "nearly_here", "nearly_there", "nearly_clause", "nearly_new_{}", "nearly_found"


def _is_there(mark: str, side: str) -> exp.Expr:
    return exp.Not(this=exp.Is(this=exp.column(mark, table=side, quoted=True), expression=exp.Null()))


_LOOKED_AT = exp.or_(_is_there(_CLAUSE, _FOUND), exp.and_(_is_there(_HERE, _FOUND), _is_there(_THERE, _FOUND)))
"""Rows to which a clause applies, and those that are matched: they are counted."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """A clause with its place, and the value of every column where it makes a row."""

    place: int
    clause: MergeClause
    condition: exp.Expr | None
    values: dict[str, exp.Expr]


def merge(changer: Changer, statement: MergeInto) -> Change:
    """What a merge does to a table."""
    return _Merge(changer, statement).change()


@dataclass(frozen=True, slots=True)
class _Merge:
    changer: Changer
    statement: MergeInto

    def change(self) -> Change:
        query = self._query([self._bound(*each) for each in enumerate(self.statement.clauses)])
        found = self.changer.finder.gather(query, self.changer.directory / "found")
        change = self._of_files(found) if isinstance(found, FiledRows) else self._of_rows(found)
        if self.changer.table.key and change.came is not None and change.places is not None and self._may_change_keys:
            self.changer.refuse_taken_keys(change.came, change.places, "merged")
        return change

    def _of_rows(self, found: pa.Table) -> Change:
        found, parts = self._parts(found)
        places = pa.concat_tables([parts[UPDATE], parts[DELETE]])
        came = pa.concat_tables([parts[UPDATE], parts[INSERT]])
        table, first = self.changer.table, found.schema.get_field_index(_CLAUSE) + 1
        after = stored_rows(table, came, first) if self._makes_rows else None
        return Change("merge", after, stored_rows(table, places), Positions.of(places), parts[UPDATE].num_rows)

    def _of_files(self, found: FiledRows) -> Change:
        """The same where the rows found are many: what happens to each is looked at in memory, the rows stay in files."""
        table, changer = self.changer.table, self.changer
        names = dict.fromkeys([*(table.key or table.column_names)[:3], FILE, ROW, _HERE, _THERE, _CLAUSE])
        _, parts = self._parts(found.select(list(names)))
        places = Positions.of(pa.concat_tables([parts[UPDATE], parts[DELETE]]))
        change = Change("merge", None, None, places, parts[UPDATE].num_rows)
        if self._makes_rows:
            made = [_NEW.format(place) for place in range(len(table.columns))]
            change = replace(change, came=self._taken(found, made, (UPDATE, INSERT), changer.stem))
        if change.is_mixed or len(table.layouts) > 1:
            change = replace(change, went=self._taken(found, table.column_names, (UPDATE, DELETE), changer.directory / "went"))
        found.remove()
        return change

    def _taken(self, found: FiledRows, names: Sequence[str], actions: tuple[str, str], stem: Path) -> ManyRows:
        """Some columns of the rows found that clauses of two kinds apply to: first those of one, in the order of their places."""
        first, both = self._places(actions[0]), [*self._places(actions[0]), *self._places(actions[1])]
        columns = ", ".join(native_name(name) for name in names)
        once = f"row_number() OVER (PARTITION BY {FILE}, {ROW}) = 1 OR {FILE} IS NULL"  # what is deleted may be found twice
        query = (
            f"SELECT {columns} FROM {found.source} WHERE {_CLAUSE} IN ({_listed(both)}) QUALIFY {once} "
            f"ORDER BY {_CLAUSE} NOT IN ({_listed(first)}), {FILE}, {ROW}"
        )
        return collected(batches_of(self.changer.engine, query), self.changer.table, stem, held=0)

    def _parts(self, found: pa.Table) -> tuple[pa.Table, dict[str, pa.Table]]:
        """What was found, each row once and in the order of their places; and by what happens to them."""
        found = self._once(found).sort_by([(FILE, "ascending"), (ROW, "ascending")])
        return found, {action: found.filter(self._applies(found, action)) for action in (UPDATE, DELETE, INSERT)}

    @property
    def _makes_rows(self) -> bool:
        return any(clause.action != DELETE for clause in self.statement.clauses)

    @property
    def _may_change_keys(self) -> bool:
        keys = {name.lower() for name in self.changer.table.key}
        return any(
            clause.action == INSERT or clause.assignments is None or keys & {name.lower() for name, _ in clause.assignments}
            for clause in self.statement.clauses
            if clause.action != DELETE
        )

    def _applies(self, found: pa.Table, action: str) -> pa.Array:
        return pc.is_in(found[_CLAUSE].cast(pa.int64()), value_set=pa.array(self._places(action), pa.int64()))

    def _places(self, action: str) -> list[int]:
        """Which clauses do something."""
        return [place for place, clause in enumerate(self.statement.clauses) if clause.action == action]

    def _once(self, found: pa.Table) -> pa.Table:
        """The rows found, each of the table once."""
        matched = [clause for clause in self.statement.clauses if clause.kind == MATCHED]
        here = found.filter(pc.and_(pc.is_valid(found[_HERE]), pc.is_valid(found[_THERE])))
        places = np.stack([here[FILE].to_numpy(), here[ROW].to_numpy()]).astype(np.int64)
        different, first, times = np.unique(places, axis=1, return_index=True, return_counts=True)
        if not matched or different.shape[1] == here.num_rows:
            return found
        if len(matched) > 1 or matched[0].action != DELETE or matched[0].condition is not None:
            names = self.changer.table.key or self.changer.table.column_names
            row = here.slice(int(first[times > 1][0]), 1).to_pylist()[0]
            told = ", ".join(f"{name} = {row[name]!r}" for name in names[:3])
            raise SchemaError(
                f"the row with {told} of table {self.changer.table.name!r} is matched by {int(times.max())} rows of the source; "
                f"nothing was changed, make the source have one row for each"
            )
        others = found.filter(pc.invert(pc.and_(pc.is_valid(found[_HERE]), pc.is_valid(found[_THERE]))))
        return pa.concat_tables([here.take(pa.array(np.sort(first))), others])

    def _bound(self, place: int, clause: MergeClause) -> _Bound:
        """A clause whose expressions see what they may see, with values as the columns hold them."""
        scope, finder = self._scope(clause.kind), self.changer.finder
        conditions = [] if clause.condition is None else [clause.condition]
        finder.refuse_no_condition(scope, conditions)
        given = self._assigned(clause)
        values = dict(zip((column.name for column, _ in given), finder.stored(scope, given), strict=True))
        side = self.statement.source_alias if clause.kind == NOT_MATCHED else self.statement.alias
        told = clause.kind != MATCHED
        return _Bound(
            place, clause, _qualified(clause.condition, side) if told and clause.condition is not None else clause.condition,
            {name: _qualified(value, side) if told else value for name, value in values.items()},
        )  # fmt: skip

    def _assigned(self, clause: MergeClause) -> list[tuple[SchemaColumn, exp.Expr]]:
        table = self.changer.table
        if clause.assignments is None:
            alias = self.statement.source_alias
            return [(column, exp.column(column.name, table=alias, quoted=True)) for column in table.columns]
        return [(table.column(name), value) for name, value in clause.assignments]

    def _scope(self, kind: str) -> exp.Select:
        """A query without items over what the clauses of a kind see."""
        target, source = self.changer.finder.target(self.statement.alias), self.statement.source.copy()
        query = exp.Select(from_=exp.From(this=source if kind == NOT_MATCHED else target))
        if kind == MATCHED:
            query.append("joins", exp.Join(this=source, kind="CROSS"))
        return self._with_common(query)

    def _with_common(self, query: exp.Select) -> exp.Select:
        if self.statement.common is not None:
            query.set("with_", self.statement.common.copy())
        return query

    def _query(self, clauses: Sequence[_Bound]) -> exp.Select:
        """Rows of the table and of the source that belong together, as far as clauses look at them, and what becomes of them."""
        statement, table = self.statement, self.changer.table
        here = exp.column(_HERE, table=statement.alias, quoted=True)
        there = exp.column(_THERE, table=statement.source_alias, quoted=True)
        items = [*self.changer.finder.own(statement.alias), here, there]
        chosen = self._chosen(clauses, lambda each: exp.Literal.number(each.place)) or _null("int")
        items.append(exp.alias_(exp.Cast(this=chosen, to=exp.DataType.build("int")), _CLAUSE))
        if any(each.clause.action != DELETE for each in clauses):
            items += [self._new(clauses, place, column) for place, column in enumerate(table.columns)]
        sides = self._sides()
        kinds = {clause.kind for clause in statement.clauses}
        first, second = sides if NOT_MATCHED_BY_SOURCE in kinds else sides[::-1]
        words = {"kind": "INNER"}
        if NOT_MATCHED_BY_SOURCE in kinds or NOT_MATCHED in kinds:
            words = {"side": "FULL" if NOT_MATCHED_BY_SOURCE in kinds and NOT_MATCHED in kinds else "LEFT"}
        joined = exp.Select(expressions=items, from_=exp.From(this=first))
        joined.append("joins", exp.Join(this=second, on=statement.on.copy(), **words))
        found = exp.Subquery(this=joined, alias=exp.TableAlias(this=exp.to_identifier(_FOUND)))
        return self._with_common(
            exp.Select(expressions=[exp.Star()], from_=exp.From(this=found), where=exp.Where(this=_LOOKED_AT.copy()))
        )

    def _sides(self) -> tuple[exp.Expr, exp.Expr]:
        """The table and the source, each row with a mark that an outer join leaves out."""
        statement = self.statement
        found = []
        for source, alias, mark in (
            (self.changer.finder.target(statement.alias), statement.alias, _HERE),
            (statement.source.copy(), statement.source_alias, _THERE),
        ):
            marked = exp.Select(expressions=[exp.Star(), exp.alias_(exp.true(), mark)], from_=exp.From(this=source))
            found.append(exp.Subquery(this=marked, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))))
        return found[0], found[1]

    def _new(self, clauses: Sequence[_Bound], place: int, column: SchemaColumn) -> exp.Expr:
        """What a column becomes; an update keeps what it does not set."""
        old = exp.column(column.name, table=self.statement.alias, quoted=True)

        def value(each: _Bound) -> exp.Expr | None:
            if each.clause.action == DELETE:
                return None
            kept = old if each.clause.action == UPDATE else None
            return each.values.get(column.name, kept)

        chosen = self._chosen(clauses, value) or _null(str(column.type))
        return exp.alias_(chosen, _NEW.format(place))

    def _chosen(self, clauses: Sequence[_Bound], value: Callable[[_Bound], exp.Expr | None]) -> exp.Expr | None:
        """The value that the clause which applies to a row gives; clauses of other kinds are not even looked at."""
        here, there = _is_there(_HERE, self.statement.alias), _is_there(_THERE, self.statement.source_alias)
        tests = {MATCHED: exp.and_(here, there), NOT_MATCHED_BY_SOURCE: here, NOT_MATCHED: there}
        branches = []
        for kind, test in tests.items():
            mine = [each for each in clauses if each.clause.kind == kind]
            inner = _cases([(each.condition if each.condition is not None else exp.true(), value(each)) for each in mine])
            if any(each.clause.kind == kind for each in clauses) or kind == MATCHED:
                branches.append((test, inner))
        return _cases(branches)


def _listed(places: Sequence[int]) -> str:
    """Numbers for IN, which takes at least one."""
    return ", ".join(map(str, [-1, *places]))


def _cases(branches: Sequence[tuple[exp.Expr, exp.Expr | None]]) -> exp.Expr | None:
    """CASE with a value for the first condition that is true; None where every value is null."""
    if all(value is None for _, value in branches):
        return None
    ifs = [exp.If(this=test.copy(), true=exp.Null() if value is None else value.copy()) for test, value in branches]
    return exp.Case(ifs=ifs)


def _null(type_: str) -> exp.Expr:
    return exp.Cast(this=exp.Null(), to=exp.DataType.build(type_, dialect="spark"))


def _qualified(node: exp.Expr, side: str) -> exp.Expr:
    """An expression whose plain columns are those of one side; inside subqueries, names are found as ever."""
    found = exp.Paren(this=node.copy())
    for column in list(found.find_all(exp.Column)):
        if not column.table and column.find_ancestor(exp.Query) is None:
            column.set("table", exp.to_identifier(side, quoted=True))
    return found
