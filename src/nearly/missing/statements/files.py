"""Constraints in YAML and JSON files.

version: 1
constraints:
  - where: branch = 'Chicago'
    values: {price: [0, 149.99]}     # or [low, high, null] where null is allowed, or one value
    rows: [0, 5]                     # or one number; [0, null] for no limit
    name: Chicago                    # optional
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from nearly.errors import NearlyError, SchemaError
from nearly.missing.statements.constraint import Constraint, ValueRange

VERSION = 1
_KEYS = {"where", "values", "rows", "name"}
_LARGEST_FILE = 64 << 20


def read_constraints(path: Path) -> tuple[Constraint, ...]:
    """The constraints of a file; what is wrong in it is told with its place."""
    given = _parsed(path)
    if not isinstance(given, Mapping) or not isinstance(given.get("constraints"), list):
        raise SchemaError(f"{path}: a file of constraints is a mapping with a list under 'constraints'")
    if given.get("version", VERSION) != VERSION:
        raise SchemaError(f"{path}: version {given['version']!r} is not {VERSION}, which this nearly reads")
    found = []
    for place, entry in enumerate(given["constraints"], start=1):
        where = f"{path}, constraint {place}"
        if not isinstance(entry, Mapping) or not set(entry) <= _KEYS:
            raise SchemaError(f"{where}: a constraint has the keys {', '.join(sorted(_KEYS))}, this one is {entry!r}")
        try:
            rows = entry.get("rows", (0, None))
            found.append(Constraint(entry.get("where"), rows=rows, values=entry.get("values"), name=entry.get("name")))
        except NearlyError as trouble:
            raise type(trouble)(f"{where}: {trouble}") from trouble
    return tuple(found)


def write_constraints(path: Path, constraints: Sequence[Constraint]) -> None:
    """Write constraints so that `read_constraints` gives equal ones; the file is replaced whole or not at all."""
    content = {"version": VERSION, "constraints": [_entry(each) for each in constraints]}
    if path.suffix.lower() == ".json":
        text = json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"
    else:
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)
    draft = path.with_name(path.name + ".part")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as trouble:
        raise SchemaError(f"cannot write {path}: {trouble.strerror}") from trouble


def _parsed(path: Path) -> Any:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise SchemaError(f"{path} has more than {_LARGEST_FILE >> 20} MB, which no file of constraints needs")
        text = path.read_text(encoding="utf-8")
    except OSError as trouble:
        raise SchemaError(f"cannot read the constraints in {path}: {trouble.strerror}") from trouble
    except UnicodeDecodeError as trouble:
        raise SchemaError(f"{path} is no UTF-8 text: {trouble.reason}") from trouble
    try:
        return json.loads(text) if path.suffix.lower() == ".json" else yaml.safe_load(text)
    except (json.JSONDecodeError, yaml.YAMLError) as trouble:
        raise SchemaError(f"{path} is neither valid YAML nor JSON: {' '.join(str(trouble).split())}") from trouble


def _entry(constraint: Constraint) -> dict[str, Any]:
    entry: dict[str, Any] = {"where": constraint.predicate}
    if constraint.values:
        entry["values"] = {column: _values(given) for column, given in constraint.values.items()}
    entry["rows"] = list(constraint.rows)
    if constraint.name is not None:
        entry["name"] = constraint.name
    return entry


def _values(given: ValueRange) -> list[Any]:
    return [_plain(given.low), _plain(given.high), *([None] if given.nullable else [])]


def _plain(value: Any) -> Any:
    """A value as the file formats have it; texts of decimals and dates are read back by the column's type."""
    if isinstance(value, Decimal):
        return str(value)
    return value.isoformat() if isinstance(value, dt.date) else value
