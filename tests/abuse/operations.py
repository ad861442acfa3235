"""What is disturbed: each operation has a beginning, the act, and the answers that may be there before and after it.

Law of all of them: whatever happens during the act, a fresh session finds one of the states that are allowed, never one between
them, and after the next act nothing is left of the one that was disturbed.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nearly
from nearly.engine.stream.task import Pace
from nearly.engine.writing.append_refresh import append
from nearly.progressive.run import Request, Run

ROWS = 80_000
TEXT = "select count(*) as n, sum(v) as v from t"
GROUPS = "select k % 10 as g, count(*) as n, sum(v) as v from t group by k % 10 order by g"
_DRAFT = re.compile(r"\.tmp-.*|table\.json\..+|\.[0-9a-f]{32}|\.gone-.*|\..*\.[0-9a-f]{8}")
State = tuple[int, int] | None
"""Rows and their sum; None where there is no table."""


@dataclass(frozen=True, slots=True)
class Operation:
    """`begin` and `act` get the place of the files and a session; `state` is what a fresh session finds."""

    begin: Callable[[Path, nearly.Session], None]
    act: Callable[[Path, nearly.Session], None]
    state: Callable[[nearly.Session], State]
    allowed: tuple[State, ...]


def rows(first: int, count: int) -> pa.Table:
    numbers = np.arange(first, first + count)
    return pa.table({"k": numbers, "v": numbers % 1000})


def total(first: int, count: int) -> tuple[int, int]:
    return count, int(sum(number % 1000 for number in range(first, first + count)))


ONE, MORE = total(0, ROWS), total(0, ROWS + 500)


def session(home: Path) -> nearly.Session:
    return nearly.connect(path=home / "catalog", lazy=True)


def drafts(home: Path) -> list[str]:
    """What is no part of any state."""
    return sorted(str(path.relative_to(home)) for path in (home / "catalog").rglob("*") if _DRAFT.fullmatch(path.name))


def _file(home: Path, name: str, first: int, count: int) -> Path:
    path = home / "data" / name
    path.parent.mkdir(exist_ok=True)
    pq.write_table(rows(first, count), path, row_group_size=2_000)
    return path.parent


def _in_table(db: nearly.Session) -> State:
    if "t" not in db.tables:
        return None
    table = db._engine.catalog.table("t")
    for layout in table.layouts:
        layout.verify(full=layout.manifest.hashed)
        assert layout.rows == table.rows, "layouts of different rows"
    found = db.sql(TEXT).exact()
    assert found.source == "native"
    (row,) = found.table.to_pylist()
    return row["n"], row["v"]


# --- tables ----------------------------------------------------------------------------------------------------------


def _nothing(home: Path, _: nearly.Session) -> None:
    _file(home, "one.parquet", 0, ROWS)


def _register(home: Path, db: nearly.Session) -> None:
    db.register("t", home / "data", verify="full")


def _registered(home: Path, db: nearly.Session) -> None:
    _nothing(home, db)
    _register(home, db)


def _grown_by_a_file(home: Path, db: nearly.Session) -> None:
    _registered(home, db)
    _file(home, "two.parquet", ROWS, 500)


def _refresh(_: Path, db: nearly.Session) -> None:
    db.refresh("t")


def _prepare(_: Path, db: nearly.Session) -> None:
    db.prepare("t", by="k", buckets=4)
    db.prepare("t")


def _owned(home: Path, db: nearly.Session) -> None:
    """A table of files that nearly wrote, in two layouts."""
    _registered(home, db)
    _prepare(home, db)
    table = db._engine.catalog.table("t")
    written = table.layouts[1]
    from dataclasses import replace

    from nearly.engine.storage.layouts import BASE, Origin

    base = replace(written, name=BASE, clustering=None)
    db._engine.catalog.save(replace(table, layouts=(base, *table.layouts[2:]), origin=Origin("dataframe")))


def _append(_: Path, db: nearly.Session) -> None:
    """Once: whoever does not know whether rows arrived looks before appending them again."""
    if _in_table(db) == MORE:
        return
    append(db._engine.catalog, db._engine.cluster.given, "t", rows(ROWS, 500))  # type: ignore[arg-type]


def _drop(_: Path, db: nearly.Session) -> None:
    if "t" in db.tables:
        db.drop("t")


# --- changes ---------------------------------------------------------------------------------------------------------


def _insert_rows(_: Path, db: nearly.Session) -> None:
    db.insert("t", rows(ROWS, 500), batch=("stream", 1))


def _inserted(home: Path, db: nearly.Session) -> None:
    _registered(home, db)
    _insert_rows(home, db)


def _delete_rows(_: Path, db: nearly.Session) -> None:
    db.delete("t", where=f"k >= {ROWS}")


def _deleted(home: Path, db: nearly.Session) -> None:
    """A table of which much was changed, and nothing is left of it in its rows."""
    _inserted(home, db)
    db.update("t", {"v": "v + 1"}, where="k % 7 = 3")
    db.update("t", {"v": "v - 1"}, where="k % 7 = 3")
    _delete_rows(home, db)


def _changed_copy(home: Path, db: nearly.Session) -> None:
    from dataclasses import replace

    from nearly.engine.storage.layouts import Origin

    _registered(home, db)
    db._engine.catalog.save(replace(db._engine.catalog.table("t"), origin=Origin("dataframe")))
    _insert_rows(home, db)
    _delete_rows(home, db)


def _delta_replaced(home: Path, db: nearly.Session) -> None:
    """A Delta table whose next version replaces all its files."""
    from deltalake import write_deltalake

    write_deltalake(str(home / "delta"), rows(0, ROWS))
    db.register("t", home / "delta")
    write_deltalake(str(home / "delta"), rows(0, ROWS + 500), mode="overwrite")


def _compact(_: Path, db: nearly.Session) -> None:
    db.compact("t")


def _two_tables(home: Path, db: nearly.Session) -> None:
    _registered(home, db)
    db.register("u", home / "data")


def _change_both(_: Path, db: nearly.Session) -> None:
    with db.transaction():
        db.insert("t", rows(ROWS, 500), batch=("stream", 1))
        db.insert("u", rows(ROWS, 500), batch=("stream", 1))


def _in_both(db: nearly.Session) -> State:
    (row,) = db.sql(TEXT.replace(" t", " u")).exact().table.to_pylist()
    found = _in_table(db)
    assert found == (row["n"], row["v"]), "one table was changed without the other"
    return found


# --- views -----------------------------------------------------------------------------------------------------------

VIEW = "select k % 10 as g, count(*) as n, sum(v) as v from t group by k % 10"


def _create_view(_: Path, db: nearly.Session) -> None:
    db.create_view("w", VIEW, there="replace")


def _view_behind(home: Path, db: nearly.Session) -> None:
    _registered(home, db)
    _create_view(home, db)
    db.create_view("above", "select sum(n) as n, sum(v) as v from w")
    _insert_rows(home, db)


def _refresh_view(_: Path, db: nearly.Session) -> None:
    db.view("above").refresh()


def _in_view(db: nearly.Session) -> State:
    """The rows of a view, which are those of the versions it names, and of a view above it."""
    if "w" not in db.views:
        return None
    (row,) = db.sql("select sum(n) as n, sum(v) as v from w", kernel="native").exact().table.to_pylist()
    version = db.view("w").versions["t"]
    (then,) = db.sql(f"{TEXT} version as of {version}", kernel="native").exact().table.to_pylist()
    assert row == then, "the rows of a view are not of its versions"
    if "above" in db.views:
        (top,) = db.sql("select n, v from above", kernel="native").exact().table.to_pylist()
        known = db.view("above").versions["t"]
        (past,) = db.sql(f"{TEXT} version as of {known}", kernel="native").exact().table.to_pylist()
        assert top == past, "the rows of a view on a view are not of its versions"
        return top["n"], top["v"]
    return row["n"], row["v"]


# --- progressive runs ------------------------------------------------------------------------------------------------


def _run(_: Path, db: nearly.Session) -> None:
    for id_ in db.unfinished:
        assert _sum(db.resume(id_).run().table) == ONE
    run = Run(db._engine, db._engine.prepare(GROUPS), Request(pace=Pace(sizes=(2, 3, 3, 4))), "disturbed")
    *_, last = run.answers()
    assert last.exact
    assert _sum(last.table) == ONE


def _sum(table: pa.Table) -> tuple[int, int]:
    return sum(table["n"].to_pylist()), sum(table["v"].to_pylist())


def _after_a_run(db: nearly.Session) -> State:
    for id_ in db.unfinished:
        assert _sum(db.resume(id_).run().table) == ONE
    queries = db._engine.catalog.path / "queries"
    for left in [*queries.iterdir()] if queries.exists() else ():
        shutil.rmtree(left)  # one that was not described yet is swept when it is older
    return _in_table(db)


# --- synopses --------------------------------------------------------------------------------------------------------


def _build(_: Path, db: nearly.Session) -> None:
    if "s" in db.synopses:
        db.drop_synopsis("s")
    db.create_synopsis("s", "t", "v", ["k"], key=["k"], leaves=4, sample=0.1)


def _built(home: Path, db: nearly.Session) -> None:
    _registered(home, db)
    _build(home, db)


def _insert(_: Path, db: nearly.Session) -> None:
    synopsis = db.synopsis("s")
    synopsis.insert(rows(ROWS, 500), batch=("stream", 1))


def _repartition(home: Path, db: nearly.Session) -> None:
    _insert(home, db)
    synopsis = db.synopsis("s")
    synopsis.repartition()
    synopsis.save()


def _in_synopsis(db: nearly.Session) -> State:
    if "s" not in db.synopses:
        return None
    synopsis = db.synopsis("s")
    found = [synopsis.query(aggregate).table[aggregate][0].as_py() for aggregate in ("rows", "sum")]
    return round(found[0]), round(found[1])


OPERATIONS = {
    "register": Operation(_nothing, _register, _in_table, (None, ONE)),
    "register again": Operation(_registered, _register, _in_table, (ONE,)),
    "refresh": Operation(_grown_by_a_file, _refresh, _in_table, (ONE, MORE)),
    "prepare": Operation(_registered, _prepare, _in_table, (ONE,)),
    "append": Operation(_owned, _append, _in_table, (ONE, MORE)),
    "insert": Operation(_registered, _insert_rows, _in_table, (ONE, MORE)),
    "delete": Operation(_inserted, _delete_rows, _in_table, (MORE, ONE)),
    "compact": Operation(_changed_copy, _compact, _in_table, (ONE,)),
    "compact in place": Operation(_deleted, _compact, _in_table, (ONE,)),
    "refresh delta": Operation(_delta_replaced, _refresh, _in_table, (ONE, MORE)),
    "transaction": Operation(_two_tables, _change_both, _in_both, (ONE, MORE)),
    "create view": Operation(_registered, _create_view, _in_view, (None, ONE)),
    "refresh view": Operation(_view_behind, _refresh_view, _in_view, (ONE, MORE)),
    "drop": Operation(_owned, _drop, _in_table, (ONE, None)),
    "run": Operation(_registered, _run, _after_a_run, (ONE,)),
    "synopsis build": Operation(_registered, _build, _in_synopsis, (None, ONE)),
    "synopsis insert": Operation(_built, _insert, _in_synopsis, (ONE, MORE)),
    "synopsis repartition": Operation(_built, _repartition, _in_synopsis, (ONE, MORE)),
}
