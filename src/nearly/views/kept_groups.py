"""The groups inside a view's query: kept beside its rows, in tables that nobody names, so that changes are added to them.

Law: what is kept of a grouping is its rows over the tables of the view's state, which tells the content that its table has then.
Rows and state are committed together; a table of another content is not looked at, and made again.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from nearly.engine.changes.batch_files import Change
from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.changes.row_files import FileWriter
from nearly.engine.deltas.net_change import NetChange
from nearly.engine.deltas.versions import scans_of
from nearly.engine.engine import Engine
from nearly.engine.jobs.native_kernel import STATIC_ROWS
from nearly.engine.native.failures import NativeFailure
from nearly.engine.plans import plan_batches
from nearly.engine.storage.blocks import target_for
from nearly.engine.storage.durable import writing_in
from nearly.engine.storage.footers import checksum_of
from nearly.engine.storage.layouts import BASE, GROUPS, Origin, Table
from nearly.engine.storage.registration import content_of
from nearly.engine.storage.view_definition import AUTO, FULL
from nearly.engine.writing.staging import Arrangement, Staged, commit, new_directory, stage
from nearly.errors import UnknownName, Unsupported
from nearly.plan.canonical import fingerprint
from nearly.plan.nodes import Field, GroupBy, Plan, Scan
from nearly.plan.schema import SchemaColumn
from nearly.plan.types import is_simple
from nearly.rewrite.delta.with_partials import groupings_of, outermost, over_stored
from nearly.rewrite.views.split_view import is_of_session
from nearly.views.definition import PlannedView
from nearly.views.explaining import is_open
from nearly.views.storing import change_of

FEWEST_READ = STATIC_ROWS
"""Groups of fewer rows are computed from them in no time."""
MOST_ROWS, MOST_SHARE = 2_000_000, 0.25
"""Groups are kept where they are so many at most, and this share of the rows that they are computed from."""
Noted = Mapping[str, tuple[str, str]]
"""The tables of groups and their contents, by what they compute."""
TOO_MANY = ("", "")
"""What is noted of groups that are not kept, because they are too many."""


@dataclass(frozen=True, slots=True)
class KeptGroups:
    """A grouping inside a view's query, and the table that holds its rows, whose columns are numbered."""

    plan: GroupBy
    table: Table

    @property
    def scan(self) -> Scan:
        """Its rows as a plan."""
        pairs = zip(self.plan.columns, self.table.columns, strict=True)
        return Scan(self.table.name, tuple(Field(each.name, stored.name, each.type, stored.nullable) for each, stored in pairs))


def scans(groups: Iterable[KeptGroups]) -> dict[Plan, Plan]:
    """Where the rows of groupings are read."""
    return {each.plan: each.scan for each in groups}


def noted(groups: Iterable[KeptGroups], past: Noted, contents: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What to note of groups whose tables, by their names, may have other contents now; of those that are too many, what was."""
    kept = {fingerprint(each.plan): (each.table.name, contents.get(each.table.name, each.table.content)) for each in groups}
    return {name: at for name, at in past.items() if at == TOO_MANY} | kept


def over_groups(planned: PlannedView, groups: Sequence[KeptGroups]) -> PlannedView:
    """A view whose groups are read from where they are kept."""
    if planned.stored is None or not groups:
        return planned
    stored = replace(planned.stored, maintained=over_stored(planned.stored.kept, scans(groups)))
    snapshot = (*planned.inputs, *(each.table for each in groups))
    return replace(planned, stored=stored, prepared=replace(planned.prepared, snapshot=snapshot))


def worth_keeping(planned: PlannedView, policy: str = AUTO) -> tuple[GroupBy, ...]:
    """The groupings inside a view's query that are computed from many rows, inner ones first; none where nothing can be added."""
    if planned.stored is None or policy == FULL or is_open(planned) or any(map(is_of_session, planned.stored.kept.walk())):
        return ()
    found = (each for each in groupings_of(planned.stored.kept) if all(is_simple(column.type) for column in each.columns))
    worth = [each for each in found if _rows_read(each, planned) > FEWEST_READ]
    return tuple(each for each in outermost(worth) if isinstance(each, GroupBy))


def _rows_read(plan: Plan, planned: PlannedView) -> int:
    """The rows of the tables from which a part of a view is computed."""
    rows = {table.name.lower(): table.rows for table in planned.inputs}
    return sum(rows[scan.table.lower()] for scan in scans_of(plan))


def known_groups(engine: Engine, plan: Plan, notes: Noted) -> tuple[KeptGroups, ...]:
    """The groupings inside a plan whose rows are kept, as the notes have them."""
    found = []
    for each in groupings_of(plan):
        name, content = notes.get(fingerprint(each), TOO_MANY)
        table = engine.catalog.table(name) if name and name in engine.catalog else None
        if table is not None and table.content == content:
            found.append(KeptGroups(each, table))
    return tuple(found)


def make_groups(
    engine: Engine, view: str, planned: PlannedView, policy: str, temporary: Path, past: Noted | None = None
) -> tuple[tuple[KeptGroups, ...], dict[str, tuple[str, str]]]:
    """Compute the groupings inside a view, and keep their rows; what there is, and what to note of it.

    Those that are too many, or were before, are not kept, nor is what the native kernel does not take.
    """
    found, inputs = list[KeptGroups](), planned.inputs
    notes = noted((), past or {}, {})
    for each in worth_keeping(planned, policy):
        if fingerprint(each) in notes:
            continue
        name, source = _name_of(view, each), over_stored(each, scans(found))
        if made := [other.table for other in found if other.table.name == name]:
            found.append(KeptGroups(each, made[0]))
            continue
        tables = (*inputs, *(other.table for other in found))
        most = min(MOST_ROWS, MOST_SHARE * _rows_read(each, planned))
        try:
            staged = _written(engine, source, tables, name, temporary, most)
        except (NativeFailure, Unsupported):
            engine.life.refuse_over()
            continue
        if staged is None:
            notes[fingerprint(each)] = TOO_MANY
        else:
            found.append(KeptGroups(each, _committed(engine, view, name, each, staged)))
    return tuple(found), noted(found, notes, {})


def _name_of(view: str, plan: GroupBy) -> str:
    return f"nearly_groups_{hashlib.sha256(f'{view.lower()} {fingerprint(plan)}'.encode()).hexdigest()[:16]}"


def _written(engine: Engine, plan: Plan, tables: Sequence[Table], name: str, temporary: Path, most: float) -> Staged | None:
    """The rows of a grouping in new files; None where they are too many."""
    destination = new_directory(engine.catalog, name, BASE)
    source = temporary / destination.name
    columns = [SchemaColumn(f"c{number}", column.type) for number, column in enumerate(plan.columns)]
    schema = arrow_schema(columns)
    with engine.reading(tables), writing_in(source):
        source.mkdir(parents=True)
        with FileWriter(source / "part", schema, target_for(int(most) or 1, 0).rows) as writer:
            for batch in plan_batches(engine, plan, tables):
                engine.life.refuse_over()
                writer.write(batch.rename_columns(schema.names))
                if writer.rows > most:
                    break
    if writer.rows > most:
        shutil.rmtree(source, ignore_errors=True)
        return None
    return stage(source, destination, Arrangement(BASE))


def _committed(engine: Engine, view: str, name: str, plan: GroupBy, staged: Staged) -> Table:
    """Have staged rows as the table of a grouping, in place of what it was."""
    key = tuple(column.name for column in staged.columns[: len(plan.keys)])
    content = checksum_of(f"{content_of(staged.columns, staged.layout)} {fingerprint(plan)}".encode())
    table = Table(name, staged.columns, key, (staged.layout,), content, Origin(GROUPS, (view,)))
    directory = engine.catalog.directory(name)
    with writing_in(directory):
        directory.mkdir(parents=True, exist_ok=True)
    return commit(engine.catalog, name, [staged], lambda _: table, GROUPS)


def changes_of(engine: Engine, groups: Iterable[KeptGroups], change: NetChange) -> list[tuple[KeptGroups, Change]]:
    """How kept groups change with a view's rows, as far as that was found; those that compute the same have one table."""
    found = {each.table.name: (each, rows) for each in groups if (rows := change.parts.get(each.plan)) is not None}
    return [(each, change_of(engine, each.table, rows)) for each, rows in found.values()]


def drop_groups(engine: Engine, view: str, but: Noted | None = None) -> None:
    """Forget the groups of a view, but those that are noted."""
    kept = {name for name, _ in (but or {}).values()}
    for name in set(engine.catalog.hidden(view)) - kept:
        with suppress(UnknownName):  # who opens the catalog meanwhile drops those without a view
            engine.catalog.drop(name)
