"""Keys of tables in Postgres' catalogue: what `key=` states is a primary key there, with an index of its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nearly.web.wire.catalogue_shape import BTREE, INFORMATION, NAMESPACES, PG
from nearly.web.wire.texts import DATABASE, SCHEMA

Entry = tuple[str, str, dict[str, Any]]
"""A schema of `catalogue_shape`, a table of it, and values of its columns; others are null."""
PRIMARY = "p"

FILLED = (
    (PG, "pg_index"), (PG, "pg_constraint"), (PG, "pg_indexes"), (INFORMATION, "table_constraints"),
    (INFORMATION, "key_column_usage"), (INFORMATION, "constraint_column_usage"),
)  # fmt: skip
"""The tables whose rows are made here."""


def key_name(table: str) -> str:
    """What Postgres calls the primary key of a table, and its index."""
    return f"{table}_pkey"


def key_rows(table: str, oid: int, index: int, key: Sequence[tuple[str, int]]) -> Iterator[Entry]:
    """What the catalogue says of a key, given by its columns and their places in the table; `index` is the number of its index."""
    name, places = key_name(table), [place for _, place in key]
    columns = ", ".join(quoted(column) for column, _ in key)
    sure = dict.fromkeys(("indisunique", "indisprimary", "indimmediate", "indisvalid", "indisready", "indislive"), True)
    never = dict.fromkeys(("indnullsnotdistinct", "indisexclusion", "indisclustered", "indcheckxmin", "indisreplident"), False)
    zeros = [0] * len(key)
    yield PG, "pg_index", sure | never | {
        "indexrelid": index, "indrelid": oid, "indnatts": len(key), "indnkeyatts": len(key), "indkey": places,
        "indcollation": zeros, "indclass": zeros, "indoption": zeros,
    }  # fmt: skip
    yield PG, "pg_constraint", {
        "oid": index, "conname": name, "connamespace": NAMESPACES[SCHEMA], "contype": PRIMARY, "condeferrable": False,
        "condeferred": False, "convalidated": True, "conrelid": oid, "contypid": 0, "conindid": index, "conparentid": 0,
        "confrelid": 0, "conkey": places, "conislocal": True, "connoinherit": True,
    }  # fmt: skip
    definition = f"CREATE UNIQUE INDEX {quoted(name)} ON {SCHEMA}.{quoted(table)} USING {BTREE} ({columns})"
    yield PG, "pg_indexes", {"schemaname": SCHEMA, "tablename": table, "indexname": name, "indexdef": definition}
    yield PG, "definitions", {"oid": index, "of_index": definition, "of_key": f"PRIMARY KEY ({columns})"}
    yield from _information(table, name, key)


def _information(table: str, name: str, key: Sequence[tuple[str, int]]) -> Iterator[Entry]:
    where = {"table_catalog": DATABASE, "table_schema": SCHEMA, "table_name": table}
    which = where | {"constraint_catalog": DATABASE, "constraint_schema": SCHEMA, "constraint_name": name}
    told = {"constraint_type": "PRIMARY KEY", "is_deferrable": "NO", "initially_deferred": "NO"}
    yield INFORMATION, "table_constraints", which | told
    for place, (column, _) in enumerate(key, 1):
        yield INFORMATION, "key_column_usage", which | {"column_name": column, "ordinal_position": place}
        yield INFORMATION, "constraint_column_usage", which | {"column_name": column}


def quoted(name: str) -> str:
    """A name as Postgres writes it.

    >>> quoted("id"), quoted("Id")
    ('id', '"Id"')
    """
    plain = name.isascii() and name.replace("_", "a").isalnum() and name == name.lower() and not name[0].isdigit()
    return name if plain else '"' + name.replace('"', '""') + '"'
