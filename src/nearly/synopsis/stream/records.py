"""JSON records to tables and to questions, all at once when they are good, one by one only in batches that hold a bad one.

A question is a record such as
    {"id": "q1", "aggregate": "sum", "where": {"pickup": [10, 20], "city": "Paris"}, "by": null, "confidence": 0.95}
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.json as pa_json

from nearly.errors import NearlyError
from nearly.plan import types
from nearly.plan.types import to_arrow

if TYPE_CHECKING:
    from nearly.synopsis.synopsis import Synopsis

LONGEST_SHOWN = 2000


def record_schema(synopsis: Synopsis) -> pa.Schema:
    """The columns a record must have; key columns that are nothing else take the type JSON gives them."""
    schema = synopsis.schema
    fields = {domain.name: to_arrow(domain.type) for domain in schema.domains} | {schema.measure: to_arrow(schema.measure_type)}
    return pa.schema(list(fields.items()))


def parsed(synopsis: Synopsis, values: Sequence[bytes | None]) -> tuple[pa.Table, list[dict[str, Any]]]:
    """The rows of good records, in order, and the bad ones with the reason."""
    schema = record_schema(synopsis)
    known = set(synopsis.schema.columns)
    try:
        options = pa_json.ParseOptions(explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="infer")
        lines = b"\n".join(value if value is not None else b"?" for value in values)
        block = pa_json.ReadOptions(block_size=max(1 << 20, len(lines) + 1))
        table = pa_json.read_json(pa.py_buffer(lines), read_options=block, parse_options=options)
        if table.num_rows == len(values) and set(table.column_names) == known and not _suspicious(table, synopsis):
            return table, []
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    return _one_by_one(synopsis, values, schema)


def _suspicious(table: pa.Table, synopsis: Synopsis) -> bool:
    """Whether some record may lack a column: then it is read as null, and only the record itself can tell."""
    return any(table.column(name).null_count for name in synopsis.schema.columns)


def _one_by_one(synopsis: Synopsis, values: Sequence[bytes | None], schema: pa.Schema) -> tuple[pa.Table, list[dict[str, Any]]]:
    good: list[dict[str, Any]] = []
    poison: list[dict[str, Any]] = []
    for value in values:
        try:
            good.append(_checked(json.loads(value if value is not None else b""), synopsis, schema))
        except (ValueError, TypeError, pa.ArrowInvalid, pa.ArrowTypeError) as trouble:
            shown = (value or b"").decode("utf-8", "replace")[:LONGEST_SHOWN]
            poison.append({"reason": str(trouble), "record": shown})
    columns = {name: [record[name] for record in good] for name in synopsis.schema.columns}
    kinds = {field.name: field.type for field in schema}
    return pa.table({name: pa.array(column, kinds.get(name)) for name, column in columns.items()}), poison


def _checked(record: Any, synopsis: Synopsis, schema: pa.Schema) -> dict[str, Any]:
    """The record, when it has exactly the columns wanted, of the right types."""
    if not isinstance(record, dict):
        raise TypeError("not a JSON object")
    wanted = synopsis.schema.columns
    if extra := set(record) - set(wanted):
        raise ValueError(f"unknown column {min(extra)!r}; known are {', '.join(wanted)}")
    if missing := set(wanted) - set(record):
        raise ValueError(f"column {min(missing)!r} is missing")
    for field in schema:
        record[field.name] = _typed(record[field.name], field)
    return record


def _typed(value: Any, field: pa.Field) -> Any:
    if value is None:
        return None
    if isinstance(value, bool) != pa.types.is_boolean(field.type):
        raise TypeError(f"column {field.name!r} must be {types.from_arrow(field.type)}, not {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"column {field.name!r} is {value}")
    if pa.types.is_timestamp(field.type) and isinstance(value, str):
        moment = dt.datetime.fromisoformat(value)
        return moment if moment.tzinfo or not field.type.tz else moment.replace(tzinfo=dt.UTC)
    if pa.types.is_date(field.type) and isinstance(value, str):
        return dt.date.fromisoformat(value)
    if isinstance(value, str) != pa.types.is_string(field.type):
        raise TypeError(f"column {field.name!r} must be {types.from_arrow(field.type)}, not {value!r}")
    return pa.array([value], field.type)[0].as_py()


if TYPE_CHECKING:
    from nearly.synopsis.synopsis import Synopsis

_KNOWN = {"id", "aggregate", "where", "by", "confidence"}


def answered(synopsis: Synopsis, value: bytes | None, fallback_id: str) -> Mapping[str, Any]:
    """The answer to one record; a question that cannot be answered says why."""
    try:
        question = json.loads(value or b"")
    except ValueError as trouble:
        return {"id": fallback_id, "error": str(trouble)}
    if not isinstance(question, dict) or "aggregate" not in question or set(question) - _KNOWN:
        return {"id": fallback_id, "error": f"a question is an object with {', '.join(sorted(_KNOWN))}; 'aggregate' is needed"}
    name = str(question.get("id", fallback_id))
    try:
        found = synopsis.query(
            question["aggregate"],
            by=question.get("by"),
            confidence=question.get("confidence", 0.95),
            **(question.get("where") or {}),
        )
    except (NearlyError, TypeError) as trouble:
        return {"id": name, "error": str(trouble)}
    bounds = {"low": found.low, "high": found.high, "hard_low": found.hard_low, "hard_high": found.hard_high}
    reply: dict[str, Any] = {"id": name, "exact": found.exact, "confidence": found.confidence, "source": found.source}
    reply["rows"] = found.table.to_pylist()
    for bound, table in bounds.items():
        reply[bound] = [[_finite(cell) for cell in row.values()] for row in table.to_pylist()]
    return reply


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def encoded(reply: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """A reply as key and value of a record."""
    return str(reply["id"]).encode(), json.dumps(reply, default=str, ensure_ascii=False).encode()
