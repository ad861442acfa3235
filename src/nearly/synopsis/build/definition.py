"""What a synopsis is made for: its table, columns, trees and budget; written as JSON beside its state."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

from nearly.engine.storage.layouts import Table
from nearly.errors import EngineError, SchemaError, unknown
from nearly.plan import types
from nearly.synopsis.build.drafting import Shape
from nearly.synopsis.structure.domain import Domain
from nearly.synopsis.structure.schema import MeasuredColumn, Schema

FORMAT = 3
SAMPLED_ROWS_PER_MILLISECOND = 40_000
"""Sampled rows a query looks at in a millisecond, by measurement on one core of 2020."""
SECONDS_FOR_128_LEAVES = 1.0
BYTES_PER_COLUMN = 8


@dataclass(frozen=True, slots=True)
class Budget:
    """What a synopsis may cost: seconds to plan its tree, milliseconds per query, bytes of sampled rows. None is no limit."""

    build_seconds: float | None = None
    query_ms: float | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and not value > 0:
                raise SchemaError(f"budget: {name}={value} must be above 0, or None for no limit")

    def leaves(self, wanted: int) -> int:
        """The number of leaves that can be planned in time: the dynamic program takes time in proportion to their square."""
        if self.build_seconds is None:
            return wanted
        return max(2, min(wanted, int(128 * math.sqrt(self.build_seconds / SECONDS_FOR_128_LEAVES))))

    def samples(self, wanted: int, leaves: int, columns: int, split: int) -> int:
        """The number of sampled rows that queries can look at in time and that fit in the bytes."""
        allowed = float(wanted)
        if self.query_ms is not None:
            allowed = min(allowed, self.query_ms * SAMPLED_ROWS_PER_MILLISECOND / partial_leaves(leaves, split) * leaves)
        if self.bytes is not None:
            allowed = min(allowed, self.bytes / (BYTES_PER_COLUMN * (columns + 3)))
        return max(2, int(allowed))


def partial_leaves(leaves: int, split: int) -> float:
    """How many leaves a query over all split columns cuts: those on the surface of its box.

    >>> partial_leaves(64, 1)
    2.0
    """
    if split <= 1:
        return min(2.0, float(leaves))
    side = leaves ** (1.0 / split)
    return float(leaves - max(0.0, side - 2.0) ** split)


@dataclass(frozen=True, slots=True)
class Options:
    """How a synopsis is to be made. `sample` is the share of rows that is stored as samples; `per_query` sets it instead by the
    share of rows a query looks at."""

    leaves: int = 64
    sample: float = 0.005
    per_query: float | None = None
    method: str = "sampled"
    focus: str = "all"
    pooled: bool = False
    seed: int = 0
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        for name in ("sample", "per_query"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise SchemaError(f"{name}={value} must be above 0 and at most 1")
        if not isinstance(self.leaves, int) or isinstance(self.leaves, bool):
            raise SchemaError(f"leaves={self.leaves!r} must be a whole number")

    def shape(self, columns: tuple[int, ...], all_columns: int, rows: int, measure: int = 0) -> Shape:
        """The shape of one tree."""
        leaves = self.budget.leaves(self.leaves)
        share = self.sample
        if self.per_query is not None:
            share = self.per_query * leaves / partial_leaves(leaves, len(columns))
        wanted = min(rows, math.ceil(share * rows))
        target = self.budget.samples(max(2, wanted), leaves, all_columns, len(columns))
        return Shape(columns, leaves, target, self.method, self.focus, self.pooled, measure)


def options_from(given: dict[str, Any]) -> Options:
    """Options by name; one that does not exist is an error that offers those that do."""
    known = [each.name for each in fields(Options)]
    for name in given:
        if name not in known:
            raise unknown("option", name, known)
    return Options(**given)


class TablePlace(NamedTuple):
    """Where in the history of its table a state is: the version, and its content, which a table made anew would not have there."""

    version: int
    content: str

    @classmethod
    def of(cls, table: Table) -> TablePlace:
        return cls(table.version, table.content)


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a synopsis; `identity` tells it from others that had or will have its name."""

    name: str
    table: str
    schema: Schema
    shapes: tuple[Shape, ...]
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)

    def to_json(self) -> dict[str, object]:
        schema = self.schema
        return {
            "format": FORMAT, "name": self.name, "table": self.table, "identity": self.identity,
            "columns": [{"name": each.name, "type": str(each.type), "texts": each.texts} for each in schema.domains],
            "measures": [{"name": each.name, "type": str(each.type)} for each in schema.measures], "key": list(schema.key),
            "seed": schema.seed,
            "shapes": [asdict(shape) for shape in self.shapes],
        }  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> Definition:
        try:
            found = json.loads(text)
            if found["format"] != FORMAT:
                raise EngineError(
                    f"the synopsis was written by another version of nearly (format {found['format']}, not {FORMAT}); drop it and "
                    f"build it again. Before format 3 rows inserted into a synopsis were not in its table: insert them there"
                )
            domains = [Domain(each["name"], types.from_name(each["type"]), list(each["texts"])) for each in found["columns"]]
            measured = tuple(MeasuredColumn(each["name"], types.from_name(each["type"])) for each in found["measures"])
            schema = Schema(domains, measured, tuple(found["key"]), found["seed"])
            shapes = tuple(Shape(**{**shape, "columns": tuple(shape["columns"])}) for shape in found["shapes"])
            return cls(found["name"], found["table"], schema, shapes, found["identity"])
        except (KeyError, TypeError, ValueError) as trouble:
            raise EngineError(f"the description of a synopsis cannot be read: {trouble!r}; drop it and build it again") from trouble


def column_sets(on: Sequence[str] | Sequence[Sequence[str]] | str) -> list[list[str]]:
    """The columns of each tree: one list is one tree, a list of lists several.

    >>> column_sets("day"), column_sets(["day", "shop"]), column_sets([["day"], ["day", "shop"]])
    ([['day']], [['day', 'shop']], [['day'], ['day', 'shop']])
    """
    if isinstance(on, str):
        return [[on]]
    if not on:
        raise SchemaError("on=[] names no column; a synopsis needs at least one column to filter on")
    if all(isinstance(each, str) for each in on):
        return [[str(each) for each in on]]
    if any(isinstance(each, str) for each in on):
        raise SchemaError("on is a list of columns for one tree, or a list of lists for several; do not mix them")
    return [list(each) for each in on]
