"""Parameters of prepared statements: their types where the client does not tell them, and their values in the query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pg_mimic import ARRAY_OID, PgError
from pg_mimic.types import BYTEA, DATE, FLOAT8, INT8, NUMERIC, TEXT, UNKNOWN
from sqlglot import exp
from sqlglot.errors import SqlglotError

from nearly.errors import ParseError
from nearly.plan.types import DataType
from nearly.web.wire import kinds
from nearly.web.wire.texts import Give, parameters_of, tables_of

Value = str | list[Any] | exp.Expr | None
"""Of a parameter: its text, as clients bind it, those of an array, or an expression."""
Columns = Callable[[str], dict[str, DataType]]
_CASTS = {
    "INT": 23, "BIGINT": INT8, "SMALLINT": 21, "TEXT": TEXT, "VARCHAR": TEXT, "DOUBLE": FLOAT8, "FLOAT": 700, "DECIMAL": NUMERIC,
    "BOOLEAN": 16, "DATE": DATE, "TIMESTAMP": 1114, "TIMESTAMPTZ": 1184, "CHAR": 1042, "BPCHAR": 1042, "VARBINARY": BYTEA,
    "NAME": 19, "INTERVAL": 1186, "UNKNOWN": UNKNOWN,
}  # fmt: skip
_ALIKE = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Coalesce)


def parameter_types(tree: exp.Expr, told: Sequence[int | None], columns: Columns) -> list[int | None]:
    """The type of each parameter: as the client told, else as the place where it stands asks for."""
    found = parameters_of(tree)
    known = _columns_in(tree, columns)
    count = max([*found, len(told)], default=0)
    types: list[int | None] = []
    for number in range(1, count + 1):
        given = told[number - 1] if number <= len(told) else None
        if given in (None, 0, UNKNOWN):
            given = _inserted(found[number], columns) or _asked(found[number], known) if number in found else TEXT
        types.append(given)
    return types


def _inserted(parameter: exp.Parameter, columns: Columns) -> int | None:
    """The type of the column that takes a parameter which stands by itself among the values of an INSERT."""
    row = parameter.parent
    insert = row.parent.parent if isinstance(row, exp.Tuple) and isinstance(row.parent, exp.Values) else None
    if not isinstance(insert, exp.Insert):
        return None
    target = insert.this
    table = target.this if isinstance(target, exp.Schema) else target
    types = columns(table.name)
    names = [each.name.lower() for each in (target.expressions if isinstance(target, exp.Schema) else ())] or list(types)
    place = next(place for place, each in enumerate(row.expressions if row is not None else ()) if each is parameter)
    type_ = types.get(names[place]) if place < len(names) else None
    return None if type_ is None else kinds.oid_of(type_)


def oid_named(name: str) -> int:
    """The type that Postgres calls so.

    >>> oid_named("int"), oid_named("numeric(9, 2)"), oid_named("text[]")
    (23, 1700, 1009)
    """
    try:
        kind = exp.DataType.build(name, dialect="postgres")
    except (SqlglotError, ValueError):
        kind = exp.DataType(this=exp.DType.USERDEFINED)
    array = kind.this == exp.DType.ARRAY and bool(kind.expressions)
    inner = kind.expressions[0].this if array else kind.this
    oid = _CASTS.get(str(getattr(inner, "value", inner)))
    if oid is None or (array and oid not in ARRAY_OID):
        raise PgError("42704", f"type {name[:60]!r} does not exist")
    return int(ARRAY_OID[oid]) if array else oid


def _columns_in(tree: exp.Expr, columns: Columns) -> dict[str, DataType]:
    found: dict[str, DataType] = {}
    for table in tables_of(tree):
        for name, type_ in columns(table.name).items():
            found.setdefault(name, type_)
    return found


def _asked(parameter: exp.Parameter, known: dict[str, DataType]) -> int:
    parent = parameter.parent
    if isinstance(parameter.find_ancestor(exp.Limit, exp.Offset, exp.Select), exp.Limit | exp.Offset):
        return INT8
    while isinstance(parent, exp.Paren | exp.Neg):
        parent = parent.parent
    if isinstance(parent, exp.Cast) and isinstance(parent.to, exp.DataType):
        return _CASTS.get(str(getattr(parent.to.this, "value", parent.to.this)), TEXT)
    if isinstance(parent, _ALIKE):
        for column in parent.find_all(exp.Column):
            type_ = known.get(column.name.lower())
            if type_ is not None:
                return kinds.oid_of(type_)
    return TEXT


def giver(values: Sequence[Value] | None, types: Sequence[int | None]) -> Give:
    """What stands in the place of a parameter: its value, or, while there is none, a null of its type."""

    def give(number: int, counts: bool) -> exp.Expr:
        oid = types[number - 1] if number <= len(types) else None
        value = None if values is None or number > len(values) else values[number - 1]
        if not counts:
            return kinds.literal(value, oid)
        if value is not None and (not isinstance(value, str) or not value.isdecimal()):
            raise ParseError(f"LIMIT and OFFSET take a number of rows, not {value!r}")
        return exp.Literal.number(1 if value is None else int(value))

    return give
