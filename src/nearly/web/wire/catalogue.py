"""Postgres' catalogue of the session's tables: kept in a DuckDB of its own, filled anew when tables come, change or go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

import duckdb
import pyarrow as pa
from sqlglot import exp

from nearly.plan.types import DataType
from nearly.session import Session
from nearly.web.wire.catalogue_functions import MACROS, VIEWS
from nearly.web.wire.catalogue_keys import Entry
from nearly.web.wire.catalogue_rows import FILLED, Relation, fixed_rows, relation_rows, relations_of
from nearly.web.wire.catalogue_shape import PG, TABLES
from nearly.web.wire.catalogue_text import About, catalogue_text

FRESH_SECONDS = 0.5
"""What is known of the tables is taken as it is for so long: clients send many queries of the catalogue at once."""
MOST_SECONDS = 10.0
"""Of a query of the catalogue."""


class Catalogue:
    """Answers queries of `pg_catalog` and `information_schema`. Whatever is asked, it reads nothing but its own tables."""

    def __init__(self, db: Session) -> None:
        self._db = db
        self._engine = duckdb.connect()
        self._lock = threading.Lock()
        self._relations: tuple[Relation, ...] = ()
        self._until = 0.0
        for room, tables in TABLES.items():
            self._engine.execute(f"CREATE SCHEMA {room}")
            for name, columns in tables.items():
                self._engine.execute(f"CREATE TABLE {room}.{name} ({columns})")
        self._engine.execute(f"CREATE TABLE {PG}.type_names (oid BIGINT, typname VARCHAR, sql_name VARCHAR)")
        self._engine.execute(f"CREATE TABLE {PG}.definitions (oid BIGINT, of_index VARCHAR, of_key VARCHAR)")
        self._insert(fixed_rows())
        for name, query in VIEWS.items():
            self._engine.execute(f"CREATE VIEW {PG}.{name} AS {query}")
        for macro in MACROS:
            self._engine.execute(f"CREATE OR REPLACE MACRO {macro}")
        for setting in ("memory_limit = '256MB'", "threads = 1", "enable_external_access = false", "lock_configuration = true"):
            self._engine.execute(f"SET {setting}")

    def lookup(self) -> CatalogueLookup:
        """A query of its own, beside which others run."""
        with self._lock:
            self._refresh()
            return CatalogueLookup(self._engine.cursor())

    def columns_of(self, name: str) -> dict[str, DataType]:
        """The types of a table's or a view's columns by name in small letters; none where there is no such table."""
        with self._lock:
            self._refresh()
            for relation in self._relations:
                if relation.name.lower() == name.lower():
                    return {column.lower(): type_ for column, type_, _ in relation.columns}
        return {}

    def _refresh(self) -> None:
        if time.monotonic() < self._until:
            return
        relations = relations_of(self._db)
        self._until = time.monotonic() + FRESH_SECONDS
        if relations != self._relations:
            for room, table in FILLED:
                self._engine.execute(f"DELETE FROM {room}.{table}")
            self._insert(relation_rows(relations))
            self._relations = relations

    def _insert(self, rows: Iterable[Entry]) -> None:
        for room, table, values in rows:
            marks = ", ".join("?" * len(values))
            self._engine.execute(f"INSERT INTO {room}.{table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))


class CatalogueLookup:
    """One query of the catalogue, which can be stopped and never takes long."""

    def __init__(self, engine: duckdb.DuckDBPyConnection) -> None:
        self._engine = engine
        self.stop = engine.interrupt

    def answer(self, tree: exp.Expr, about: About, settings: Callable[[str], str]) -> pa.Table:
        """The rows of a query."""
        limit = threading.Timer(MOST_SECONDS, self.stop)
        limit.start()
        try:
            return self._engine.sql(catalogue_text(tree, about, settings)).to_arrow_table()
        finally:
            limit.cancel()
            self._engine.close()
