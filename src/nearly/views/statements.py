"""Statements about views, done."""

from __future__ import annotations

from nearly.engine.changes.statements import Changed
from nearly.engine.storage.versions import Commit
from nearly.engine.storage.view_definition import ERROR, KEEP, REPLACE
from nearly.plan.syntax.view_statements import CreateView, DropView, RefreshView, ViewStatement
from nearly.views.catalogue import ViewOptions, Views


def execute_view(views: Views, statement: ViewStatement) -> Changed:
    """Do what a statement says, and tell what it did to the view's rows."""
    match statement:
        case CreateView():
            there = KEEP if statement.if_not_exists else REPLACE if statement.or_replace else ERROR
            is_kept = there == KEEP and statement.table in views.engine.catalog
            table = views.create(statement.table, statement.query, ViewOptions(), there).table
            return Changed("create view", table.name, table.version, inserted=0 if is_kept else table.rows)
        case RefreshView():
            before = views.stored(statement.table).version
            table = views.refresh(statement.table)
            commits = [each for each in views.engine.catalog.commits(table.name) if each.version > before]
            inserted, updated, deleted = (sum(counts) for counts in _counts(commits))
            return Changed("refresh view", table.name, table.version, inserted, updated, deleted)
        case DropView():
            if statement.if_exists and statement.table not in views.engine.catalog:
                return Changed("drop view", statement.table, 0)
            table = views.stored(statement.table)
            views.drop(table.name)
            return Changed("drop view", table.name, table.version, deleted=table.rows)


def _counts(commits: list[Commit]) -> tuple[list[int], list[int], list[int]]:
    return (
        [each.inserted or 0 for each in commits],
        [each.updated or 0 for each in commits],
        [each.deleted or 0 for each in commits],
    )
