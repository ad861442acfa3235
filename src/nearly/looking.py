"""Statements that look at what there is instead of asking a question: SHOW TABLES, SHOW COLUMNS, DESCRIBE and EXPLAIN."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from nearly.errors import ParseError

if TYPE_CHECKING:
    from nearly.session import Session

_NAME = r"(?:`(?P<quoted>[^`]+)`|(?P<name>\w+))"
_SHOW_TABLES = re.compile(r"show\s+(?P<kind>tables|views)(?:\s+like\s+'(?P<like>[^']*)')?", re.IGNORECASE)
_SHOW_COLUMNS = re.compile(rf"show\s+columns\s+(?:from|in)\s+{_NAME}", re.IGNORECASE)
_DESCRIBE = re.compile(r"desc(?:ribe)?\s+(?:table\s+|query\s+)?(?:extended\s+)?(?P<what>.+)", re.IGNORECASE | re.DOTALL)
_EXPLAIN = re.compile(r"explain\s+(?P<what>.+)", re.IGNORECASE | re.DOTALL)
_TABLES = pa.schema(
    [("name", pa.string()), ("kind", pa.string()), ("rows", pa.int64()), ("columns", pa.int64()), ("from", pa.string())]
)
_COLUMNS = pa.schema([("column", pa.string()), ("type", pa.string()), ("nullable", pa.bool_())])


def look(db: Session, text: str) -> pa.Table | None:
    """What a statement shows; None where the text is no such statement."""
    plain = text.strip().rstrip(";").strip()
    for pattern, shown in _LOOKS:
        match = pattern.fullmatch(plain)
        if match is not None:
            return shown(db, match)
    if re.match(r"show\s|desc(ribe)?\s*$|explain\s*$", plain, re.IGNORECASE):
        raise ParseError(
            "write SHOW TABLES, SHOW VIEWS, SHOW COLUMNS FROM name, DESCRIBE name, DESCRIBE SELECT ... or EXPLAIN SELECT ..."
        )
    return None


def is_look(text: str) -> bool:
    """Whether a text begins as such a statement does."""
    return re.match(r"\s*(show|desc|describe|explain)\b", text, re.IGNORECASE) is not None


def looked_at(text: str) -> str | None:
    """The name or the query that a statement is about; None where it is about all, or is no such statement."""
    plain = text.strip().rstrip(";").strip()
    for pattern in (_SHOW_COLUMNS, _DESCRIBE, _EXPLAIN):
        match = pattern.fullmatch(plain)
        if match is not None:
            return match["what"] if "what" in match.re.groupindex else f"select * from `{match['quoted'] or match['name']}`"
    return None


def tables_of(db: Session, kind: str = "tables", like: str | None = None) -> pa.Table:
    """The tables and views of a session, a row each."""
    views = {name.lower() for name in db.views}
    names = sorted({*db.views, *(db.tables if kind == "tables" else ())})
    shape = None if like is None else re.compile(re.escape(like).replace("\\*", ".*").replace("%", ".*"), re.IGNORECASE)
    rows = []
    for name in names:
        if shape is None or shape.fullmatch(name):
            info = db.table(name).info
            what = "view" if name.lower() in views else "table"
            origin = "" if what == "view" else str(info.origin)
            rows.append({"name": name, "kind": what, "rows": info.rows, "columns": len(info.columns), "from": origin})
    return pa.Table.from_pylist(rows, schema=_TABLES)


def columns_of(db: Session, name: str) -> pa.Table:
    """The columns of a table, a row each."""
    found = [(column.name, str(column.type), column.nullable) for column in db.table(name).info.columns]
    return _columns(found)


def columns_of_query(db: Session, text: str) -> pa.Table:
    """The columns that a query would have."""
    return _columns([(name, str(type_), True) for name, type_ in db.sql(text).columns])


def _columns(found: list[tuple[str, str, bool]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(_COLUMNS.names, row, strict=True)) for row in found], schema=_COLUMNS)


def _described(db: Session, match: re.Match[str]) -> pa.Table:
    what = match["what"].strip()
    name = re.fullmatch(_NAME, what)
    return columns_of_query(db, what) if name is None else columns_of(db, name["quoted"] or name["name"])


def _explained(db: Session, match: re.Match[str]) -> pa.Table:
    return pa.table({"plan": pa.array(db.sql(match["what"]).explain().splitlines(), pa.string())})


_LOOKS: tuple[tuple[re.Pattern[str], Callable[[Session, re.Match[str]], pa.Table]], ...] = (
    (_SHOW_TABLES, lambda db, match: tables_of(db, match["kind"].lower(), match["like"])),
    (_SHOW_COLUMNS, lambda db, match: columns_of(db, match["quoted"] or match["name"])),
    (_DESCRIBE, _described),
    (_EXPLAIN, _explained),
)
