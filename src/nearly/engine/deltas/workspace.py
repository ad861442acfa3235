"""The temporary tables of one delta: they belong to one cursor of the driver's engine, and are gone with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from nearly.engine.native.failures import explained
from nearly.plan.quoting import native_name

_GIVEN = "nearly_given"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Runs statements one after the other."""

    cursor: duckdb.DuckDBPyConnection

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """What a statement gives, all of it."""
        try:
            found: list[tuple[Any, ...]] = self.cursor.execute(sql).fetchall()
        except duckdb.Error as trouble:
            raise explained(trouble) from trouble
        return found

    def keep(self, name: str, sql: str) -> int:
        """Have the rows of a query as a temporary table; how many there are."""
        ((rows,),) = self.execute(f"CREATE OR REPLACE TEMP TABLE {native_name(name)} AS {sql}")
        return int(rows)

    def keep_given(self, name: str, rows: pa.Table) -> int:
        """Have given rows as a temporary table."""
        self.cursor.register(_GIVEN, rows)
        try:
            return self.keep(name, f"SELECT * FROM {_GIVEN}")
        finally:
            self.cursor.unregister(_GIVEN)

    def show(self, name: str, rows: pa.Table | str) -> None:
        """Let given rows, or those of a query, be read under a name where they lie."""
        if isinstance(rows, str):
            self.execute(f"CREATE OR REPLACE TEMP VIEW {native_name(name)} AS {rows}")
        else:
            self.cursor.register(name, rows)

    def table(self, sql: str) -> pa.Table:
        """The rows of a query."""
        try:
            return self.cursor.sql(sql).to_arrow_table()
        except duckdb.Error as trouble:
            raise explained(trouble) from trouble

    def rows(self, name: str) -> pa.Table:
        """The rows of a temporary table."""
        return self.table(f"SELECT * FROM {native_name(name)}")

    def count(self, rows: str) -> int:
        """How many rows a FROM clause has."""
        ((found,),) = self.execute(f"SELECT count(*) FROM {rows}")
        return int(found)
