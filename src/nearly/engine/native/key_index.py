"""Where the rows of keys lie, kept in memory: a look-up among millions of rows takes as long as the keys that are asked for.

An index is of files and deletion vectors, not of a version. Files never change, so an index that has the first files of a layout is
brought up to date by the others, whoever committed them, and files that were taken back are left out again.
Law: it finds exactly the rows that reading all keys would find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import takewhile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nearly.algebra import arrow as pc
from nearly.engine.native.places import Positions, first_place, packed, unpacked
from nearly.engine.native.reading import FILE, ROW
from nearly.engine.storage.layouts import Layout
from nearly.engine.storage.manifest import FileEntry

RUN_GROWTH = 4
"""A run of rows is joined with the one before unless that is so many times as long: there are few, and each row moves seldom."""

LONGEST_DECIMAL = 18
"""Decimals of so many digits are whole numbers of 64 bits."""

Codes = NDArray[np.int64]
"""A number for each key: its own, or a hash."""

Run = Callable[[str, dict[str, pa.Table]], pa.Table]
"""Runs SQL over tables that are given by name."""

Read = Callable[[Sequence[str]], pa.Table]
"""The keys of all rows of some files, with the places of the rows by the number of the file among these."""


@dataclass(frozen=True, slots=True)
class _CodedRows:
    """Rows in the order of their codes. Where codes are hashes, the keys themselves are there, too."""

    codes: Codes
    places: NDArray[np.int64]
    keys: pa.Table | None

    def in_order(self) -> _CodedRows:
        order = np.argsort(self.codes, kind="stable")
        return self.at(order)

    def at(self, chosen: NDArray[np.int64]) -> _CodedRows:
        keys = None if self.keys is None else self.keys.take(pa.array(chosen))
        return _CodedRows(self.codes[chosen], self.places[chosen], keys)

    def joined(self, other: _CodedRows) -> _CodedRows:
        keys = None if self.keys is None or other.keys is None else pa.concat_tables([self.keys, other.keys]).combine_chunks()
        codes = np.concatenate([self.codes, other.codes])
        return _CodedRows(codes, np.concatenate([self.places, other.places]), keys).in_order()

    def match(self, codes: Codes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of a number among the given codes and a row that has it; the codes are in order, which memory likes."""
        first = np.searchsorted(self.codes, codes, "left")
        counts = np.searchsorted(self.codes, codes, "right") - first
        given = np.repeat(np.arange(len(codes)), counts)
        return given, np.arange(len(given)) + np.repeat(first - (np.cumsum(counts) - counts), counts)

    @property
    def bytes(self) -> int:
        return int(self.codes.nbytes + self.places.nbytes + (0 if self.keys is None else self.keys.nbytes))


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The keys of some files and which of their rows are gone; it is never changed, but made anew from what it has."""

    schema: pa.Schema
    files: tuple[FileEntry, ...] = ()
    vectors: tuple[FileEntry, ...] = ()
    runs: tuple[_CodedRows, ...] = ()
    gone: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def bytes(self) -> int:
        return sum(run.bytes for run in self.runs) + int(self.gone.nbytes)

    def common(self, layout: Layout) -> int:
        """How many of its first files are those of a layout."""
        same = takewhile(lambda pair: pair[0] == pair[1], zip(self.files, layout.manifest.files, strict=False))
        return sum(1 for _ in same)

    def of(self, layout: Layout, read: Read, run: Run) -> KeyIndex:
        """The index of a layout as it is, from what this one has of it."""
        same, files, vectors = self.common(layout), layout.manifest.files, layout.vectors
        runs = self.runs if same == len(self.files) else tuple(_before(each, same) for each in self.runs)
        if same < len(files):
            runs = _with(runs, _rows_of(files[same:], same, self.schema, read, run))
        known = len(self.vectors) if vectors[: len(self.vectors)] == self.vectors else 0
        gone = self.gone if known == len(self.vectors) else self.gone[:0]
        if known < len(vectors):
            gone = np.sort(np.concatenate([gone, Positions.stored(vectors[known:]).packed]), kind="stable")
        return replace(self, files=files, vectors=vectors, runs=runs, gone=gone)

    def find(self, keys: pa.Table, run: Run) -> pa.Table:
        """The keys given that are there, with the positions of their rows."""
        codes = codes_of(keys, run)
        order = np.argsort(codes)
        codes, found, places = codes[order], [self.schema.empty_table()], [np.empty(0, np.int64)]
        for each in self.runs:
            given, at = each.match(codes)
            alive = ~_is_in(each.places[at], self.gone)
            given, at = order[given[alive]], at[alive]
            asked = keys.take(pa.array(given))
            if each.keys is not None:
                stored = each.keys.take(pa.array(at))
                same = _same(asked, stored)
                asked, at = stored.filter(pa.array(same)), at[same]
            found.append(asked)
            places.append(each.places[at])
        every, first = np.unique(np.concatenate(places), return_index=True)
        where = unpacked(every)
        rows = pa.concat_tables(found).take(pa.array(first))
        return rows.append_column(FILE, pa.array(where.files)).append_column(ROW, pa.array(where.rows))


def codes_of(keys: pa.Table, run: Run) -> Codes:
    """A number for each key; equal keys have the same."""
    if is_numeric(keys.schema):
        return _numbers(keys.column(0).combine_chunks())
    names = ", ".join(f"column{place}" for place in range(keys.num_columns))
    numbered = keys.rename_columns([f"column{place}" for place in range(keys.num_columns)])
    numbered = numbered.append_column("number", pa.array(np.arange(keys.num_rows)))
    found = run(f"SELECT number, hash({names}) AS code FROM given", {"given": numbered})
    codes = np.empty(keys.num_rows, np.int64)
    codes[found["number"].to_numpy()] = found["code"].to_numpy().view(np.int64)
    return codes


def is_numeric(schema: pa.Schema) -> bool:
    """Whether keys are numbers of 64 bits, so that different keys have different codes."""
    kind = schema.field(0).type
    whole = pa.types.is_signed_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
    return len(schema) == 1 and (whole or (pa.types.is_decimal128(kind) and kind.precision <= LONGEST_DECIMAL))


def _numbers(values: pa.Array) -> Codes:
    if pa.types.is_decimal(values.type):  # in two words, of which the lower one is the number
        words = np.frombuffer(values.buffers()[1], np.int64) if len(values) else np.empty(0, np.int64)
        return words[2 * values.offset : 2 * (values.offset + len(values)) : 2].copy()
    plain = values.cast(pa.int32()) if pa.types.is_date(values.type) else values
    found: Codes = plain.cast(pa.int64()).to_numpy()
    return found


def _rows_of(files: Sequence[FileEntry], first: int, schema: pa.Schema, read: Read, run: Run) -> _CodedRows:
    """The rows of files, whose numbers begin with one, in order; rows without a key cannot be asked for."""
    keys, places = _read_here(files, schema) or _placed(read([file.path for file in files]), schema)
    places += first_place(first)
    for name in schema.names:
        if keys[name].null_count:
            known = pc.is_valid(keys[name])
            keys, places = keys.filter(known), places[known.to_numpy()]
    codes = codes_of(keys, run)
    return _CodedRows(codes, places, None if is_numeric(schema) else keys.combine_chunks()).in_order()


def _read_here(files: Sequence[FileEntry], schema: pa.Schema) -> tuple[pa.Table, NDArray[np.int64]] | None:
    """Keys and places, read by Arrow; None when it reads some file's columns with other types."""
    found = [schema.empty_table()]
    for file in files:
        with pq.ParquetFile(file.path) as opened:
            there = opened.schema_arrow
            if any(there.get_field_index(field.name) < 0 or there.field(field.name).type != field.type for field in schema):
                return None
            found.append(opened.read(schema.names).cast(schema))
    return pa.concat_tables(found), np.concatenate([packed(at, np.arange(file.rows)) for at, file in enumerate(files)])


def _placed(found: pa.Table, schema: pa.Schema) -> tuple[pa.Table, NDArray[np.int64]]:
    return found.select(schema.names).cast(schema), packed(found[FILE].to_numpy(), found[ROW].to_numpy())


def _with(runs: tuple[_CodedRows, ...], new: _CodedRows) -> tuple[_CodedRows, ...]:
    """One more run, joined with those before that are not much longer."""
    kept = [each for each in runs if len(each.codes)]
    while kept and len(kept[-1].codes) < RUN_GROWTH * len(new.codes):
        new = kept.pop().joined(new)
    return (*kept, new) if len(new.codes) else tuple(kept)


def _before(rows: _CodedRows, files: int) -> _CodedRows:
    """The rows of the first files."""
    there = rows.places < first_place(files)
    return rows if there.all() else rows.at(np.flatnonzero(there))


def _is_in(places: NDArray[np.int64], ordered: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(places), np.bool_)
    at = np.minimum(np.searchsorted(ordered, places), len(ordered) - 1)
    found: NDArray[np.bool_] = ordered[at] == places
    return found


def _same(asked: pa.Table, stored: pa.Table) -> NDArray[np.bool_]:
    """Whether keys are equal, pair by pair, as DuckDB's joins have it: 0.0 is -0.0, and NaN is NaN."""

    def equal(mine: pa.ChunkedArray, theirs: pa.ChunkedArray) -> pa.ChunkedArray:
        same = pc.equal(mine, theirs)
        return pc.or_(same, pc.and_(pc.is_nan(mine), pc.is_nan(theirs))) if pa.types.is_floating(mine.type) else same

    found: NDArray[np.bool_] = reduce(pc.and_, map(equal, asked.columns, stored.columns)).to_numpy()
    return found
