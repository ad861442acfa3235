"""The rows of Postgres' catalogue: its types, and the tables and views of a session."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pg_mimic import ARRAY_OID

from nearly.errors import NearlyError
from nearly.plan.types import DataType, Decimal
from nearly.session import Session
from nearly.web.wire import catalogue_keys, kinds
from nearly.web.wire.catalogue_keys import Entry, key_name, key_rows
from nearly.web.wire.catalogue_shape import BTREE, BTREE_OID, DATABASE_OID, HEAP_OID, INFORMATION, NAMESPACES, OWNER, PG
from nearly.web.wire.texts import DATABASE, SCHEMA

FIRST_OID = 16384
TABLE, VIEW, INDEX = "r", "m", "i"
Column = tuple[str, DataType, bool]


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or a view; `text` is the query of a view, `key` the columns that tell the rows of a table apart."""

    name: str
    kind: str
    rows: int
    columns: tuple[Column, ...]
    text: str = ""
    key: tuple[str, ...] = ()

    @property
    def placed_key(self) -> list[tuple[str, int]]:
        """The columns of the key with their places in the table, from one on."""
        places = {name.lower(): (name, place) for place, (name, *_) in enumerate(self.columns, 1)}
        return [places[name.lower()] for name in self.key]


FILLED = (
    *catalogue_keys.FILLED, (PG, "definitions"),
    (PG, "pg_class"), (PG, "pg_attribute"), (PG, "pg_tables"), (PG, "pg_matviews"), (PG, "pg_stat_user_tables"),
    (INFORMATION, "tables"), (INFORMATION, "columns"), (INFORMATION, "table_privileges"),
)  # fmt: skip
"""The tables whose rows change with those of the session."""


def relations_of(db: Session) -> tuple[Relation, ...]:
    """The tables and views of a session; a view that cannot be read is left out."""
    found: list[Relation] = []
    for name in db.tables:
        table = db.table(name).info
        columns = tuple((each.name, each.type, each.nullable) for each in table.columns)
        found.append(Relation(table.name, TABLE, table.rows, columns, key=tuple(table.key)))
    for name in db.views:
        try:
            view = db.view(name)
            columns = tuple((each, type_, True) for each, type_ in db.sql(f"select * from `{name}`").columns)
            found.append(Relation(view.name, VIEW, view.table.rows, columns, view.text))
        except NearlyError:
            continue
    return tuple(found)


def fixed_rows() -> Iterator[Entry]:
    """What is the same for every session: types, schemas, the database and its one role."""
    for oid in kinds.KNOWN:
        name, array = kinds.short_name(oid), int(ARRAY_OID.get(oid, 0))
        yield from _type(oid, name, _category(oid), array=array)
        if array:
            yield from _type(array, f"_{name}", "A", element=oid)
    for name, oid in NAMESPACES.items():
        yield PG, "pg_namespace", {"oid": oid, "nspname": name, "nspowner": OWNER}
        yield INFORMATION, "schemata", {"catalog_name": DATABASE, "schema_name": name, "schema_owner": DATABASE}
    yield PG, "pg_database", {
        "oid": DATABASE_OID, "datname": DATABASE, "datdba": OWNER, "encoding": 6, "datcollate": "C.UTF-8", "datctype": "C.UTF-8",
        "datistemplate": False, "datallowconn": True, "datconnlimit": -1, "dattablespace": 1663,
    }  # fmt: skip
    yield PG, "pg_roles", {
        "oid": OWNER, "rolname": DATABASE, "rolsuper": False, "rolinherit": True, "rolcreaterole": False, "rolcreatedb": False,
        "rolcanlogin": True, "rolreplication": False, "rolconnlimit": -1, "rolbypassrls": False,
    }  # fmt: skip
    yield PG, "pg_user", {"usename": DATABASE, "usesysid": OWNER, "usecreatedb": False, "usesuper": False}
    yield PG, "pg_am", {"oid": HEAP_OID, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"}
    yield PG, "pg_am", {"oid": BTREE_OID, "amname": BTREE, "amhandler": "bthandler", "amtype": "i"}
    yield PG, "pg_tablespace", {"oid": 1663, "spcname": "pg_default", "spcowner": OWNER}
    yield INFORMATION, "enabled_roles", {"role_name": DATABASE}


def _type(oid: int, name: str, category: str, array: int = 0, element: int = 0) -> Iterator[Entry]:
    stem = "array_" if element else name
    yield PG, "pg_type", {
        "oid": oid, "typname": name, "typnamespace": NAMESPACES["pg_catalog"], "typowner": OWNER, "typlen": -1, "typbyval": False,
        "typtype": "b", "typcategory": category, "typispreferred": False, "typisdefined": True, "typdelim": ",", "typrelid": 0,
        "typelem": element, "typarray": array, "typinput": f"{stem}in", "typoutput": f"{stem}out", "typreceive": f"{stem}recv",
        "typsend": f"{stem}send", "typnotnull": False, "typbasetype": 0, "typtypmod": -1, "typndims": 0, "typcollation": 0,
    }  # fmt: skip
    yield PG, "type_names", {"oid": oid, "typname": name, "sql_name": kinds.sql_name(oid)}


def relation_rows(relations: tuple[Relation, ...]) -> Iterator[Entry]:
    """What the catalogue says of tables and views."""
    taken: set[int] = set()
    numbered = [(each, _oid(each.name, taken)) for each in relations]
    for relation, oid in numbered:
        name, kind, rows = relation.name, relation.kind, relation.rows
        yield PG, "pg_class", _class(oid, relation) | {"relhasindex": bool(relation.key)}
        for place, column in enumerate(relation.columns, 1):
            yield PG, "pg_attribute", _attribute(oid, place, column)
            yield INFORMATION, "columns", _described(name, place, column)
        if relation.key:
            index = _oid(key_name(name), taken)
            shape = Relation(key_name(name), INDEX, rows, tuple(relation.columns[place - 1] for _, place in relation.placed_key))
            yield PG, "pg_class", _class(index, shape) | {"relam": BTREE_OID}
            for place, column in enumerate(shape.columns, 1):
                yield PG, "pg_attribute", _attribute(index, place, column)
            yield from key_rows(name, oid, index, relation.placed_key)
        where = {"table_catalog": DATABASE, "table_schema": SCHEMA, "table_name": name}
        told = "BASE TABLE" if kind == TABLE else "VIEW"
        yield INFORMATION, "tables", where | {"table_type": told, "is_insertable_into": "NO", "is_typed": "NO"}
        granted = {"grantor": DATABASE, "grantee": DATABASE, "privilege_type": "SELECT", "is_grantable": "NO"}
        yield INFORMATION, "table_privileges", where | granted
        yield PG, "pg_stat_user_tables", {"relid": oid, "schemaname": SCHEMA, "relname": name, "n_live_tup": rows}
        if kind == TABLE:
            facts = dict.fromkeys(("hasrules", "hastriggers", "rowsecurity"), False) | {"hasindexes": bool(relation.key)}
            yield PG, "pg_tables", {"schemaname": SCHEMA, "tablename": name, "tableowner": DATABASE} | facts
        else:
            kept = {"schemaname": SCHEMA, "matviewname": name, "matviewowner": DATABASE, "ispopulated": True}
            yield PG, "pg_matviews", kept | {"definition": relation.text}


def _class(oid: int, relation: Relation) -> dict[str, Any]:
    nothing = dict.fromkeys(
        ("reltype", "reloftype", "reltablespace", "relallvisible", "reltoastrelid", "relchecks", "relrewrite"), 0
    )
    never = dict.fromkeys(
        ("relisshared", "relhasrules", "relhastriggers", "relhassubclass", "relrowsecurity", "relforcerowsecurity",
         "relispartition", "relhasoids"), False,
    )  # fmt: skip
    own = {
        "oid": oid, "relname": relation.name, "relnamespace": NAMESPACES[SCHEMA], "relowner": OWNER, "relam": HEAP_OID,
        "relfilenode": oid, "relpages": min(relation.rows // 100 + 1, 2**31 - 1), "reltuples": float(relation.rows),
        "relpersistence": "p", "relkind": relation.kind, "relnatts": len(relation.columns), "relhasindex": False,
        "relispopulated": True, "relreplident": "d", "xmin": 1, "relacl": [f"{DATABASE}=r/{DATABASE}"],
    }  # fmt: skip
    return nothing | never | own


def _attribute(oid: int, place: int, column: Column) -> dict[str, Any]:
    name, type_, nullable = column
    never = dict.fromkeys(("attbyval", "atthasdef", "atthasmissing", "attisdropped"), False)
    return never | {
        "attrelid": oid, "attname": name, "atttypid": kinds.oid_of(type_), "attstattarget": -1, "attlen": -1, "attnum": place,
        "attndims": 0, "atttypmod": kinds.typmod(type_), "attstorage": "p", "attcompression": "", "attnotnull": not nullable,
        "attidentity": "", "attgenerated": "", "attislocal": True, "attinhcount": 0, "attcollation": 0,
    }  # fmt: skip


def _described(table: str, place: int, column: Column) -> dict[str, Any]:
    name, type_, nullable = column
    oid = kinds.oid_of(type_)
    own = {
        "table_catalog": DATABASE, "table_schema": SCHEMA, "table_name": table, "column_name": name, "ordinal_position": place,
        "is_nullable": "YES" if nullable else "NO", "data_type": kinds.sql_name(oid), "udt_catalog": DATABASE,
        "udt_schema": "pg_catalog", "udt_name": kinds.short_name(oid), "is_identity": "NO", "is_generated": "NEVER",
        "is_updatable": "NO",
    }  # fmt: skip
    digits = {"numeric_precision_radix": 10}
    return (
        own | digits | {"numeric_precision": type_.precision, "numeric_scale": type_.scale} if isinstance(type_, Decimal) else own
    )


def _oid(name: str, taken: set[int]) -> int:
    """A number that a name keeps as long as it can."""
    oid = FIRST_OID + zlib.crc32(name.encode()) % (1 << 30)
    while oid in taken:
        oid += 1
    taken.add(oid)
    return oid


def _category(oid: int) -> str:
    """Postgres' letter for a kind of type."""
    letters = {"N": (20, 21, 23, 26, 700, 701, 1700), "S": (19, 25, 1042, 1043), "D": (1082, 1114, 1184), "B": (16,), "T": (1186,)}
    return next((letter for letter, oids in letters.items() if oid in oids), "U")
