"""The two passes of a build over a table: the first samples and plans, the second counts every row in its leaf."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearly.engine.engine import Engine
from nearly.engine.row_scan import scan_rows
from nearly.engine.storage.blocks import Block
from nearly.engine.storage.layouts import Table, resolve
from nearly.errors import SchemaError
from nearly.synopsis.build.definition import Definition, Options, column_sets
from nearly.synopsis.build.drafting import Draft, LeafCounts, Shape, draft, finished
from nearly.synopsis.build.packing import from_bytes, pack_part, to_bytes, unpack_part
from nearly.synopsis.structure.domain import MOST_TEXTS, Domain, domains_for
from nearly.synopsis.structure.rows import MISSING, Rows, empty, tickets_of
from nearly.synopsis.structure.schema import MeasuredColumn, Schema, row_numbers
from nearly.synopsis.structure.state import TreeState

Progress = Callable[[float], None]

PLANNING = 0x706C616E
"""Sets the draw of the planning sample apart from that of the leaf samples."""


@dataclass(slots=True)
class Survey:
    """First pass: a uniform sample of whole rows, and all different texts."""

    schema: Schema
    rate: float
    _sampled: list[pa.RecordBatch] = field(default_factory=list)
    _texts: dict[str, pa.Array] = field(default_factory=dict)

    def take(self, file: int, first_row: int, batch: pa.RecordBatch) -> None:
        tickets = tickets_of(row_numbers(file, first_row, batch.num_rows), self.schema.seed ^ PLANNING)
        self._sampled.append(batch.take(pa.array(np.flatnonzero(tickets < self.rate))))
        for domain in self.schema.domains:
            if domain.kind == "text":
                known = self._texts.get(domain.name, pa.array([], pa.string()))
                found = pc.unique(pa.chunked_array([known, batch.column(domain.name)])).drop_null()
                self._texts[domain.name] = found[: MOST_TEXTS + 1]

    def finish(self) -> bytes:
        sink = pa.BufferOutputStream()
        if self._sampled:
            with pa.ipc.new_stream(sink, self._sampled[0].schema) as writer:
                for batch in self._sampled:
                    writer.write_batch(batch)
        texts = {
            f"texts_{name}": np.frombuffer(json.dumps(values.to_pylist()).encode(), np.uint8)
            for name, values in self._texts.items()
        }
        return to_bytes({"rows": np.frombuffer(sink.getvalue(), np.uint8), **texts})


def surveyed(schema: Schema, findings: list[bytes]) -> pa.Table | None:
    """The planning sample of all tasks; the texts go into the schema, in alphabetical order."""
    tables: list[pa.Table] = []
    texts: dict[str, set[str]] = {}
    for finding in findings:
        arrays = from_bytes(finding)
        if arrays["rows"].size:
            tables.append(pa.ipc.open_stream(pa.py_buffer(arrays["rows"].tobytes())).read_all())
        for domain in schema.domains:
            if f"texts_{domain.name}" in arrays:
                texts.setdefault(domain.name, set()).update(json.loads(arrays[f"texts_{domain.name}"].tobytes()))
    for domain in schema.domains:
        domain.add_texts(sorted(texts.get(domain.name, ())))
    return pa.concat_tables(tables) if tables else None


@dataclass(slots=True)
class Census:
    """Second pass: every row is counted in its leaf of every tree, and offered to the samples."""

    schema: Schema
    drafts: list[Draft]
    _parts: list[LeafCounts] = field(default_factory=list)

    def take(self, file: int, first_row: int, batch: pa.RecordBatch) -> None:
        if not self._parts:
            self._parts = [LeafCounts.nothing(each) for each in self.drafts]
        rows = self.schema.rows(batch, row_numbers(file, first_row, batch.num_rows))
        if not self._one_measure:
            rows = self.schema.identified(rows)
        for each, part in zip(self.drafts, self._parts, strict=True):
            part.add(each, rows.of(each.shape.measure))

    @property
    def _one_measure(self) -> bool:
        """Then rows can be identified when few are left; with several measures a tree's own rows do not have all values."""
        return len(self.schema.measures) == 1

    def finish(self) -> bytes:
        parts = self._parts or [LeafCounts.nothing(each) for each in self.drafts]
        for part in parts if self._one_measure else ():
            part.offered = [self.schema.identified(rows) for rows in part.offered]
            part.outliers = replace(part.outliers, rows=self.schema.identified(part.outliers.rows))
        packed = [pack_part(part, len(self.schema.domains)) for part in parts]
        return to_bytes({f"part_{place}": np.frombuffer(data, np.uint8) for place, data in enumerate(packed)})


def build(
    engine: Engine, name: str, table: Table, measure: str | Sequence[str], on: Any, key: Sequence[str] | None, options: Options,
    progress: Progress | None = None,
) -> tuple[Definition, list[TreeState]]:  # fmt: skip
    """Two passes: a survey that plans the trees, a census that counts every row."""
    sets = [resolve(table.columns, each, "on") for each in column_sets(on)]
    names = list(dict.fromkeys(each for columns in sets for each in columns))
    identity = table.key if key is None else resolve(table.columns, key, "key")
    measured = [table.column(each) for each in ([measure] if isinstance(measure, str) else measure)]
    if not measured:
        raise SchemaError("measure=[] names no column; a synopsis needs at least one to aggregate")
    columns = [(each, table.column(each).type) for each in names]
    measures = tuple(dict.fromkeys(MeasuredColumn(each.name, each.type) for each in measured))
    schema = Schema(domains_for(columns), measures, identity, options.seed)
    places = [tuple(names.index(each) for each in columns) for columns in sets]
    shapes = tuple(options.shape(columns, len(names), table.rows, number) for number in range(len(measures)) for columns in places)
    return Definition(name, table.name, schema, shapes), counted(engine, table, schema, shapes, progress)


def counted(
    engine: Engine, table: Table, schema: Schema, shapes: Sequence[Shape], progress: Progress | None = None
) -> list[TreeState]:
    """The states of trees that are planned for a table and have counted it; its texts go into the schema."""
    report = progress or (lambda _: None)
    drafts = [draft(shape, sample, table.rows) for shape, sample in _planned(engine, table, schema, shapes)]
    report(0.5)
    parts = census(engine, table, schema, drafts)
    report(1.0)
    return [finished(each, part) for each, part in zip(drafts, parts, strict=True)]


def recounted(engine: Engine, table: Table, schema: Schema, draft: Draft) -> TreeState:
    """The state of one tree, or of the part of it that is drafted, by one pass over the blocks that may hold rows of it."""
    (part,) = census(engine, table, schema, [draft], blocks_of(table, schema, draft))
    return finished(draft, part)


def _planned(engine: Engine, table: Table, schema: Schema, shapes: Sequence[Shape]) -> list[tuple[Shape, Rows]]:
    """The planning sample for each tree, from the first pass."""
    if not table.rows:
        return [(shape, empty(len(schema.domains))) for shape in shapes]
    wanted = max(shape.optimisation_rows for shape in shapes)
    survey = Survey(schema, min(1.0, 1.1 * wanted / table.rows))
    sampled = surveyed(schema, scan_rows(engine, table, schema.columns, survey))
    rows = empty(len(schema.domains)) if sampled is None else schema.rows(sampled)
    return [(shape, rows.of(shape.measure)) for shape in shapes]


def census(
    engine: Engine, table: Table, schema: Schema, drafts: Sequence[Draft], blocks: Sequence[Block] | None = None
) -> list[LeafCounts]:
    """The second pass: one part per tree, merged over all tasks."""
    parts = [LeafCounts.nothing(each) for each in drafts]
    if not table.rows:
        return parts
    for finding in scan_rows(engine, table, schema.columns, Census(schema, list(drafts)), blocks):
        arrays = from_bytes(finding)
        for place, (each, part) in enumerate(zip(drafts, parts, strict=True)):
            part.merge(each, unpack_part(arrays[f"part_{place}"].tobytes()))
    return parts


def blocks_of(table: Table, schema: Schema, draft: Draft) -> list[Block]:
    """The blocks that may hold a row that the draft counts, by the bounds in the footers of the files."""
    tree, only = draft.scales.tree, draft.only or slice(0, draft.scales.tree.leaves)
    nodes = tree.leaf_nodes[only]
    low, high = tree.cells[0][nodes].min(axis=0).tolist(), tree.cells[1][nodes].max(axis=0).tolist()
    return [block for block in table.base.blocks if all(map(partial(_may_hold, block), schema.domains, low, high))]


def _may_hold(block: Block, domain: Domain, low: float, high: float) -> bool:
    """Whether a block may hold a coordinate above `low` and up to `high`; nulls lie below everything."""
    known = block.statistics_of(domain.name)
    if known is None or domain.kind == "text" or (known.nulls != 0 and low == MISSING):
        return True
    least, most = domain.between(known.low, known.high)
    return most > low and least <= high
