"""Statements taken apart: what is read, what is refused, and that no text does anything else."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from nearly.errors import NearlyError, ParseError, Unsupported
from nearly.plan.syntax.parse import to_text, tokens_of
from nearly.plan.syntax.statements import (
    DELETE,
    INSERT,
    MATCHED,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    UPDATE,
    DeleteFrom,
    InsertInto,
    MergeInto,
    UpdateSet,
    parse_statement,
    tables_named,
)

MERGE = """
MERGE INTO t AS x USING (SELECT * FROM u) AS y ON x.k = y.k AND y.a > 1
WHEN MATCHED AND y.gone THEN DELETE WHEN MATCHED THEN UPDATE SET x.a = y.a + 1, `b c` = DEFAULT
WHEN NOT MATCHED BY TARGET AND y.k > 0 THEN INSERT (k, a) VALUES (k, CASE WHEN a THEN 1 END) WHEN NOT MATCHED THEN INSERT *
WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = NULL
"""
STATEMENTS = [
    "INSERT INTO t VALUES (1, 'it''s', NULL), (2, DEFAULT, 3.5e0)",
    "INSERT INTO TABLE t (`a b`, c) WITH q AS (SELECT 1 AS x) SELECT x, x FROM q",
    "INSERT INTO t BY NAME SELECT k AS a FROM u WHERE k IN (1, 2)",
    "DELETE FROM t AS x WHERE x.k BETWEEN 1 AND 3 AND EXISTS (SELECT 1 FROM u WHERE u.k = x.k)",
    "WITH q AS (SELECT 1 AS k) UPDATE t SET a = a AND b OR c, d = (SELECT max(k) FROM q) WHERE NOT a",
    MERGE,
]


def test_insert() -> None:
    found = parse_statement(STATEMENTS[0])
    assert isinstance(found, InsertInto)
    assert (found.table, found.columns, found.by_name) == ("t", None, False)
    assert to_text(found.query) == "VALUES (1, 'it\\'s', NULL), (2, NULL, 3.5e0)"
    named = parse_statement(STATEMENTS[1])
    assert isinstance(named, InsertInto)
    assert named.columns == ("a b", "c")
    copied = parse_statement("insert into t table u;")
    assert isinstance(copied, InsertInto)
    assert to_text(copied.query) == "SELECT * FROM u"


def test_delete_and_update() -> None:
    found = parse_statement("delete from t")
    assert found == DeleteFrom("t", "t", None)
    update = parse_statement("update t x set x.a = 1 = 2, `DEFAULT` = `default` where x.b")
    assert isinstance(update, UpdateSet)
    assert [(name, to_text(value)) for name, value in update.assignments] == [("a", "1 = 2"), ("DEFAULT", "`default`")]
    assert update.alias == "x"


def test_merge() -> None:
    found = parse_statement(MERGE)
    assert isinstance(found, MergeInto)
    assert (found.table, found.alias, found.source_alias) == ("t", "x", "y")
    assert [(clause.kind, clause.action, clause.condition is not None) for clause in found.clauses] == [
        (MATCHED, DELETE, True), (MATCHED, UPDATE, False), (NOT_MATCHED, INSERT, True), (NOT_MATCHED, INSERT, False),
        (NOT_MATCHED_BY_SOURCE, UPDATE, False),
    ]  # fmt: skip
    assert found.clauses[3].assignments is None
    assert [name for name, _ in found.clauses[1].assignments or ()] == ["a", "b c"]


def test_a_query_is_none() -> None:
    assert parse_statement("select 1") is None
    assert parse_statement("with q as (select 1) select * from q") is None
    assert parse_statement("values (1)") is None


def test_tables_named() -> None:
    assert tables_named("with q as (select * from u) delete from t where k in (select k from q)") == ({"q", "t", "u"}, {"q"})
    assert tables_named("with t as (select 1) delete from t") == ({"t"}, set())


@pytest.mark.parametrize(
    "text",
    [
        "insert into t select 1 union all delete from t",
        "insert into t values ((delete from u))",
        "insert into t replace where a = 1 select 1",
        "insert ignore into t values (1)",
        "insert into t as x values (1)",
        "merge into t using u on true when matched by source then delete",
        "merge into t using u on true when not matched then do nothing",
        "merge into t using u using (k) when matched then delete",
        "delete from t where a = 1 returning *",
        "update t set a = 1 limit 3",
        "from u insert into t select *",
        "cache table t",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises((ParseError, Unsupported)):
        parse_statement(text)


def test_mutated_statements_are_read_or_refused() -> None:
    """Words left out, doubled and exchanged: an error of ours, or a statement whose every clause was read."""
    random_ = random.Random(0)
    words = sorted({token.text for text in STATEMENTS for token in tokens_of(text)} | {"LIMIT", "RETURNING", "OVERWRITE", ";", ","})
    read = 0
    for _ in range(600):
        text = random_.choice(STATEMENTS)
        tokens = [text[token.start : token.end + 1] for token in tokens_of(text)]
        for _ in range(random_.choice([1, 1, 2, 3])):
            place = random_.randrange(len(tokens))
            tokens[place : place + random_.randrange(2)] = random_.choice([[], [tokens[place]] * 2, [random_.choice(words)]])
        with suppress(NearlyError):
            read += parse_statement(" ".join(tokens)) is not None
    assert read > 20
