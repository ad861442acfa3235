"""Whatever is wrong with a change is an error of the documented kind, told in words that help; and nothing was changed."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly import errors
from tests.fixtures.driver_only import driver_only

ROW = {"k": 9, "a": 1, "s": "n"}
MERGE = "merge into t using bag on t.k = bag.k"

ROWS = [
    ("db.insert('tt', [ROW])", "UnknownName", "did you mean 't'?"),
    ("db.insert(None, [ROW])", "SchemaError", "a table is named by text, not None"),
    ("db.insert('', [ROW])", "UnknownName", "unknown table ''"),
    ("db.insert('t@1', [ROW])", "SchemaError", "only the table as it is now can be changed"),
    ("db.insert('t', None)", "SchemaError", "not NoneType"),
    ("db.insert('t', 'text')", "SchemaError", "not str"),
    ("db.insert('t', [1, 2])", "SchemaError", "a list of mappings"),
    ("db.insert('t', [{}])", "SchemaError", "the rows given have no column"),
    ("db.insert('t', [{'k': 9, 'a': 1}])", "SchemaError", "have no column 's'; null must be given as null"),
    ("db.insert('t', [dict(ROW, z=1)])", "UnknownName", "unknown column 'z'"),
    ("db.insert('t', [dict(ROW, K=10)])", "SchemaError", "given twice (case does not count)"),
    ("db.insert('t', [dict(ROW, k='9')])", "SchemaError", "column 'k' is bigint, but string was given; cast it first"),
    ("db.insert('t', [dict(ROW, k=9.5)])", "SchemaError", "truncated"),
    ("db.insert('t', [dict(ROW, k=None)])", "SchemaError", "has no value in the key column 'k'"),
    ("db.insert('t', [dict(ROW, k=1)])", "SchemaError", "already has a row with k = 1; use merge"),
    ("db.insert('t', [ROW, ROW])", "SchemaError", "k = 9 is given more than once"),
    ("db.insert('t', [dict(ROW, a=2**40)])", "SchemaError", "not in range"),
    ("db.insert('t', [dict(ROW, k=2**70)])", "SchemaError", "too large"),
    ("db.insert('t', [dict(ROW, k=object())])", "SchemaError", "do not make a table"),
    ("db.insert('t', [dict(ROW, s=b'x')])", "SchemaError", "column 's' is string, but binary was given"),
    ("db.insert('t', [dict(ROW, s=dt.date(2024, 1, 1))])", "SchemaError", "column 's' is string, but date32"),
    ("db.insert('t', [ROW, dict(ROW, k='x')])", "SchemaError", "do not make a table"),
    ("db.insert('t', {'k': [9, 10], 'a': [1]})", "SchemaError", "do not make a table"),
    ("db.insert('nested', [{'k': 2, 'l': [1]}])", "SchemaError", "tables with nested columns cannot be changed"),
    ("db.insert('floats', [{'x': -0.0, 'v': 1}])", "SchemaError", "already has a row with x = 0.0"),
    ("db.insert('floats', [{'x': math.nan, 'v': 1}])", "SchemaError", "already has a row with x = nan"),
    ("db.insert('t', [ROW], batch='stream')", "SchemaError", "must be the name of a stream and a whole number"),
    ("db.insert('t', [ROW], batch=('stream',))", "SchemaError", "must be the name of a stream and a whole number"),
    ("db.insert('t', [ROW], batch=('stream', -1))", "SchemaError", "must be the name of a stream and a whole number"),
    ("db.insert('t', [ROW], batch=('stream', True))", "SchemaError", "must be the name of a stream and a whole number"),
    ("db.insert('t', [ROW], batch=('', 1))", "SchemaError", "must be the name of a stream and a whole number"),
    ("db.insert('t', [ROW], batch=('stream', 2**80))", "SchemaError", "must be the name of a stream and a whole number"),
    ("db.delete('t')", "SchemaError", "either rows or where="),
    ("db.delete('t', [ROW], where='true')", "SchemaError", "either rows or where="),
    ("db.delete('t', [{'k': 77}])", "SchemaError", "table 't' lacks a row with k = 77; pass missing='ignore'"),
    ("db.delete('t', [{'k': None}])", "SchemaError", "no value in the key column"),
    ("db.delete('t', [{'k': 1}, {'k': 1}])", "SchemaError", "k = 1 is given more than once"),
    ("db.delete('t', [{'k': 1, 'z': 1}])", "UnknownName", "unknown column 'z'"),
    ("db.delete('t', [{'k': '1'}])", "SchemaError", "column 'k' is bigint, but string was given"),
    ("db.delete('t', [{'k': 77}], missing='maybe')", "SchemaError", "must be 'error' or 'ignore'"),
    ("db.delete('bag', [{'k': 2}])", "SchemaError", "have no column 'x'"),
    ("db.delete('bag', [{'k': 2, 'x': 1.0}] * 2)", "SchemaError", "lacks 1 of the rows given"),
    ("db.delete('doubled', [{'k': 1}])", "SchemaError", "k = 1 more than once; its key is no key"),
    ("db.delete('reserved', where='k = 1')", "Unsupported", "nearly needs the name of its column 'nearly_row'"),
    ("db.merge('t', [ROW, ROW])", "SchemaError", "k = 9 is given more than once"),
    ("db.merge('t', [dict(ROW, k=None)])", "SchemaError", "no value in the key column"),
    ("db.merge('t', [{'k': 1}])", "SchemaError", "have no column 'a'"),
    ("db.merge('bag', [{'k': 1, 'x': 1.0}])", "SchemaError", "has no key to merge by"),
    ("db.merge('doubled', [{'k': 1, 'x': 1.0}])", "SchemaError", "its key is no key"),
]

CONDITIONS = [
    ("", "ParseError", "the condition is SQL text"),
    ("k", "SchemaError", "a condition must be boolean, k is bigint"),
    ("kk = 1", "UnknownName", "did you mean 'k'?"),
    ("k = 1; drop table t", "ParseError", "2 statements were given"),
    ("k = 1) or (true", "ParseError", "near ')'"),
    ("k = 1 group by k", "ParseError", "is not one condition"),
    ("k = 1 as x", "ParseError", "is not one condition"),
    ("k = 1, true", "ParseError", "is not one condition"),
    ("*", "ParseError", "is not one condition"),
    ("k = ?", "ParseError", "has no value"),
    ("reflect('a', 'b') = 1", "Unsupported", "it calls arbitrary JVM methods"),
    ("k = (select max(k) from parquet.`/etc/passwd`)", "Unsupported", "a path as a table"),
    ("sum(k) > 1", "SchemaError", "an aggregate in WHERE"),
    ("row_number() over () = 1", "SchemaError", "a window function has no meaning in a change"),
]

ASSIGNMENTS = [
    ("{}", "SchemaError", "sets at least one column"),
    ("None", "SchemaError", "sets at least one column"),
    ("[('a', '1')]", "SchemaError", "sets at least one column"),
    ("{'z': '1'}", "UnknownName", "unknown column 'z'"),
    ("{5: '1'}", "SchemaError", "named by text, not 5"),
    ("{'a': 1}", "ParseError", "the expression is SQL text, not 1"),
    ("{'a': '1', 'A': '2'}", "SchemaError", "set twice"),
    ('{"a": "\'x\'"}', "SchemaError", "a string cannot be stored there"),
    ("{'a': '1, 2'}", "ParseError", "is not one expression"),
    ("{'a': 'select 1'}", "ParseError", "not a query"),
    ("{'a': 'count(*)'}", "SchemaError", "neither grouped nor aggregated"),
    ("{'a': 'row_number() over ()'}", "SchemaError", "a window function has no meaning in a change"),
    ("{'k': '1'}", "SchemaError", "k = 1 is given more than once"),
    ("{'k': 'null'}", "SchemaError", "no value in the key column"),
    ("{'k': 'k + 1'}, where='k = 1'", "SchemaError", "already has k = 2; after the change its key would be no key"),
]

VERSIONS = [
    ("db.changes('t', 99)", "SchemaError", "is at version 1"),
    ("db.changes('t', 0)", "SchemaError", "no version 0 that can still be read; there are 1"),
    ("db.changes('t', '1')", "SchemaError", "since='1' must be the number of a version"),
    ("db.changes('t', True)", "SchemaError", "since=True must be the number of a version"),
    ("db.changes('t', 1, 99)", "SchemaError", "is at version 1"),
    ("db.changes('tt', 1)", "UnknownName", "did you mean 't'?"),
    ("db.history('tt')", "UnknownName", "did you mean 't'?"),
    ("db.history(None)", "SchemaError", "a table is named by text"),
    ("db.compact('tt')", "UnknownName", "did you mean 't'?"),
    ("db.compact('t@1')", "SchemaError", "only the table as it is now can be changed"),
    ("db.drop('t@1')", "SchemaError", "only the table as it is now can be changed"),
    ("db.sql('select * from t version as of 99').exact()", "SchemaError", "has no version 99"),
    ("db.sql('select * from t version as of \"x\"').exact()", "SchemaError", "must be a whole number"),
    ("db.sql('select * from t timestamp as of \"yesterday\"').exact()", "SchemaError", "is no time"),
    ("db.sql('select * from t timestamp as of \"1990-01-01\"').exact()", "SchemaError", "the oldest is of"),
    ("db.sql('select * from `t@x`').exact()", "UnknownName", "unknown table 't@x'"),
    ("db.sql('select * from `t@now`').exact()", "UnknownName", "unknown table 't@now'"),
    ("closed.insert('t', [ROW])", "EngineError", "the session is closed"),
    ("closed.delete('t', where='true')", "EngineError", "the session is closed"),
    ("closed.update('t', {'a': '1'})", "EngineError", "the session is closed"),
    ("closed.merge('t', [ROW])", "EngineError", "the session is closed"),
    ("closed.execute('delete from t')", "EngineError", "the session is closed"),
    ("closed.changes('t', 1)", "EngineError", "the session is closed"),
    ("closed.history('t')", "EngineError", "the session is closed"),
    ("closed.compact('t')", "EngineError", "the session is closed"),
    ("closed.transaction().__enter__()", "EngineError", "the session is closed"),
]

STATEMENTS = [
    ("", "ParseError", "the query is empty"),
    ("insert into t", "ParseError", "has no rows"),
    ("insert into t values ()", "SchemaError", "takes 3 columns (k, a, s), the rows have 0"),
    ("insert into t values (9, 2)", "SchemaError", "takes 3 columns (k, a, s), the rows have 2"),
    ("insert into t values (9, 2, 'x'), (10, 2)", "SchemaError", "rows of different lengths"),
    ("insert into tt values (1)", "UnknownName", "did you mean 't'?"),
    ("insert into t (z) values (1)", "UnknownName", "unknown column 'z'"),
    ("insert into t (k, K) values (1, 2)", "SchemaError", "names a column twice"),
    ("insert into t (k) by name select 1 as k", "ParseError", "either columns or BY NAME"),
    ("insert into t by name select 9 as k, 1 as z", "UnknownName", "unknown column 'z'"),
    ("insert into t by name select 9 as k, 10 as K", "SchemaError", "given twice"),
    ("insert into t (a) values (1)", "SchemaError", "no value in the key column"),
    ("insert into t values (1, 1, 'x')", "SchemaError", "already has a row with k = 1"),
    ("insert into t values (9, 'x', 'x')", "SchemaError", "column 'a' of table 't' is int, a string cannot be stored there"),
    ("insert into t values (true, 1, 'x')", "SchemaError", "a boolean cannot be stored there"),
    ("insert into t select * from t", "SchemaError", "already has a row with k = 1"),
    ("insert overwrite t values (9, 1, 'x')", "Unsupported", "in one db.transaction()"),
    ("insert into t partition (k = 1) values (9, 1, 'x')", "Unsupported", "partition"),
    ("insert into t values (9, 1, 'x') returning *", "Unsupported", "returning"),
    ("insert into t values (9, 1, 'x') on conflict do nothing", "Unsupported", "conflict"),
    ("insert into t values (9, 1, 'x'); delete from t", "ParseError", "2 statements were given"),
    ("insert overwrite local directory '/nowhere' select 1", "Unsupported", "INSERT that replaces rows"),
    ("insert into parquet.`/nowhere` values (1)", "Unsupported", "use its registered name"),
    ("insert into t select * from parquet.`/nowhere`", "Unsupported", "a path as a table"),
    ("insert into t select 9, 1, reflect('a', 'b')", "Unsupported", "it calls arbitrary JVM methods"),
    ("insert t values (9, 1, 'x')", "ParseError", "INTO is missing"),
    ("insert into `t@1` values (9, 1, 'x')", "SchemaError", "only the table as it is now can be changed"),
    ("delete t", "Unsupported", "delete with tables"),
    ("delete from t where k = 1 limit 1", "Unsupported", "delete with limit"),
    ("delete from t using bag where t.k = bag.k", "Unsupported", "delete with using"),
    ("delete from t, bag", "Unsupported", "table with joins"),
    ("delete from elsewhere.t", "Unsupported", "use its registered name"),
    ("delete from t version as of 1", "Unsupported", "only the present version"),
    ("delete from t as x where t.k = 1", "UnknownName", "unknown table 't'"),
    ("delete from t within 1%", "ParseError", "a statement that changes a table gives none"),
    ("delete from t where k = 1 /* open", "ParseError", "open at its end"),
    ("delete from t where " + "(" * 500 + "true" + ")" * 500, "ParseError", "nests more than 150"),
    ("update t set z = 1", "UnknownName", "unknown column 'z'"),
    ("update t set a", "ParseError", "column = expression"),
    ("update t set", "ParseError", "sets no column"),
    ("update t set a = 1, A = 2", "SchemaError", "set twice"),
    ("update t set bag.a = 1", "ParseError", "only a column of the changed table can be set"),
    ("update t set (a, s) = (1, 'x')", "ParseError", "only a column of the changed table can be set"),
    ("update t set a = 1 from bag", "Unsupported", "update with from"),
    (MERGE, "ParseError", "something is missing"),
    ("merge into t using bag when matched then delete", "ParseError", "needs ON"),
    ("merge into t using t on t.k = t.k when matched then delete", "SchemaError", "give one of them an alias"),
    (f"{MERGE} when matched then insert *", "ParseError", "WHEN MATCHED cannot be followed by"),
    (f"{MERGE} when not matched then delete", "ParseError", "WHEN NOT MATCHED cannot be followed by"),
    (f"{MERGE} when not matched by source then update set *", "ParseError", "column = expression"),
    (f"{MERGE} when matched then delete when matched then delete", "ParseError", "only the last WHEN MATCHED"),
    (f"{MERGE} when matched then update set *", "UnknownName", "unknown column 'a'"),
    (f"{MERGE} when matched then update set a = 1", "SchemaError", "k = 2 of table 't' is matched by 2 rows of the source"),
    (f"{MERGE} when not matched then insert (k) values (1, 2)", "ParseError", "names 1 columns and 2 values"),
    (f"{MERGE} when not matched then insert (k, K) values (1, 2)", "SchemaError", "set twice"),
    (f"{MERGE} when not matched then insert (a) values (1)", "SchemaError", "no value in the key column"),
    (f"{MERGE} when not matched then insert (k) values (t.k)", "UnknownName", "unknown table 't'"),
    (f"{MERGE} when not matched by source then update set a = bag.x", "UnknownName", "unknown table 'bag'"),
    (f"{MERGE} when matched and 1 then delete", "SchemaError", "a condition must be boolean, 1 is int"),
    (f"{MERGE} when matched then update set * except (a)", "Unsupported", "star with except"),
    (f"{MERGE} when matched do nothing", "ParseError", "THEN is missing"),
    (f"{MERGE} when then delete", "ParseError", "MATCHED is missing"),
    ("merge into t using nope on t.k = nope.k when matched then delete", "UnknownName", "unknown table 'nope'"),
    ("merge into t using parquet.`/x` as p on true when matched then delete", "Unsupported", "a path as a table"),
    ("truncate table t", "ParseError", "only a query, INSERT, DELETE, UPDATE or MERGE"),
    ("drop table t", "ParseError", "not DROP"),
]

CASES = [
    *ROWS,
    *((f"db.delete('t', where={text!r})", kind, message) for text, kind, message in CONDITIONS),
    *((f"db.update('t', {text})", kind, message) for text, kind, message in ASSIGNMENTS),
    *VERSIONS,
    *((f"db.execute({text!r})", kind, message) for text, kind, message in STATEMENTS),
    ("db.execute(None)", "ParseError", "not NoneType"),
]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the code of a case can name."""
    home = tmp_path_factory.mktemp("changes")
    tables = {
        "t": pa.table({"k": [1, 2, 3, 4], "a": pa.array([10, 20, None, 40], pa.int32()), "s": ["x", None, "z", "w"]}),
        "bag": pa.table({"k": [2, 2, 9], "x": [1.0, math.nan, -0.0]}),
        "doubled": pa.table({"k": [1, 1, 2], "x": [1.0, 2.0, 3.0]}),
        "nested": pa.table({"k": [1], "l": [[1, 2]]}),
        "floats": pa.table({"x": [0.0, math.nan], "v": [1, 2]}),
        "reserved": pa.table({"k": [1], "nearly_row": [2]}),
    }
    keys = {"t": ["k"], "doubled": ["k"], "floats": ["x"]}
    closed = driver_only(home / "other")
    closed.close()
    with driver_only(home / "catalog") as db:
        for name, table in tables.items():
            pq.write_table(table, home / f"{name}.parquet")
            db.register(name, str(home / f"{name}.parquet"), key=keys.get(name, []))
        yield {"db": db, "closed": closed, "ROW": ROW, "math": math, "dt": dt}


@pytest.mark.parametrize(("code", "kind", "message"), CASES, ids=[case[0][:70] for case in CASES])
def test_is_refused_in_kind(code: str, kind: str, message: str, names: dict[str, Any]) -> None:
    before = _state(names["db"])
    with pytest.raises(errors.NearlyError) as caught:
        eval(code, {}, names)
    assert type(caught.value).__name__ == kind, caught.value
    assert message in str(caught.value)
    assert len(str(caught.value)) < 600, "a message is for reading"
    assert "nearly_file" not in str(caught.value)
    assert _state(names["db"]) == before


def _state(db: nearly.Session) -> dict[str, bytes]:
    """Every file of the catalog that is more than a lock, and what is in it."""
    root = db._engine.catalog.path
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file() and path.stat().st_size}


def test_nothing_is_inserted(names: dict[str, Any]) -> None:
    """No rows are no mistake, and make no version."""
    db = names["db"]
    before = _state(db)
    for rows in ([], pa.table({}), pa.table({"k": pa.array([], pa.int64()), "a": pa.nulls(0), "s": pa.nulls(0)})):
        assert db.insert("t", rows).version == 1
        assert db.merge("t", rows).version == 1
    assert db.delete("t", []).version == 1
    assert db.update("t", {"a": "1"}, where="false").version == 1
    assert db.execute("insert into t select * from t where false").version == 1
    assert _state(db) == before


def test_an_error_ends_one_change_not_the_transaction(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1]}), tmp_path / "t.parquet")
    with driver_only(tmp_path / "catalog") as db:
        for name in ("t", "u"):
            db.register(name, str(tmp_path / "t.parquet"), key=["k"])
        with db.transaction():
            db.insert("t", [{"k": 2}])
            with pytest.raises(nearly.SchemaError):
                db.insert("t", [{"k": 2}])
            with pytest.raises(nearly.EngineError, match="cannot be nested"), db.transaction():
                pass
            for forbidden in (lambda: db.compact("t"), lambda: db.refresh("t"), lambda: db.append("t", [])):
                with pytest.raises(nearly.EngineError, match="cannot be nested"):
                    forbidden()
            db.execute("insert into u select k from t where k = 2")  # statements see what was changed before them
        assert db.sql("select k from u order by k").exact().table["k"].to_pylist() == [1, 2]
        with suppress(ZeroDivisionError), db.transaction():
            db.execute("delete from t")
            db.execute("delete from u")
            raise ZeroDivisionError
        assert db.sql("select count(*) as n from t join u using (k)").exact().table["n"].to_pylist() == [2]
        assert [len(db.history(name)) for name in ("t", "u")] == [2, 2]


def test_a_batch_is_taken_once(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1]}), tmp_path / "t.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("t", str(tmp_path / "t.parquet"), key=["k"])
        assert db.insert("t", [{"k": 2}], batch=("stream", 3)).rows == 2
        assert db.insert("t", [{"k": 5}], batch=("stream", 3)).rows == 2
        assert db.execute("delete from t where k = 77", batch=("stream", 4)).deleted == 0
    with driver_only(tmp_path / "catalog") as db:
        assert db.execute("delete from t", batch=("stream", 4)).deleted == 0  # taken, though it found nothing then
        assert db.execute("delete from t", batch=("other", 4)).deleted == 2


def test_of_nested_columns_only_deletes_are_taken(tmp_path: Path) -> None:
    """Rows that go are known by their places; for those that come, nested values would have to be written."""
    nested = pa.table({"k": [1, 2, 3, 4], "tags": [["a"], [], None, ["b", "c"]]})
    pq.write_table(nested, tmp_path / "n.parquet")
    with driver_only(tmp_path / "catalog") as db:
        db.register("n", tmp_path / "n.parquet", key=["k"])
        assert db.delete("n", [{"k": 2}]).rows == 3
        assert db.delete("n", where="k > 3").rows == 2
        assert db.sql("select k from n order by k").exact().table["k"].to_pylist() == [1, 3]
        for change in (
            lambda: db.insert("n", pa.table({"k": [9], "tags": [["x"]]})),
            lambda: db.update("n", {"k": "k + 10"}, where="k = 1"),
            lambda: db.merge("n", pa.table({"k": [1], "tags": [["x"]]})),
        ):
            with pytest.raises(errors.SchemaError, match="tables with nested columns cannot be changed row by row"):
                change()
        assert db.table("n").info.version == 3
