"""Views whose queries have parts that are kept, judged by what they show and by what their refreshes read."""

from __future__ import annotations

import nearly
from nearly.errors import NearlyError
from nearly.plan.nodes import Plan, Scan
from nearly.rewrite.delta.changed import TableChange
from nearly.rewrite.delta.delta import delta
from nearly.views.moving import Move
from nearly.views.view import View
from tests.fixtures.agreement import difference


def planned(db: nearly.Session, view: View) -> Move:
    """The view as a refresh would see it."""
    catalog = db._engine.catalog
    pinned = {name.lower(): catalog.table(name) for name in view.state.inputs}
    return Move(db._engine, view.table, view.state, view.state, pinned, db._open_views.maintenance.plans)


def refreshed(db: nearly.Session, name: str, text: str) -> View | None:
    """The view after a refresh, which must show the rows of its query; None where the query is an error now."""
    try:
        expected = db.sql(text, kernel="native").exact().table
    except NearlyError:
        return None
    view = db.view(name).refresh()
    found = db.sql(f"select * from {name}", kernel="native").exact().table
    assert difference(expected, found, "select 1") is None, f"{text} by {view.history[0].strategy}"
    return view


def tables_read(plan: Plan, changes: dict[str, TableChange], known: dict[Plan, Plan]) -> set[str]:
    """The tables that the stages of a change read, beside the change."""
    found = delta(plan, changes, known)
    assert found is not None
    stages = [*(stage.plan for stage in found.stages), found.result]
    return {node.table for stage in stages for node in stage.walk() if isinstance(node, Scan)}
