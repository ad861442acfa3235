"""JSON files, an object on each line, that are read as Spark reads them, or a reason why only Spark can say what they are.

Spark's columns are the fields of all objects in the order of their names. Whole numbers are bigint, other numbers double, and a
column with both is double; texts are string, times among them; true and false are boolean; what is always null is string. Only
files are read whose objects have fields of these kinds alone, each once, and each always of one kind.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from nearly.engine.text.plain_csv import NotPlain
from nearly.plan.quoting import native_name, native_text

_MADE = {
    "BIGINT": "CAST({v} AS BIGINT)", "UBIGINT": "CAST({v} AS BIGINT)", "HUGEINT": "CAST({v} AS BIGINT)",
    "DOUBLE": "CAST({v} AS DOUBLE)",
    "BOOLEAN": "CAST({v} AS BOOLEAN)", "VARCHAR": "{v}", "NULL": "CAST(NULL AS VARCHAR)",
}  # fmt: skip


_ODD_NUMBER = "[0-9]{19,}|-0([^.0-9]|$)"
"""Digits that may be a decimal to Spark and a double to others, and a zero whose sign is kept or not."""


def read_json(paths: Sequence[Path]) -> pa.Table:
    """The rows of files as Spark would infer them; `NotPlain` where that is not certain."""
    files = ", ".join(native_text(str(path)) for path in paths)
    try:
        with duckdb.connect(config={"threads": 1}) as engine:
            engine.execute(
                f"CREATE TABLE objects AS SELECT json AS o FROM read_json_objects([{files}], format = 'newline_delimited')"
            )
            ((structure, repeated, odd),) = engine.sql(
                "SELECT json_group_structure(o), bool_or(len(json_keys(o)) <> len(list_distinct(json_keys(o)))), "
                f"bool_or(regexp_matches(o::VARCHAR, {native_text(_ODD_NUMBER)})) FROM objects"
            ).fetchall()
            if odd:
                raise NotPlain("a number has more digits than a bigint, or is a negative zero")
            made = _columns(structure, bool(repeated))
            table = engine.sql(f"SELECT {', '.join(made)} FROM objects").to_arrow_table()
    except duckdb.Error as trouble:
        raise NotPlain(str(trouble).splitlines()[0]) from None
    return table


def _columns(structure: str | None, repeated: bool) -> list[str]:
    """An expression for each field, in the order of Spark's columns."""
    kinds = json.loads(structure) if structure else None
    if not isinstance(kinds, dict) or not kinds or repeated:
        raise NotPlain("there is no object, a line is something else, or a field occurs twice in one")
    if len({name.lower() for name in kinds}) != len(kinds) or any(not name.isascii() or not name for name in kinds):
        raise NotPlain("names of fields differ in case alone, or have other letters than ASCII")
    for name, kind in kinds.items():
        if not isinstance(kind, str) or kind not in _MADE:
            raise NotPlain(f"field {name!r} is nested or of several kinds")
    return [f"{_MADE[kinds[name]].format(v=_value(name))} AS {native_name(name)}" for name in sorted(kinds)]


def _value(name: str) -> str:
    """The value of a field as text; null where the object has none."""
    pointer = "/" + name.replace("~", "~0").replace("/", "~1")
    return f"(o ->> {native_text(pointer)})"
