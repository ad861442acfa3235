"""What there is to ask about, for a browser: tables, views, synopses and standing queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from nearly.engine.storage.layouts import Layout, Table
from nearly.errors import NearlyError, unknown
from nearly.session import Session
from nearly.web.encoding import plain

VERSIONS = 20
"""Versions of a table that are listed."""

Facts = dict[str, Any]


def overview(db: Session) -> Facts:
    """Everything by name, with the columns of tables and views: what a completion needs."""
    return {
        "tables": [_told("table", name, partial(_brief_table, db, name)) for name in db.tables],
        "views": [_told("view", name, partial(_brief_view, db, name)) for name in db.views],
        "synopses": [_told("synopsis", name, partial(_synopsis, db, name)) for name in db.synopses],
        "standing": [{"name": name} for name in db.standings],
    }


def _told(kind: str, name: str, tell: Callable[[], Facts]) -> Facts:
    """What is known of one thing; one that cannot be read does not hide the others."""
    try:
        return tell()
    except NearlyError as trouble:
        return {"name": name, "kind": kind, "trouble": str(trouble), "columns": []}


def _brief(table: Table) -> Facts:
    columns = [{"name": each.name, "type": str(each.type)} for each in table.columns]
    return {"name": table.name, "kind": "table", "rows": table.rows, "version": table.version, "columns": columns}


def _brief_table(db: Session, name: str) -> Facts:
    return _brief(db.table(name).info)


def _brief_view(db: Session, name: str) -> Facts:
    view = db.view(name)
    columns = [{"name": each} for each in view.columns]
    return {
        "name": name,
        "kind": "view",
        "rows": view.table.rows,
        "columns": columns,
        "stale": view.stale,
        "version": view.table.version,
    }


def _synopsis(db: Session, name: str) -> Facts:
    synopsis = db.synopsis(name)
    definition = synopsis.definition
    return {
        "name": name, "kind": "synopsis", "table": definition.table, "version": synopsis.version,
        "columns": [], "stats": {key: plain(value) for key, value in synopsis.stats().items()},
    }  # fmt: skip


def describe(db: Session, kind: str, name: str) -> Facts:
    """One thing in full."""
    tellers: Mapping[str, Callable[[Session, str], Facts]] = {
        "tables": _table, "views": _view, "synopses": _synopsis, "standing": _standing,
    }  # fmt: skip
    known = {"tables": db.tables, "views": db.views, "synopses": db.synopses, "standing": db.standings}
    teller = tellers.get(kind)
    if teller is None:
        raise unknown("kind", kind, tellers)
    found = next((each for each in known[kind] if each.lower() == name.lower()), None)
    if found is None:
        raise unknown(kind.removesuffix("s"), name, known[kind])
    return teller(db, found)


def _table(db: Session, name: str) -> Facts:
    table = db.table(name).info
    columns = [
        {"name": each.name, "type": str(each.type), "nullable": each.nullable, "key": each.name in table.key}
        for each in table.columns
    ]
    layouts = [_layout(each, False) for each in table.layouts] + [_layout(each, True) for each in table.behind]
    versions = [
        {
            "version": each.version, "time": plain(each.time), "operation": each.operation, "inserted": each.inserted,
            "updated": each.updated, "deleted": each.deleted,
        }
        for each in db.history(name)[:VERSIONS]
    ]  # fmt: skip
    return _brief(table) | {
        "columns": columns, "key": list(table.key), "layouts": layouts, "versions": versions, "origin": table.origin.kind,
        "changed": table.overlaid, "files": len(table.base.manifest.files),
    }  # fmt: skip


def _layout(layout: Layout, behind: bool) -> Facts:
    clustering = layout.clustering
    arranged = "shuffled" if layout.shuffled else "as written"
    if clustering is not None:
        arranged = f"{'by a hash of' if clustering.buckets else 'sorted by'} {', '.join(clustering.columns)}"
    return {
        "name": layout.name, "files": len(layout.manifest.files), "blocks": len(layout.blocks), "deleted": layout.gone,
        "arranged": arranged, "behind": behind,
    }  # fmt: skip


def _view(db: Session, name: str) -> Facts:
    view = db.view(name)
    refreshes = [
        {
            "time": plain(each.time), "strategy": each.strategy, "changes": each.changes, "seconds": each.seconds,
            "inserted": each.inserted, "updated": each.updated, "deleted": each.deleted, "reason": each.reason,
        }
        for each in view.history[:VERSIONS]
    ]  # fmt: skip
    return _brief_view(db, name) | {
        "text": view.text, "policy": view.policy, "every": view.every, "of": view.versions, "refreshes": refreshes,
        "trouble": view.trouble,
    }  # fmt: skip


def _standing(db: Session, name: str) -> Facts:
    """Only what a name tells: to look into a standing query would go on with it."""
    return {"name": name, "kind": "standing"}
