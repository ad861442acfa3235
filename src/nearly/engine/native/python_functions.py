"""The Python functions of a session: registered by name, carried to the workers, known to both kernels."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import pyarrow as pa
from sqlglot import exp

from nearly.engine import spark_names
from nearly.engine.native.function_adapters import ScalarAdapter, TableAdapter, Travelling
from nearly.errors import SchemaError, Unsupported
from nearly.plan.dialects.native import type_name
from nearly.plan.functions import is_aggregate, is_function, is_window
from nearly.plan.syntax.parse import to_text
from nearly.plan.types import NULL, DataType, IntervalType, from_arrow, from_name, is_simple, to_arrow
from nearly.plan.user_functions import Mapped, Signature, mark, used_by

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
Columns = tuple[tuple[str, DataType], ...]


class _Use:
    """Held by what may call a function of values."""


class Functions:
    """All functions of a session. A function registered again under its name replaces the one before for new queries.

    A function is kept as long as it is registered, or as something holds what `kept_for` or `add_mapped` gave for it: a prepared
    query or a frame.
    """

    def __init__(self) -> None:
        self._scalars: dict[str, Signature] = {}
        self._registered: dict[str, _Use] = {}
        self._mapped: WeakValueDictionary[str, Mapped] = WeakValueDictionary()
        self._travelling: WeakKeyDictionary[Mapped | _Use, Travelling] = WeakKeyDictionary()
        self._lock = threading.RLock()

    @property
    def travelling(self) -> tuple[Travelling, ...]:
        """All functions that a query may call."""
        with self._lock:
            return tuple(sorted(set(self._travelling.values()), key=lambda each: each.symbol))

    def live(self) -> frozenset[str]:
        """Symbols of all functions that a query may call."""
        return frozenset(each.symbol for each in self.travelling)

    def travelling_as(self, symbol: str) -> Travelling:
        return next(each for each in self.travelling if each.symbol == symbol)

    def kept_for(self, tree: exp.Expr) -> tuple[object, ...]:
        """What a query must hold as long as it may run: its own functions, and the relations made by functions that it reads."""
        mapped = self.used_by(tree)
        calls = [call for each in (tree, *(one.query for one in mapped)) for call in each.find_all(exp.Anonymous)]
        names = {str(call.this).lower() for call in calls}
        with self._lock:
            return (*mapped, *(use for name, use in self._registered.items() if name in names))

    def mark(self, tree: exp.Expr) -> None:
        """Mark the calls of these functions in a query."""
        mark(tree, self._scalars)

    def used_by(self, tree: exp.Expr) -> tuple[Mapped, ...]:
        """The mapped relations a query reads."""
        return used_by(tree, dict(self._mapped))

    def refuse_name(self, name: str, taken: Callable[[str], bool]) -> None:
        """Raise when a function may not have this name; `taken` tells of names that are used elsewhere."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise SchemaError(f"{name!r} is no name for a function; use letters, digits and _")
        if is_function(name) or is_aggregate(name) or is_window(name) or (name.lower() not in self._scalars and taken(name)):
            raise SchemaError(f"{name!r} is a function of Spark SQL already; choose another name")

    def add(self, name: str, function: Callable[..., Any], returns: str) -> Signature:
        """A function of values, for expressions."""
        type_ = _type(returns)
        payload = _pickled(name, function, ScalarAdapter(name, function, to_arrow(type_)))
        symbol = _symbol(f"function_{name}", payload)
        signature = Signature(name, symbol, type_)
        with self._lock:
            self._registered[name.lower()] = use = _Use()
            self._travelling[use] = Travelling(symbol, type_name(type_), payload)
            self._scalars[name.lower()] = signature
        return signature

    def add_mapped(
        self, title: str, function: Callable[[pa.Table], Any], query: exp.Query, takes: Columns, gives: Columns, keys: int | None,
        estimates: tuple[str | None, ...] = (),
    ) -> Mapped:  # fmt: skip
        """What a function makes of the rows of a query, as a relation."""
        for name, type_ in takes:
            if not is_simple(type_):
                raise Unsupported(f"column {name!r} of type {type_} for a Python function; drop or convert it before")
        adapter = TableAdapter(title, function, _schema(takes), _schema(gives), keys is not None)
        payload = _pickled(title, function, adapter)
        mapped = Mapped(_symbol("nearly_mapped", payload, to_text(query)), query, gives, keys, estimates)
        fields = ", ".join(f"c{place} {type_name(type_)}" for place, (_, type_) in enumerate(gives))
        with self._lock:
            known = self._mapped.get(mapped.name)
            if known is not None:
                return known
            self._mapped[mapped.name] = mapped
            self._travelling[mapped] = Travelling(mapped.name, f"STRUCT({fields})[]", payload)
        return mapped


def columns_of(schema: Any) -> Columns:
    """Declared columns: a mapping of names to Spark's type names, or an Arrow schema."""
    if isinstance(schema, pa.Schema):
        schema = {field.name: field.type for field in schema}
    if not isinstance(schema, dict) or not schema:
        raise SchemaError("schema= gives each column its type, for example schema={'id': 'bigint', 'score': 'double'}")
    return tuple((str(name), _type(type_)) for name, type_ in schema.items())


def _type(given: Any) -> DataType:
    """A type by Spark's name of it, or by Arrow's type."""
    if isinstance(given, pa.DataType):
        type_: DataType = from_arrow(given)
    else:
        type_ = from_name(given) if isinstance(given, str) else NULL
    if type_ == NULL or isinstance(type_, IntervalType) or not is_simple(type_):
        raise SchemaError(f"{given!r} is no type for a Python function; use Spark's names such as 'double', 'bigint', 'string'")
    return type_


def _schema(columns: Columns) -> pa.Schema:
    return pa.schema([pa.field(name, to_arrow(type_)) for name, type_ in columns])


def _symbol(prefix: str, *parts: bytes | str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part if isinstance(part, bytes) else part.encode())
    return f"{prefix}_{digest.hexdigest()[:12]}".lower()


def _pickled(name: str, function: Any, adapter: Any) -> bytes:
    if not callable(function):
        raise SchemaError(f"{name!r} needs a Python function, not {type(function).__name__}")
    try:
        payload: bytes = spark_names.cloudpickle.dumps(adapter)  # type: ignore[no-untyped-call]
    except Exception as trouble:
        raise SchemaError(f"function {name!r} cannot be sent to Spark's workers: {trouble}") from trouble
    return payload
