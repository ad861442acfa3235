"""nearly for SQLAlchemy: `create_engine("nearly:///catalog?data=lake")` over the DB-API module.

The path is the catalog's directory, a temporary one when it is empty; `data` names a directory whose files are tables, or such a
file. Other parts of the query are options of `nearly.connect`.
"""

from __future__ import annotations

import importlib
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import types as sqltypes
from sqlalchemy.engine import URL
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.interfaces import (
    ReflectedColumn,
    ReflectedForeignKeyConstraint,
    ReflectedIndex,
    ReflectedPrimaryKeyConstraint,
)
from sqlalchemy.exc import NoSuchTableError
from sqlalchemy.sql import compiler

from nearly.errors import UnknownName
from nearly.session import Session
from nearly.version import __version__

_TYPES: dict[str, type[sqltypes.TypeEngine[Any]]] = {
    "boolean": sqltypes.Boolean, "tinyint": sqltypes.SmallInteger, "smallint": sqltypes.SmallInteger, "int": sqltypes.Integer,
    "bigint": sqltypes.BigInteger, "float": sqltypes.Float, "double": sqltypes.Double, "string": sqltypes.String,
    "binary": sqltypes.LargeBinary, "date": sqltypes.Date, "timestamp": sqltypes.DateTime, "timestamp_ntz": sqltypes.DateTime,
}  # fmt: skip


class NearlyPreparer(compiler.IdentifierPreparer):
    """Names in back quotes, as Spark SQL has them."""

    def __init__(self, dialect: Any) -> None:
        super().__init__(dialect, initial_quote="`", final_quote="`")


class NearlyCompiler(compiler.SQLCompiler):
    """Spark SQL: in a text, a backslash has a meaning."""

    def render_literal_value(self, value: Any, type_: Any) -> str:
        rendered = super().render_literal_value(value, type_)
        return rendered.replace("\\", "\\\\") if isinstance(value, str) else rendered


class NearlyTypes(compiler.GenericTypeCompiler):
    """The names of types in Spark SQL."""

    def visit_VARCHAR(self, type_: Any, **kw: Any) -> str:  # noqa: ARG002, N802  the library's own names, as all below
        return "STRING"

    visit_CHAR = visit_NVARCHAR = visit_NCHAR = visit_TEXT = visit_CLOB = visit_VARCHAR  # noqa: N815

    def visit_INTEGER(self, type_: Any, **kw: Any) -> str:  # noqa: ARG002, N802
        return "INT"

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:  # noqa: ARG002, N802
        return "DOUBLE"

    visit_REAL = visit_DOUBLE = visit_DOUBLE_PRECISION = visit_FLOAT  # noqa: N815

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:  # noqa: ARG002, N802
        return f"DECIMAL({type_.precision or 38}, {type_.scale if type_.scale is not None else 10})"

    visit_DECIMAL = visit_NUMERIC  # noqa: N815

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:  # noqa: ARG002, N802
        return "TIMESTAMP"

    def visit_BLOB(self, type_: Any, **kw: Any) -> str:  # noqa: ARG002, N802
        return "BINARY"

    visit_large_binary = visit_BINARY = visit_VARBINARY = visit_BLOB  # noqa: N815


class NearlyDialect(DefaultDialect):
    """Connects, renders and reflects; tables and views of the catalog are those of one schema."""

    name = "nearly"
    driver = "nearly"
    paramstyle = "qmark"
    default_paramstyle = "qmark"
    statement_compiler = NearlyCompiler
    type_compiler_cls = NearlyTypes
    preparer = NearlyPreparer  # type: ignore[assignment]
    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_alter = False
    supports_sequences = False
    supports_default_values = False
    supports_sane_rowcount = True
    insert_returning = False
    postfetch_lastrowid = False
    max_identifier_length = 255

    @classmethod
    def import_dbapi(cls) -> Any:
        return importlib.import_module("nearly.dbapi")

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """The catalog of the path, and the tables that `data` names."""
        options = dict(url.query)
        data = options.pop("data", None)
        named = [] if data is None else [data] if isinstance(data, str) else list(data)
        options["path"] = url.database or tempfile.mkdtemp(prefix="nearly-")
        return [], {**options, "data": {name: source for each in named for name, source in _tables(Path(each)).items()}}

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Nothing: a statement takes effect when it ends."""

    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:  # noqa: ARG002
        return list(_session(connection).tables)

    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:  # noqa: ARG002
        return list(_session(connection).views)

    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:  # noqa: ARG002
        return ["default"]

    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> bool:  # noqa: ARG002
        session = _session(connection)
        return table_name.lower() in {name.lower() for name in (*session.tables, *session.views)}

    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[ReflectedColumn]:  # noqa: ARG002
        return [
            ReflectedColumn(name=column.name, type=_type(str(column.type)), nullable=True, default=None)
            for column in _table(connection, table_name).columns
        ]

    def get_pk_constraint(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any  # noqa: ARG002
    ) -> ReflectedPrimaryKeyConstraint:  # fmt: skip
        return {"constrained_columns": list(_table(connection, table_name).key), "name": None}

    def get_foreign_keys(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any  # noqa: ARG002
    ) -> list[ReflectedForeignKeyConstraint]:  # fmt: skip
        return []

    def get_indexes(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[ReflectedIndex]:  # noqa: ARG002
        return []

    def get_unique_constraints(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:  # noqa: ARG002
        return []

    def get_check_constraints(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:  # noqa: ARG002
        return []

    def _get_server_version_info(self, connection: Any) -> Sequence[int]:  # noqa: ARG002
        return tuple(int(part) for part in __version__.split(".") if part.isdigit())

    def _get_default_schema_name(self, connection: Any) -> str:  # noqa: ARG002
        return "default"


def _tables(place: Path) -> dict[str, Path]:
    """The data files and sub-directories of a directory by name, or the one file."""
    entries = sorted(place.iterdir()) if place.is_dir() else [place]
    return {each.name.partition(".")[0]: each for each in entries if not each.name.startswith((".", "_"))}


def _session(connection: Any) -> Session:
    session: Session = connection.connection.dbapi_connection.session
    return session


def _table(connection: Any, name: str) -> Any:
    try:
        return _session(connection).table(name).info
    except UnknownName:
        raise NoSuchTableError(name) from None


def _type(name: str) -> sqltypes.TypeEngine[Any]:
    decimal = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", name)
    if decimal is not None:
        return sqltypes.Numeric(int(decimal[1]), int(decimal[2]))
    return _TYPES.get(name, sqltypes.NullType)()
