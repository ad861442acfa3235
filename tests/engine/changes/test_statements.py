"""Random statements over small tables, against a plain model of rows in Python and against DuckDB's own tables."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.engine.changes import row_files
from tests.fixtures.driver_only import driver_only

NAMES = ("k", "größe", "d d", "s")
SCHEMA = pa.schema(list(zip(NAMES, (pa.int64(), pa.float64(), pa.decimal128(12, 2), pa.string()), strict=True)))
Row = tuple[Any, ...]
Rows = dict[str, Row]
"""The rows that an expression sees, by the alias of their table."""


@dataclass(frozen=True)
class Expr:
    """An expression as SQL and as a function of rows."""

    sql: str
    of: Callable[[Rows], Any]


@dataclass(frozen=True)
class Clause:
    kind: str
    condition: Expr | None
    action: str
    values: dict[int, Expr]
    star: bool = False


class Wrong(Exception):
    """The model refuses a statement."""


def column(alias: str, place: int) -> Expr:
    return Expr(f"{alias}.`{NAMES[place]}`", lambda rows: rows[alias][place])


def plain(alias: str, place: int) -> Expr:
    """The same without the alias, in other letters where the name allows it."""
    name = NAMES[place]
    return Expr(name.upper() if len(name) == 1 else f"`{name}`", lambda rows: rows[alias][place])


def compared(left: Any, operator: str, right: Any) -> bool | None:
    """As Spark compares: NaN is equal to itself and greater than all numbers."""
    if left is None or right is None:
        return None
    a, b = ((math.inf, 1) if isinstance(v, float) and math.isnan(v) else (v, 0) for v in (left, right))
    return {"=": a == b, "<": a < b, ">=": a >= b}[operator]


def both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def lifted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives null for null."""
    return lambda *values: None if None in values else function(*values)


class Maker:
    """Random statements, each with the rows it must leave."""

    def __init__(self, seed: int, keyed: bool) -> None:
        self.random = random.Random(seed)
        self.keyed = keyed

    def rows(self, most: int = 12) -> list[Row]:
        count = self.random.choice([0, 1, most // 2, most])
        keys = (
            self.random.sample(range(-3, 18), count)
            if self.keyed
            else [self.random.choice([None, 1, 2, 3, -2, 7]) for _ in range(count)]
        )
        return [(key, *self.values()) for key in keys]

    def values(self) -> Row:
        choose = self.random.choice
        return (
            choose([None, 0.0, -1.5, float("nan"), 1e300]), choose([None, Decimal("0.00"), Decimal("-12.34"), Decimal("7.00")]),
            choose([None, "", "a", "größe", "it's"]),
        )  # fmt: skip

    def condition(self, aliases: Sequence[str], depth: int = 2) -> Expr:
        alias = self.random.choice(aliases)
        kind = self.random.randrange(8 if depth else 5)
        if kind == 0:
            least = self.random.choice([-2, 1, 3, 9])
            key = column(alias, 0)
            return Expr(f"{key.sql} >= {least}", lambda rows: compared(key.of(rows), ">=", least))
        if kind == 1:
            size = column(alias, 1)
            return Expr(f"{size.sql} >= 0.5e0", lambda rows: compared(size.of(rows), ">=", 0.5))
        if kind == 2:
            other = column(alias, self.random.randrange(4))
            return Expr(f"{other.sql} IS NULL", lambda rows: other.of(rows) is None)
        if kind == 3:
            text = column(alias, 3)
            return Expr(f"{text.sql} = 'a'", lambda rows: compared(text.of(rows), "=", "a"))
        if kind == 4:
            money = column(alias, 2)
            return Expr(f"{money.sql} < 1.25", lambda rows: compared(money.of(rows), "<", Decimal("1.25")))
        left = self.condition(aliases, depth - 1)
        if kind == 5:
            return Expr(f"NOT ({left.sql})", lambda rows: negated(left.of(rows)))
        right = self.condition(aliases, depth - 1)
        if kind == 6:
            return Expr(f"({left.sql} AND {right.sql})", lambda rows: both(left.of(rows), right.of(rows)))
        return Expr(f"({left.sql} OR {right.sql})", lambda rows: negated(both(negated(left.of(rows)), negated(right.of(rows)))))

    def value(self, place: int, alias: str, bare: bool = False) -> Expr:
        """Something to put into a column, of a type that may be stored there."""
        source = plain(alias, place) if bare else column(alias, place)
        key = column(alias, 0)
        choices = [source, Expr("NULL", lambda _: None)]
        if place == 0:
            choices += [Expr(f"{source.sql} + 100", lambda rows: lifted(lambda v: v + 100)(source.of(rows)))] * 2
        if place == 1:
            choices += [Expr(f"{key.sql} * 2", lambda rows: lifted(lambda v: float(v * 2))(key.of(rows)))]
        if place == 2:
            choices += [
                Expr(f"coalesce({source.sql}, 0) + 1.5", lambda rows: (source.of(rows) or Decimal(0)) + Decimal("1.50")),
                Expr("7", lambda _: Decimal(7)),
            ]
        if place == 3:
            choices += [
                Expr(f"concat({source.sql}, '!')", lambda rows: lifted(lambda v: v + "!")(source.of(rows))),
                Expr(f"CAST({key.sql} AS STRING)", lambda rows: lifted(str)(key.of(rows))),
            ]
        return self.random.choice(choices)

    def statement(self, target: list[Row], source: list[Row]) -> tuple[str, Callable[[], list[Row]]]:
        """A statement, and what it makes of the target."""
        kind = self.random.choice(["values", "select", "delete", "update", "merge", "merge", "merge"])
        made: tuple[str, Callable[[], list[Row]]] = getattr(self, f"_{kind}")(target, source)
        return made

    def _values(self, target: list[Row], _: list[Row]) -> tuple[str, Callable[[], list[Row]]]:
        rows = self.rows(3) or [(self.random.randrange(40), *self.values())]
        new = [tuple(2.5 if isinstance(v, float) and math.isnan(v) else v for v in row) for row in rows]
        places = self.random.choice([None, [0, 1, 2, 3], [3, 0], [0]])
        columns = "" if places is None else f" ({', '.join(f'`{NAMES[place]}`' for place in places)})"
        shown = places or range(4)
        text = ", ".join(f"({', '.join(literal(row[place]) for place in shown)})" for row in new)
        came = [tuple(row[place] if places is None or place in places else None for place in range(4)) for row in new]
        return f"INSERT INTO t{columns} VALUES {text}", lambda: target + came

    def _select(self, target: list[Row], source: list[Row]) -> tuple[str, Callable[[], list[Row]]]:
        where, shift = self.condition(["u"]), self.random.choice([0, 200])
        came = [(lifted(lambda k: k + shift)(row[0]), row[1], None, row[3]) for row in source if where.of({"u": row}) is True]
        items = f"s, k + {shift} AS K, `größe`" if (by_name := self.random.random() < 0.5) else f"k + {shift}, `größe`, NULL, s"
        return f"INSERT INTO t {'BY NAME ' * by_name}SELECT {items} FROM u WHERE {where.sql}", lambda: target + came

    def _delete(self, target: list[Row], source: list[Row]) -> tuple[str, Callable[[], list[Row]]]:
        if self.random.random() < 0.1:
            return "DELETE FROM t", list
        where = self.condition(["t"])
        if self.random.random() < 0.4:  # a subquery that names the table itself, or another
            keys = {row[0] for row in source} - {None}
            text = f"DELETE FROM t WHERE {where.sql} AND EXISTS (SELECT * FROM u AS v WHERE v.k = t.k)"
            return text, lambda: [row for row in target if not (where.of({"t": row}) is True and row[0] in keys)]
        return f"DELETE FROM t WHERE {where.sql}", lambda: [row for row in target if where.of({"t": row}) is not True]

    def _update(self, target: list[Row], _: list[Row]) -> tuple[str, Callable[[], list[Row]]]:
        where = self.condition(["x"]) if self.random.random() < 0.8 else None
        values = {place: self.value(place, "x", bare=True) for place in self.places()}
        text = f"UPDATE t AS x SET {sets(values)}" + (f" WHERE {where.sql}" if where else "")
        return text, lambda: [changed(row, {"x": row}, values) if holds(where, {"x": row}) else row for row in target]

    def places(self) -> list[int]:
        return (
            self.random.sample(range(4), self.random.choice([1, 2]))
            if self.random.random() < 0.3
            else [self.random.choice([1, 2, 3])]
        )

    def _merge(self, target: list[Row], source: list[Row]) -> tuple[str, Callable[[], list[Row]]]:
        clauses = self.clauses()
        on = Expr("t.k = y.k", lambda rows: compared(rows["t"][0], "=", rows["y"][0]))
        if self.random.random() < 0.3:
            on = Expr(
                "t.k <=> y.k AND t.s = y.s",
                lambda rows: both(rows["t"][0] == rows["y"][0], compared(rows["t"][3], "=", rows["y"][3])),
            )
        using = "u AS y" if self.random.random() < 0.5 else "(SELECT * FROM u WHERE k > 0 OR k IS NULL) AS y"
        rows = source if using == "u AS y" else [row for row in source if row[0] is None or row[0] > 0]
        text = f"MERGE INTO t USING {using} ON {on.sql} " + " ".join(told(clause) for clause in clauses)
        return text, lambda: merged(target, rows, on, clauses)

    def clauses(self) -> list[Clause]:
        found: list[Clause] = []
        kinds = [("matched", ["t", "y"]), ("not matched", ["y"]), ("not matched by source", ["t"])]
        for kind, aliases in self.random.sample(kinds, self.random.choice([1, 2, 3])):
            lasts = self.random.choice([[True], [False], [False, True]])
            found += [self.clause(kind, None if last else self.condition(aliases), aliases) for last in lasts]
        return found

    def clause(self, kind: str, condition: Expr | None, aliases: list[str]) -> Clause:
        if kind == "not matched":
            if self.random.random() < 0.4:
                return Clause(kind, condition, "insert", {place: column("y", place) for place in range(4)}, star=True)
            places = sorted({0, *self.places()})
            return Clause(kind, condition, "insert", {place: self.value(place, "y", bare=True) for place in places})
        if self.random.random() < 0.4:
            return Clause(kind, condition, "delete", {})
        if kind == "matched" and self.random.random() < 0.3:
            return Clause(kind, condition, "update", {place: column("y", place) for place in range(4)}, star=True)
        return Clause(kind, condition, "update", {place: self.value(place, self.random.choice(aliases)) for place in self.places()})


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"CAST({value!r} AS DOUBLE)"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def sets(values: dict[int, Expr]) -> str:
    return ", ".join(f"`{NAMES[place]}` = {value.sql}" for place, value in values.items())


def told(clause: Clause) -> str:
    head = f"WHEN {clause.kind.upper()}" + (f" AND {clause.condition.sql}" if clause.condition else "")
    if clause.action == "delete":
        return f"{head} THEN DELETE"
    if clause.action == "update":
        return f"{head} THEN UPDATE SET {'*' if clause.star else sets(clause.values)}"
    columns = ", ".join(f"`{NAMES[place]}`" for place in clause.values)
    values = ", ".join(value.sql for value in clause.values.values())
    return f"{head} THEN INSERT *" if clause.star else f"{head} THEN INSERT ({columns}) VALUES ({values})"


def holds(condition: Expr | None, rows: Rows) -> bool:
    return condition is None or condition.of(rows) is True


def changed(row: Row, rows: Rows, values: dict[int, Expr]) -> Row:
    return tuple(values[place].of(rows) if place in values else row[place] for place in range(4))


def merged(target: list[Row], source: list[Row], on: Expr, clauses: list[Clause]) -> list[Row]:
    """MERGE as the standard tells it, row by row."""
    matched = [clause for clause in clauses if clause.kind == "matched"]
    only_delete = len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None
    found, used = [], set()
    for row in target:
        partners = [place for place, other in enumerate(source) if on.of({"t": row, "y": other}) is True]
        used |= set(partners)
        if len(partners) > 1 and matched and not only_delete:
            raise Wrong("several rows of the source")
        rows = {"t": row, "y": source[partners[0]]} if partners else {"t": row}
        kind = "matched" if partners else "not matched by source"
        clause = next((each for each in clauses if each.kind == kind and holds(each.condition, rows)), None)
        if clause is None:
            found.append(row)
        elif clause.action == "update":
            found.append(changed(row, rows, clause.values))
    for place, other in enumerate(source):
        clause = next((c for c in clauses if c.kind == "not matched" and holds(c.condition, {"y": other})), None)
        if place not in used and clause is not None:
            found.append(changed((None,) * 4, {"y": other}, clause.values))
    return found


def bag(rows: Sequence[Row]) -> Counter[Row]:
    return Counter(tuple("nan" if isinstance(v, float) and math.isnan(v) else v for v in row) for row in rows)


def rows_of(table: pa.Table) -> list[Row]:
    return list(zip(*(each.to_pylist() for each in table.columns), strict=True))


def arrow(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_arrays([pa.array([row[n] for row in rows], field.type) for n, field in enumerate(SCHEMA)], schema=SCHEMA)


def by_duckdb(target: list[Row], source: list[Row], text: str) -> list[Row] | None:
    """The same statement by DuckDB on tables in memory."""
    with duckdb.connect() as engine:
        for name, rows in (("t", target), ("u", source)):
            engine.register("given", arrow(rows))
            engine.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        engine.execute("CREATE MACRO joined(a, b) AS a || b")  # concat passes over nulls there
        try:
            engine.execute(text.replace("`", '"').replace("<=>", "IS NOT DISTINCT FROM").replace("concat(", "joined("))
        except duckdb.InvalidInputException as trouble:
            if "THEN DELETE" in text and "more than one source row" in str(trouble):
                return None  # Spark deletes such a row where it can only be deleted
            raise
        return rows_of(engine.sql("SELECT * FROM t").to_arrow_table())


def check(path: Path, seed: int, steps: int) -> int:
    """Run statements and compare after each; the number of those that were refused."""
    maker = Maker(seed, keyed=seed % 2 == 0)
    target, source = maker.rows(), maker.rows()
    for name, rows in (("t", target), ("u", source)):
        pq.write_table(arrow(rows), path / f"{name}.parquet", row_group_size=5)
    refused = 0
    with driver_only(path / "catalog") as db:
        db.register("t", str(path / "t.parquet"), key=["k"] if maker.keyed else [])
        db.register("u", str(path / "u.parquet"))
        for _ in range(steps):
            text, result = maker.statement(target, source)
            after = _after(result, maker.keyed)
            before = db.table("t").info.version
            if after is None:
                refused += 1
                with pytest.raises(nearly.NearlyError):
                    db.execute(text)
                assert db.table("t").info.version == before, text
            else:
                _compare(db, text, target, after, before)
                theirs = by_duckdb(target, source, text)
                assert theirs is None or bag(theirs) == bag(after), text
                target = after
            assert bag(rows_of(db.sql("SELECT * FROM t").exact().table)) == bag(target), text
    return refused


def _after(result: Callable[[], list[Row]], keyed: bool) -> list[Row] | None:
    """What the model says; None where the statement must be refused."""
    try:
        rows = result()
    except Wrong:
        return None
    keys = [row[0] for row in rows]
    return None if keyed and (None in keys or len(set(keys)) < len(keys)) else rows


def _compare(db: nearly.Session, text: str, target: list[Row], after: list[Row], before: int) -> None:
    done = db.execute(text)
    assert not isinstance(done, nearly.Answer)
    assert done.inserted - done.deleted == len(after) - len(target), text
    changes = db.changes("t", before)
    kinds = Counter(changes["_change_type"].to_pylist())
    counts = {"insert": done.inserted, "delete": done.deleted, "update_preimage": done.updated, "update_postimage": done.updated}
    assert kinds == +Counter(counts), text


@pytest.fixture(params=[row_files.MOST_HELD, 150])
def held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory holds all rows that a statement changes, or hardly one."""
    monkeypatch.setattr(row_files, "MOST_HELD", request.param)


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("seed", range(6))
def test_statements_do_what_they_say(tmp_path: Path, seed: int) -> None:
    check(tmp_path, seed, steps=10)


@pytest.mark.long
@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("seed", range(100, 106))
def test_many_statements_do_what_they_say(tmp_path: Path, seed: int) -> None:
    check(tmp_path, seed, steps=40)
