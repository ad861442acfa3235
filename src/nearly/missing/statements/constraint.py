"""What a user knows about missing rows, one statement at a time, and files of such statements.

A predicate-constraint (psi, nu, kappa) says of the missing rows R: every row that satisfies the predicate psi has its values in nu,
and the number of rows that satisfy psi lies in kappa (X. Liang et al., SIGMOD 2020, definition 4.3.1). A set of constraints is
*closed*: a missing row satisfies at least one of the predicates, so rows are missing nowhere else. In YAML, and alike in JSON:

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
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from nearly.errors import ConstraintError, NearlyError, SchemaError

Scalar = int | float | Decimal | str | bool | dt.date | dt.datetime
LARGEST_COUNT = 2**62
VERSION = 1
_KEYS = {"where", "values", "rows", "name"}
_LARGEST_FILE = 64 << 20


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values of a column: from `low` to `high`, both included, None for no limit; null only if `nullable`."""

    low: Scalar | None
    high: Scalar | None
    nullable: bool = False

    def __str__(self) -> str:
        return f"({self.low!r}, {self.high!r}{', None' if self.nullable else ''})"


class Constraint:
    """For the missing rows that satisfy `predicate`: their values lie in ranges, and their number in `rows`.

    A range is a pair (low, high), both included, None for no limit; a single value stands for itself. A column with a range is
    not null, unless the range is a triple with None at its end: (low, high, None). `rows` is a pair too, or a number for exactly
    so many. Columns named `rows`, `name` or `values` go into `values`.

    >>> Constraint("branch = 'Chicago'", price=(0, 149.99), rows=(0, 5))
    Constraint("branch = 'Chicago'", price=(0, 149.99), rows=(0, 5))
    """

    __slots__ = ("name", "predicate", "rows", "values")

    def __init__(
        self,
        predicate: str | bool | None = None,
        /,
        *,
        rows: int | Sequence[int | None] | None = (0, None),
        values: Mapping[str, Any] | None = None,
        name: str | None = None,
        **value_ranges: Any,
    ) -> None:
        self.predicate = _predicate(predicate)
        self.rows = _rows(rows, self.predicate)
        self.values: dict[str, ValueRange] = {}
        for column, given in {**_mapping(values), **value_ranges}.items():
            self.values[column] = _range(column, given)
        if name is not None and not isinstance(name, str):
            raise SchemaError(f"the name of a constraint is a text, not {name!r}")
        self.name = name

    @property
    def label(self) -> str:
        """How messages call it."""
        return self.name or self.predicate

    def __repr__(self) -> str:
        ranges = [f"{column}={given}" for column, given in self.values.items()]
        return f"Constraint({', '.join([repr(self.predicate), *ranges, f'rows={self.rows}'])})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraint):
            return NotImplemented
        return (self.predicate, self.values, self.rows, self.name) == (other.predicate, other.values, other.rows, other.name)

    def __hash__(self) -> int:
        return hash((self.predicate, tuple(sorted(self.values)), self.rows))


def _predicate(given: Any) -> str:
    if given is None or given is True:
        return "TRUE"
    if not isinstance(given, str):
        raise SchemaError(f"a predicate is SQL text such as \"branch = 'Chicago'\", or True; {given!r} is neither")
    if not given.strip():
        raise SchemaError("the predicate is empty; write TRUE for a constraint on all missing rows")
    return given.strip()


def _mapping(values: Any) -> dict[str, Any]:
    if values is None:
        return {}
    if not isinstance(values, Mapping) or not all(isinstance(column, str) for column in values):
        raise SchemaError(f"values maps columns to ranges, {values!r} does not")
    return dict(values)


def _rows(given: Any, predicate: str) -> tuple[int, int | None]:
    where = f"rows of the constraint {predicate!r}"
    if given is None:
        return 0, None
    if isinstance(given, int) and not isinstance(given, bool):
        given = (given, given)
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
        raise SchemaError(f"{where}: give (low, high) or a number, not {given!r}")
    low, high = _count(given[0], where), None if given[1] is None else _count(given[1], where)
    if high is not None and low > high:
        raise ConstraintError(f"{where}: at least {low} and at most {high} cannot both hold")
    return low, high


def _count(given: Any, where: str) -> int:
    if given is None:
        return 0
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int):
        raise SchemaError(f"{where}: {given!r} is no whole number")
    if not 0 <= given <= LARGEST_COUNT:
        raise SchemaError(f"{where}: {given} is not between 0 and {LARGEST_COUNT}")
    return given


def _range(column: str, given: Any) -> ValueRange:
    if isinstance(given, ValueRange):
        return given
    if isinstance(given, Scalar):
        given = (given, given)
    if not isinstance(given, Sequence) or len(given) not in (2, 3) or (len(given) == 3 and given[2] is not None):
        raise SchemaError(
            f"the range of {column!r} is (low, high), (low, high, None) where null is allowed, or one value, not {given!r}"
        )
    for end in given[:2]:
        if end is not None and not isinstance(end, Scalar):
            raise SchemaError(f"the range of {column!r}: {end!r} is of Python type {type(end).__name__}")
        if isinstance(end, float) and math.isnan(end):
            raise SchemaError(f"the range of {column!r}: NaN is no end of a range; write None for no limit")
    return ValueRange(given[0], given[1], nullable=len(given) == 3)


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
