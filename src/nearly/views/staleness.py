"""How far a view is behind its tables."""

from __future__ import annotations

from collections.abc import Mapping

from nearly.engine.engine import Engine
from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.layouts import AT, Table
from nearly.errors import SchemaError
from nearly.views.states import At, State


def staleness(engine: Engine, name: str, state: State) -> dict[str, int]:
    """The tables that changed since a view was refreshed, and how many rows of them did."""
    catalog = engine.catalog
    found = _behind(catalog, state.leaves)
    if not found:  # a view below may have got another definition
        views = {each: at for each, at in state.inputs.items() if each in catalog and catalog.table(each).view is not None}
        found = _behind(catalog, views)
    return found


def _behind(catalog: Catalog, versions: Mapping[str, At]) -> dict[str, int]:
    found = {}
    for name, at in versions.items():
        if AT in name:
            continue
        if name not in catalog:
            found[name] = 0
            continue
        table = catalog.table(name)
        if At.of(table) != at:
            found[name] = changed_rows(catalog, table, at)
    return found


def changed_rows(catalog: Catalog, table: Table, at: At) -> int:
    """How many rows changed since a version; all of them where no log tells."""
    since = before(catalog, table, at)
    if since is None:
        return table.rows
    if not is_logged(catalog, since, table):
        return max(table.rows, since.rows)
    logged = catalog.batches(table.name, at.version, table.version)
    return sum(batch.inserted + batch.updated + batch.deleted for batch in logged.values())


def is_logged(catalog: Catalog, was: Table, now: Table) -> bool:
    """Whether the log tells what changed between two versions; else old files would be read, which may be gone."""
    return AT not in now.name and len(catalog.batches(now.plain_name, was.version, now.version)) == now.version - was.version


def before(catalog: Catalog, table: Table, at: At) -> Table | None:
    """A table in the version that a view is of; None where it is not kept, or was another table."""
    if at.version > table.version:
        return None
    try:
        found = catalog.at(table.plain_name, at.version)
    except SchemaError:
        return None
    return found if found.content == at.content else None
