"""`nearly view` and `nearly autoview`: views from the command line, those that people make and those that choose themselves."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from nearly.cli.table import print_table, shown
from nearly.cli.verbs import Commands, add_verb, add_verbs
from nearly.rooms import AUTOMATIC
from nearly.session import Session

if TYPE_CHECKING:
    from nearly.autoview.store import MadeView


def add(commands: Commands) -> None:
    """The commands and their verbs."""
    automatic = add_verbs(commands, "autoview", "views that chose themselves: what the sessions of a catalog left of them")
    shown(add_verb(automatic, "status", "the automatic views that are kept, and what they saved", run_status, None))
    add_verb(automatic, "advice", "statements that make those permanent that were used most", run_advice, None)
    add_verb(automatic, "off", "remove the automatic views; what was learned stays", run_off, None)
    verbs = add_verbs(commands, "view", "queries whose rows are kept and follow their tables")
    create = add_verb(verbs, "create", "keep the rows of a query", run_create, "the view")
    create.add_argument("query", help="the text, or - to read it from standard input")
    create.add_argument("--policy", choices=("auto", "incremental", "full"), default="auto", help="how it is refreshed")
    create.add_argument("--key", nargs="+", default=[], metavar="COLUMN", help="the columns that tell rows apart")
    create.add_argument("--sample", type=float, metavar="SHARE", help="share of a stale view that is cleaned for quick answers")
    create.add_argument("--every", metavar="TIME", help="refresh in the background of open sessions, such as 60s or '5 minutes'")
    there = create.add_mutually_exclusive_group()
    there.add_argument("--replace", dest="there", action="store_const", const="replace", help="in place of a view of the name")
    there.add_argument("--keep", dest="there", action="store_const", const="keep", help="no error where the view exists")
    shown(add_verb(verbs, "list", "the views of the catalog, and how stale they are", run_list, None))
    shown(add_verb(verbs, "show", "a view's query, versions and refreshes", run_show, "the view"))
    add_verb(verbs, "refresh", "bring a view up to date with its tables", run_refresh, "the view")
    add_verb(verbs, "drop", "forget a view and its rows", run_drop, "the view")
    add_verb(verbs, "explain", "how a view is maintained, operator by operator", run_explain, "a view, or a query in quotes")


def run_create(db: Session, options: argparse.Namespace) -> None:
    text = sys.stdin.read() if options.query == "-" else options.query
    made = db.create_view(
        options.name, text, sample=options.sample, policy=options.policy, key=options.key, every=options.every,
        there=options.there or "error",
    )  # fmt: skip
    print(f"{made.name}: {made.table.rows:,} rows kept, columns {', '.join(made.columns)}")


def run_list(db: Session, options: argparse.Namespace) -> None:
    facts = []
    for name in db.views:
        view = db.view(name)
        behind = ", ".join(f"{table} {rows:,}" for table, rows in view.stale.items())
        facts.append({
            "view": name, "rows": view.table.rows, "version": view.table.version, "policy": view.policy, "stale": behind or "fresh",
            "every": "" if view.every is None else f"{view.every:g} s", "tables": ", ".join(view.versions),
        })  # fmt: skip
    kinds = [pa.string(), pa.int64(), pa.int64(), pa.string(), pa.string(), pa.string(), pa.string()]
    names = ("view", "rows", "version", "policy", "stale", "every", "tables")
    print_table(pa.Table.from_pylist(facts, pa.schema(list(zip(names, kinds, strict=True)))), options)


def run_show(db: Session, options: argparse.Namespace) -> None:
    view = db.view(options.name)
    versions = ", ".join(f"{table} version {version}" for table, version in view.versions.items())
    behind = ", ".join(f"{rows:,} rows of {table}" for table, rows in view.stale.items())
    if options.format == "table":
        print(f"{view.name}: {view.table.rows:,} rows, version {view.table.version}, policy {view.policy}")
        print(f"query: {view.text}")
        print(f"of: {versions or 'no table'}")
        print(f"stale: {behind + ' changed since' if behind else 'no, it is fresh'}")
    facts = [
        {
            "time": each.time.isoformat(timespec="seconds"), "strategy": each.strategy, "changes": each.changes,
            "inserted": each.inserted, "updated": each.updated, "deleted": each.deleted, "seconds": each.seconds,
            "reason": each.reason,
        }
        for each in view.history
    ]  # fmt: skip
    kinds = [pa.string(), pa.string(), *[pa.int64()] * 4, pa.float64(), pa.string()]
    names = ("time", "strategy", "changes", "inserted", "updated", "deleted", "seconds", "reason")
    print_table(pa.Table.from_pylist(facts, pa.schema(list(zip(names, kinds, strict=True)))), options)


def run_refresh(db: Session, options: argparse.Namespace) -> None:
    view = db.view(options.name)
    before = len(view.state.refreshes), view.table.version, view.versions
    view.refresh()
    if (len(view.state.refreshes), view.table.version, view.versions) == before:
        print(f"{view.name}: fresh already, version {view.table.version}")
        return
    done = view.history[0]
    counts = f"{done.inserted:,} inserted, {done.updated:,} updated, {done.deleted:,} deleted"
    why = f" ({done.reason})" if done.reason else ""
    print(f"{view.name}: {counts}; {done.strategy}{why}, {done.seconds:.2f} s; version {view.table.version}")


def run_drop(db: Session, options: argparse.Namespace) -> None:
    db.drop_view(options.name)
    print(f"{options.name}: forgotten")


def run_explain(db: Session, options: argparse.Namespace) -> None:
    print(db.view(options.name).explain() if " " not in options.name.strip() else db.explain_view(options.name))


def run_status(_: Session, options: argparse.Namespace) -> None:
    policy, kept = _left(options)
    facts = [
        {
            "view": each.name, "kind": each.candidate.kind, "tables": ", ".join(each.candidate.shape.tables),
            "rows": each.table.rows, "bytes": each.holding.bytes, "uses": each.holding.uses, "cost": each.holding.cost,
            "saved": each.holding.saved,
        }
        for each in sorted(kept, key=lambda each: -each.holding.saved)
    ]  # fmt: skip
    if options.format == "table":
        print(f"policy {policy}, {len(kept)} automatic views, {sum(each.holding.bytes for each in kept):,} bytes")
    kinds = [pa.string(), pa.string(), pa.string(), *[pa.int64()] * 3, pa.float64(), pa.float64()]
    names = ("view", "kind", "tables", "rows", "bytes", "uses", "cost", "saved")
    print_table(pa.Table.from_pylist(facts, pa.schema(list(zip(names, kinds, strict=True)))), options)


def run_advice(_: Session, options: argparse.Namespace) -> None:
    from nearly.autoview.statements import advised

    for statement in advised(_left(options)[1]):
        print(f"{statement};")


def run_off(_: Session, options: argparse.Namespace) -> None:
    from nearly.autoview.listing import clear

    kept = _left(options)[1]
    if _directory(options).is_dir():
        clear(_directory(options))
    print(f"{len(kept)} automatic views removed, {sum(each.holding.bytes for each in kept):,} bytes")


def _left(options: argparse.Namespace) -> tuple[str, list[MadeView]]:
    """What a catalog has of automatic views, by the list that was written last: whoever looks takes them from no session."""
    from nearly.autoview.listing import left_in  # whose code few commands need

    return left_in(_directory(options)) or ("none", [])


def _directory(options: argparse.Namespace) -> Path:
    return Path(options.path) / AUTOMATIC
