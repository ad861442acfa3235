"""Tables and their layouts: the same rows, stored in one or more arrangements of blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from nearly.engine.storage.blocks import Block, BlockTarget, RowGroup, make_blocks
from nearly.engine.storage.clustering import HASH, RANGE, Clustering, in_order
from nearly.engine.storage.manifest import FileEntry, Manifest, new_files, verify
from nearly.engine.storage.view_definition import ViewDefinition
from nearly.errors import EngineError, SchemaError, Unsupported, unknown
from nearly.plan.schema import HashedLayout, SchemaColumn, TableSchema
from nearly.printing.html import arrow_html, card

BASE = "base"
_CAME = re.compile(r"/(?:changes|base)-[0-9a-f]{12}/(?:[^/]+=[^/]+/)*came[^/]*\.parquet$")
_GONE_HERE = re.compile(r"/gone_[^/]*\.parquet$")
AT = "@"
"""Between the name of a table and the number of a version: no table's name has it."""
GROUPS = "groups"
"""The origin of a table that holds groups inside a view's query."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a table's rows came from: files used in place (`parquet`, `delta`, `iceberg`), or a source that was copied.

    Copied are the kinds `dataframe`, `table`, `csv`, `json` and `remote`. A source with versions of its own has the one that the
    table is at. Of the kind `groups` are tables that belong to the view at their location, and that nobody else knows.
    """

    kind: str
    locations: tuple[str, ...] = ()
    version: str | None = None

    def __str__(self) -> str:
        at = "" if self.version is None else f"version {self.version}"
        return f"{self.kind} {', '.join(self.locations)} {at}".strip()

    @property
    def is_hidden(self) -> bool:
        return self.kind == GROUPS

    @property
    def in_place(self) -> bool:
        """Whether the base layout is the user's own files."""
        return self.kind == "parquet" or self.is_lake

    @property
    def is_lake(self) -> bool:
        """Whether a log of its own says which files the source consists of."""
        return self.kind in ("delta", "iceberg")


@dataclass(frozen=True, slots=True)
class Layout:
    """One arrangement of a table's rows in files.

    `shuffled` claims that every block is a random sample of the table's rows; `clustering` says what shares a block. Rows that
    were deleted since the files were written are named by `vectors`: files of pairs, the number of a file in the manifest and of a
    row in it.
    """

    name: str
    path: str
    manifest: Manifest
    blocks: tuple[Block, ...]
    clustering: Clustering | None = None
    shuffled: bool = False
    vectors: tuple[FileEntry, ...] = ()

    def __post_init__(self) -> None:
        rows = sum(block.rows for block in self.blocks)
        if rows != self.rows:
            raise EngineError(f"layout {self.name!r}: the blocks hold {rows} rows, the files {self.rows}")

    @property
    def rows(self) -> int:
        return self.manifest.rows - self.gone

    @property
    def partitioned_by(self) -> tuple[str, ...]:
        """The columns whose values the directories of the files tell."""
        return tuple(value.column for block in self.blocks[:1] for value in block.partition)

    @property
    def gone(self) -> int:
        """Rows of the files that were deleted."""
        return sum(vector.rows for vector in self.vectors)

    @property
    def files(self) -> tuple[str, int, str, int, str]:
        """Tells which files the layout lies in, where the same rows may lie in others later: files are added, or all are new."""
        paths, vectors = self.manifest.paths, self.vectors
        return self.path, len(paths), paths[-1] if paths else "", len(vectors), vectors[-1].path if vectors else ""

    def verify(self, full: bool = False) -> None:
        """Raise an `EngineError` when a file is not what it was."""
        verify(self.manifest, full)
        verify(Manifest(self.vectors), full)


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """A registered table, in one of its versions.

    Law: all layouts hold the same bag of rows; `content` differs where that bag does, and `version` grows whenever it changes.
    Layouts that lack rows which came later are `behind`: nobody reads them until the table is compacted. The rows of a view are
    those of a table whose `view` says what they are.
    """

    name: str
    columns: tuple[SchemaColumn, ...]
    key: tuple[str, ...]
    layouts: tuple[Layout, ...]
    content: str
    origin: Origin
    version: int = 1
    behind: tuple[Layout, ...] = ()
    view: ViewDefinition | None = None

    def __post_init__(self) -> None:
        for layout in self.layouts:
            if layout.rows != self.rows:
                raise EngineError(
                    f"table {self.name!r}: layout {layout.name!r} has {layout.rows} rows, layout {self.base.name!r} "
                    f"has {self.rows}; run prepare again"
                )

    def __repr__(self) -> str:
        """One line; layouts and blocks are many."""
        what = "View" if self.view is not None else "Table"
        return f"<{what} {self.name}: {self.rows:,} rows, {len(self.columns)} columns, version {self.version}, {self.origin}>"

    def _repr_html_(self) -> str:
        found = [{"column": each.name, "type": str(each.type)} for each in self.columns]
        facts = {"rows": f"{self.rows:,}", "version": self.version, "from": self.origin, "layouts": len(self.layouts)}
        if self.key:
            facts["key"] = ", ".join(self.key)
        return card(self.name, facts, arrow_html(pa.Table.from_pylist(found), len(found)))

    @property
    def plain_name(self) -> str:
        """The name without the version that may be in it, as in `t@7`."""
        return self.name.partition(AT)[0]

    @property
    def base(self) -> Layout:
        """The layout as registered."""
        return self.layouts[0]

    @property
    def rows(self) -> int:
        return self.base.rows

    @property
    def overlaid(self) -> bool:
        """Whether the rows differ from those of the user's files, which stay as they are: what was changed lies in the catalog."""
        gone = any(_GONE_HERE.search(vector.path) for vector in self.base.vectors)
        return self.origin.in_place and (gone or any(_CAME.search(path) for path in self.base.manifest.paths))

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> SchemaColumn:
        """The column of this name, in any case."""
        for column in self.columns:
            if column.name.lower() == name.lower():
                return column
        raise unknown("column", name, self.column_names)

    def layout(self, name: str) -> Layout:
        for layout in self.layouts:
            if layout.name == name:
                return layout
        raise unknown("layout", name, [layout.name for layout in self.layouts])

    def clustered_by(self, columns: Sequence[str]) -> Layout | None:
        """A layout that keeps rows equal in these columns together: clustered on them, else on the first of them."""
        wanted = tuple(self.column(name).name for name in columns)
        fitting = [each for each in self.layouts if each.clustering and each.clustering.keeps_together(wanted)]
        return max(fitting, key=lambda each: len(each.clustering.columns) if each.clustering else 0, default=None)

    def new_files(self) -> tuple[str, ...]:
        """Files that appeared in the table's own paths since it was registered; they are not read until a refresh."""
        return new_files(self.base.manifest, self.origin.locations) if self.origin.kind == "parquet" else ()

    @property
    def schema(self) -> TableSchema:
        """What plans know of the table."""
        clustering = self.base.clustering
        ranges_of = clustering.columns[0] if clustering is not None and clustering.kind == RANGE else None
        hashed = tuple(
            HashedLayout(layout.name, layout.clustering.columns, layout.clustering.buckets)
            for layout in self.layouts
            if layout.clustering is not None and layout.clustering.kind == HASH and layout.clustering.buckets is not None
        )
        shuffled = next((layout.name for layout in self.layouts if layout.shuffled), None)
        return TableSchema(
            self.name, self.columns, self.key, self.rows, len(self.base.blocks), ranges_of, hashed, shuffled, self.version,
            None if self.view is None else self.view.reading,
        )  # fmt: skip

    def refuse_derived(self, what: str) -> None:
        """Refuse what reads stored rows as they are, where users see others."""
        reading = self.schema.reading
        if reading is not None and not reading.is_plain:
            raise Unsupported(
                f"view {self.name!r} keeps more than it shows (sums behind averages, groups that HAVING hides), "
                f"and {what} reads what is kept; make a view of sums, counts and keys alone, or export this one and register that"
            )

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of the columns that users see."""
        return self.column_names if self.view is None or self.view.reading is None else self.view.reading.names

    def with_layout(self, layout: Layout) -> Table:
        """The table with one more layout, in place of one of the same name."""
        others = tuple(each for each in self.layouts if each.name != layout.name)
        behind = tuple(each for each in self.behind if each.name != layout.name)
        return replace(self, layouts=(*others, layout), behind=behind)


def arrange(row_groups: Sequence[RowGroup], clustering: Clustering | None, target: BlockTarget | None = None) -> tuple[Block, ...]:
    """The blocks of a layout, in the order of the clustering column, so that only neighbours share a block."""
    filled = [each for each in row_groups if each.rows]
    if clustering is not None and clustering.kind == RANGE:
        filled = in_order(filled, clustering.columns[0])
    return make_blocks(filled, target)


def resolve(columns: Sequence[SchemaColumn], names: Sequence[str], what: str) -> tuple[str, ...]:
    """The columns' own spelling of names given in any case; each may occur once."""
    known = {column.name.lower(): column.name for column in columns}
    found = []
    for name in names:
        if name.lower() not in known:
            raise unknown("column", name, known.values())
        found.append(known[name.lower()])
    if len(set(found)) != len(found):
        raise SchemaError(f"{what} names a column twice: {', '.join(names)}")
    return tuple(found)
