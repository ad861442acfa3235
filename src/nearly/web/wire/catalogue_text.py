"""Queries of Postgres' catalogue, as clients write them, in DuckDB's SQL over the tables of `catalogue_shape`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pg_mimic.arrays import parse_array_literal
from sqlglot import exp

from nearly.web.wire.catalogue_shape import INFORMATION, PG, TABLES
from nearly.web.wire.texts import tables_of
from nearly.web.wire.variables import DEFAULTS

_TYPES = {
    "oid": "BIGINT", "xid": "BIGINT", "regproc": "VARCHAR", "regprocedure": "VARCHAR", "regoper": "VARCHAR", "regrole": "VARCHAR",
    "regoperator": "VARCHAR", "regcollation": "VARCHAR",
    "name": "VARCHAR", "char": "VARCHAR", "text": "VARCHAR", "cstring": "VARCHAR", "bpchar": "VARCHAR", "int2": "SMALLINT",
    "int4": "INTEGER", "int8": "BIGINT", "float4": "FLOAT", "float8": "DOUBLE", "bool": "BOOLEAN", "anyarray": "VARCHAR",
    "cardinal_number": "INTEGER", "sql_identifier": "VARCHAR", "character_data": "VARCHAR", "regconfig": "VARCHAR",
    "int2vector": "SMALLINT[]", "oidvector": "BIGINT[]", "varchar": "VARCHAR", "date": "DATE", "timestamptz": "TIMESTAMPTZ",
}  # fmt: skip
_LOOKUPS = {
    "regclass": ("name_oid", "oid_name"),
    "regtype": ("type_oid", "format_type"),
    "regnamespace": ("namespace_oid", "namespace_name"),
}
About = Mapping[str, str]
"""What functions about the connection say: user, database, version, process."""


def asks_catalogue(tree: exp.Expr) -> bool:
    """Whether a query is about the catalogue: all its tables are, or it has none and asks about the connection."""
    tables = tables_of(tree)
    if tables:
        return all(_room(each) is not None for each in tables)
    return any(_is_about_connection(each) for each in tree.walk())


def _room(table: exp.Table) -> str | None:
    """The schema of `catalogue_shape` that has a table; None where it is none of the catalogue."""
    db, name = table.db.lower(), table.name.lower()
    if db == "information_schema":
        return INFORMATION
    if db == "pg_catalog" or (not db and (name in TABLES[PG] or name.startswith("pg_"))):
        return PG
    return None


def _is_about_connection(node: exp.Expr) -> bool:
    if isinstance(
        node, exp.CurrentUser | exp.SessionUser | exp.CurrentDatabase | exp.CurrentSchema | exp.CurrentVersion | exp.CurrentCatalog
    ):
        return True
    if isinstance(node, exp.Cast):
        return _type_name(node.to) in _LOOKUPS
    return isinstance(node, exp.Anonymous) and (
        node.name.lower().startswith(("pg_", "has_", "inet_", "to_reg")) or node.name.lower() in _ABOUT
    )


_ABOUT = {
    "current_setting",
    "set_config",
    "version",
    "current_schemas",
    "format_type",
    "obj_description",
    "col_description",
    "txid_current",
}


def catalogue_text(tree: exp.Expr, about: About, settings: Callable[[str], str]) -> str:
    """The query in DuckDB's SQL; its parameters are replaced already."""
    root = exp.Paren(this=tree.copy())
    for node in reversed(list(root.walk())):
        new = _rewritten(node, about, settings)
        if new is not node:
            node.replace(new)
    return str(root.this.sql(dialect="duckdb"))


def _rewritten(node: exp.Expr, about: About, settings: Callable[[str], str]) -> exp.Expr:
    """What stands in the place of a node, whose own parts are rewritten already."""
    match node:
        case exp.Anonymous():
            return _call(node, about, settings)
        case exp.CurrentUser() | exp.SessionUser():
            return exp.Literal.string(about["user"])
        case exp.CurrentDatabase() | exp.CurrentCatalog():
            return exp.Literal.string(about["database"])
        case exp.CurrentSchema():
            return exp.Literal.string("public")
        case exp.CurrentVersion():
            return exp.Literal.string(about["version"])
        case exp.Column() if isinstance(node.this, exp.Identifier) and not node.this.quoted and node.sql().lower() == "user":
            return exp.Literal.string(about["user"])
        case exp.Table() if node.name.lower() == "pg_settings" and _room(node) == PG:
            return _settings(node, settings)
    return _respelled(node)


def _settings(table: exp.Table, settings: Callable[[str], str]) -> exp.Expr:
    """The settings of the connection as a table."""
    rows = [exp.Tuple(expressions=[exp.Literal.string(each), exp.Literal.string(settings(each))]) for each in sorted(DEFAULTS)]
    told = (
        "setting AS boot_val, setting AS reset_val, 'nearly' AS category, '' AS short_desc, '' AS extra_desc, 'user' AS context, "
        "'string' AS vartype, 'default' AS source, NULL AS unit, NULL AS min_val, NULL AS max_val, NULL AS enumvals, "
        "NULL AS sourcefile, NULL AS sourceline, false AS pending_restart"
    )
    found = exp.Subquery(this=exp.maybe_parse(f"SELECT name, setting, {told} FROM given", dialect="duckdb"))
    names = exp.TableAlias(this=exp.to_identifier("given"), columns=[exp.to_identifier("name"), exp.to_identifier("setting")])
    given = found.find(exp.Table)
    if given is not None:
        given.replace(exp.Values(expressions=rows, alias=names))
    found.set("alias", exp.TableAlias(this=exp.to_identifier(table.alias or "pg_settings")))
    return found


def _respelled(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.Table():
            return _placed(node)
        case exp.Div() if _is_whole(node.this) and _is_whole(node.expression):
            return exp.IntDiv(this=node.this, expression=node.expression)
        case exp.Dot() if isinstance(node.this, exp.Identifier) and node.this.name.lower() in ("pg_catalog", "information_schema"):
            return node.expression
        case exp.Column() if node.name.lower() == "tableoid":
            return exp.cast(exp.Literal.number(0), "BIGINT")
        case exp.Column() if node.args.get("db") is not None:
            node.set("db", None)
            node.set("catalog", None)
            return node
        case exp.Collate():
            return node.this
        case exp.Operator():
            return _operator(node)
        case exp.ByteString():
            return exp.Literal.string(node.name)
        case exp.Cast():
            return _cast(node)
    return node


def _placed(table: exp.Table) -> exp.Expr:
    """A table, or a function in FROM, where DuckDB finds it."""
    if not isinstance(table.this, exp.Identifier):
        return _function_table(table)
    room = _room(table)
    known = bool(table.db) or table.name.lower() in TABLES[PG]
    return _moved(table, room) if room is not None and known else table


def _moved(table: exp.Table, room: str) -> exp.Expr:
    moved = table.copy()
    moved.set("this", exp.to_identifier(table.name.lower()))
    moved.set("db", exp.to_identifier(room))
    moved.set("catalog", None)
    if not moved.alias:
        moved.set("alias", exp.TableAlias(this=exp.to_identifier(table.name.lower())))
    return moved


def _function_table(table: exp.Table) -> exp.Expr:
    """A function in FROM: what it gives is called like the table, and one value is a table of one row."""
    table.set("db", None)
    alias = table.args.get("alias")
    if alias is None or alias.columns or table.this.name.lower().startswith("pg_"):
        return table
    if isinstance(table.this, exp.StringToArray):
        return exp.Subquery(this=exp.Select(expressions=[exp.alias_(table.this.copy(), alias.name)]), alias=alias.copy())
    alias.set("columns", [exp.to_identifier(alias.name)])
    return table


def _is_whole(node: exp.Expr) -> bool:
    if isinstance(node, exp.Literal):
        return bool(node.is_int)
    return isinstance(node, exp.Cast) and isinstance(node.to, exp.DataType) and node.to.this in exp.DataType.INTEGER_TYPES


def _operator(node: exp.Operator) -> exp.Expr:
    sign = str(node.args["operator"]).rpartition(".")[2]
    left, right = node.this, node.expression
    if isinstance(right, exp.Collate):
        right = right.this
    match sign:
        case "~" | "!~" | "~*" | "!~*":
            found: exp.Expr = exp.Anonymous(
                this="regexp_matches", expressions=[left, right, *([exp.Literal.string("i")] if "*" in sign else [])]
            )
        case "~~" | "!~~":
            found = exp.Like(this=left, expression=right)
        case "=":
            return exp.EQ(this=left, expression=right)
        case "<>":
            return exp.NEQ(this=left, expression=right)
        case _:
            return node
    return exp.Not(this=found) if sign.startswith("!") else found


def _cast(node: exp.Cast) -> exp.Expr:
    to = node.to
    array = isinstance(to, exp.DataType) and to.this == exp.DType.ARRAY
    inner = to.expressions[0] if array and to.expressions else to
    name = _type_name(inner)
    if name in _LOOKUPS and not array:
        find, tell = _LOOKUPS[name]
        if isinstance(node.this, exp.Literal):
            return exp.Anonymous(this=find, expressions=[exp.Literal.string(node.this.name)])
        if isinstance(node.parent, exp.Cast) and _type_name(node.parent.to) == "oid":
            return node.this
        return exp.Anonymous(this=tell, expressions=[node.this, *([exp.Null()] if tell == "format_type" else [])])
    if array and isinstance(node.this, exp.Literal) and node.this.is_string and node.this.name.startswith("{"):
        return exp.Cast(
            this=exp.Array(expressions=_items(node.this.name)),
            to=exp.DataType.build(f"{_TYPES.get(name, 'VARCHAR')}[]", dialect="duckdb"),
        )
    if name in _TYPES:
        return exp.Cast(this=node.this, to=exp.DataType.build(_TYPES[name] + ("[]" if array else ""), dialect="duckdb"))
    return node


def _items(text: str) -> list[exp.Expr]:
    """What an array of Postgres has, as text."""
    return [exp.Null() if each is None else exp.Literal.string(str(each)) for each in parse_array_literal(text)]


def _type_name(to: exp.Expr) -> str:
    """The plain name of a type, without `pg_catalog` before it and quotes around it."""
    if isinstance(to, exp.DataType) and to.this == exp.DType.USERDEFINED:
        kind = to.args.get("kind")
        return (
            str(kind.sql(dialect="postgres") if isinstance(kind, exp.Expression) else kind)
            .replace('"', "")
            .lower()
            .removeprefix("pg_catalog.")
        )
    if isinstance(to, exp.DataType) and to.this == exp.DType.NAME:
        return "name"
    return str(to.sql(dialect="postgres")).replace('"', "").lower().removeprefix("pg_catalog.")


def _call(node: exp.Anonymous, about: About, settings: Callable[[str], str]) -> exp.Expr:
    given = node.expressions
    match node.name.lower():
        case "current_setting" if given:
            asked = given[0].unnest() if not isinstance(given[0], exp.Cast) else given[0].this
            return exp.Literal.string(settings(asked.name.lower()) if isinstance(asked, exp.Literal) else "")
        case "set_config" if len(given) > 1 and isinstance(given[1], exp.Literal):
            return exp.Literal.string(given[1].name)
        case "json_build_object" | "jsonb_build_object":
            return exp.Anonymous(this="json_object", expressions=given)
        case "current_schemas":
            return exp.Array(expressions=[exp.Literal.string(each) for each in ("pg_catalog", "public")])
        case "current_schema":
            return exp.Literal.string("public")
        case "version":
            return exp.Literal.string(about["version"])
        case "pg_backend_pid":
            return exp.Literal.number(about["pid"])
    return node
