"""Aggregates that users write in Python, as a monoid of states.

For batches b1, b2, ... of a group's rows the value is finish(merge(step(zero, b1), step(zero, b2), ...)). The user vouches for two
laws: merge is associative and commutative with zero as its neutral element, and
step(s, b1 + b2) = merge(step(s, b1), step(zero, b2)). Then the value does not depend on how the rows are cut into batches, and
states of units can be merged as they come.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import pickle
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from nearly.errors import SchemaError
from nearly.plan.types import from_name, is_numeric

ESTIMATES = ("mean", "total")

_KEY = secrets.token_bytes(32)
"""Known to this process and those it sends functions to, and never written down."""

_SIGNATURE_BYTES = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A user-defined aggregate; call it with column names or expressions to use it in `Frame.agg`.

    `zero` is the state of no rows, or a function that makes it; `step(state, table)` takes in an Arrow table of rows, `merge(a, b)`
    puts two states together and `finish(state)` gives the value, of the type that `returns` names. States must pickle.

    `estimates` tells what an early answer may do with the value over the rows read so far: "mean" when a random sample of the rows
    has about the value of all (averages, ratios, quantiles), "total" when it grows with the number of rows, and so must be scaled.
    Then the answer has intervals. Without it, early answers show the value of the rows read, and bounds that are open.
    """

    zero: Any
    step: Callable[[Any, pa.Table], Any]
    merge: Callable[[Any, Any], Any]
    finish: Callable[[Any], Any]
    returns: str = "double"
    estimates: str | None = None

    def __post_init__(self) -> None:
        if self.estimates not in (*ESTIMATES, None):
            raise SchemaError(
                f"Aggregate: estimates={self.estimates!r} must be {' or '.join(map(repr, ESTIMATES))}, or be left out"
            )
        if self.estimates is not None and not is_numeric(from_name(self.returns)):
            raise SchemaError(f"Aggregate: estimates={self.estimates!r} is for numbers, and it returns {self.returns}")
        for name in ("step", "merge", "finish"):
            if not callable(getattr(self, name)):
                raise SchemaError(f"Aggregate: {name} must be a function, not {getattr(self, name)!r}")

    def __call__(self, *columns: str) -> UserMeasure:
        if not columns:
            raise SchemaError("name the columns that the aggregate reads, for example spread('price')")
        return UserMeasure(self, columns)

    def empty(self) -> Any:
        """A state of no rows that may be changed in place."""
        return self.zero() if callable(self.zero) else copy.deepcopy(self.zero)


@dataclass(frozen=True, slots=True)
class UserMeasure:
    """An aggregate of some columns."""

    aggregate: Aggregate
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """Rows to states: a table of keys and columns becomes one row for each group, with a signed state for each aggregate.

    The first `keys` columns are the group's; `widths` tells how many of the others each aggregate reads, in order.
    """

    aggregates: tuple[Aggregate, ...]
    keys: int
    widths: tuple[int, ...]
    names: tuple[str, ...]
    secret: bytes = field(default_factory=lambda: _KEY, repr=False)

    def __call__(self, table: pa.Table) -> pa.Table:
        found = [(key, self._states(rows)) for key, rows in groups(table, self.keys)]
        columns = [pa.array([states[place] for _, states in found], pa.binary()) for place in range(len(self.aggregates))]
        return _with_keys(table, self.keys, [key for key, _ in found], columns)

    def _states(self, rows: pa.Table) -> list[bytes]:
        states, start = [], self.keys
        for aggregate, width in zip(self.aggregates, self.widths, strict=True):
            names = self.names[start - self.keys : start - self.keys + width]
            batch = rows.select(range(start, start + width)).rename_columns(names)
            states.append(signed(aggregate.step(aggregate.empty(), batch), self.secret))
            start += width
        return states


@dataclass(frozen=True, slots=True)
class Finish:
    """States to values: the states of each group are merged and finished; without keys there is one group, even of no states."""

    aggregates: tuple[Aggregate, ...]
    keys: int
    secret: bytes = field(default_factory=lambda: _KEY, repr=False)

    def __call__(self, table: pa.Table) -> pa.Table:
        found = [(key, self._values(rows)) for key, rows in groups(table, self.keys)]
        columns = [pa.array([values[place] for _, values in found]) for place in range(len(self.aggregates))]
        return _with_keys(table, self.keys, [key for key, _ in found], columns)

    def _values(self, rows: pa.Table) -> list[Any]:
        values = []
        for place, aggregate in enumerate(self.aggregates):
            state = aggregate.empty()
            for part in rows.column(self.keys + place).to_pylist():
                state = aggregate.merge(state, opened(part, self.secret))
            values.append(aggregate.finish(state))
        return values


def signed(state: Any, secret: bytes) -> bytes:
    """A state on its way through the query's log, where others may be able to write. Law: `opened(signed(s, k), k) == s`."""
    pickled = pickle.dumps(state)
    return hmac.digest(secret, pickled, "sha256") + pickled


def opened(part: bytes, secret: bytes) -> Any:
    """The state again; one that was not signed with this secret is refused, since loading it could run any code."""
    signature, pickled = part[:_SIGNATURE_BYTES], part[_SIGNATURE_BYTES:]
    if not hmac.compare_digest(signature, hmac.digest(secret, pickled, "sha256")):
        raise ValueError("a state in the query's log was not written by this query; remove the log and run the query again")
    return pickle.loads(pickled)  # noqa: S301  signed by `Steps` of the same process


def groups(table: pa.Table, keys: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each group, with the place of one of them; groups are equal in the first `keys` columns, null equals null."""
    if not keys:
        yield 0, table
        return
    names = [f"k{place}" for place in range(keys)]
    numbered = pa.Table.from_arrays([*table.columns[:keys], pa.array(np.arange(table.num_rows))], names=[*names, "row"])
    for rows in numbered.group_by(names, use_threads=False).aggregate([("row", "list")])["row_list"]:
        yield rows.values[0].as_py(), table.take(rows.values)


def _with_keys(table: pa.Table, keys: int, places: Sequence[int], columns: Sequence[pa.Array]) -> pa.Table:
    kept = [table.column(place).take(pa.array(places, pa.int64())) for place in range(keys)]
    return pa.Table.from_arrays([*kept, *columns], names=[f"c{place}" for place in range(keys + len(columns))])
