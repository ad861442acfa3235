"""`nearly standing start|resume|list|stop`: standing queries from the command line."""

from __future__ import annotations

import argparse
import time
from typing import Any

from nearly.display.interrupt import Interruption
from nearly.session import DEFAULT_PATH, Session, connect
from nearly.standing.standing import Standing
from nearly.standing.watching import difference


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command and its verbs."""
    parser = commands.add_parser("standing", help="keep the answer of a query current while its tables change")
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB")
    start = _verb(verbs, "start", "begin with a query and show its answers as they come", run_start)
    start.add_argument("text", help="the query")
    start.add_argument("--name", help="a name by which it can be resumed")
    start.add_argument("--every", help="refresh so often, such as 60s or 5m")
    start.add_argument("--rows", type=int, help="refresh when so many rows came or went")
    start.add_argument("--memory", default="512MB", help="memory for what is kept between refreshes (default 512MB)")
    start.add_argument("--disk", help="disk for what is kept between refreshes (default none)")
    start.add_argument("--arrivals", nargs="*", metavar="TABLE=ROWS", help="rows a second that will come, by table")
    start.add_argument("--webhook", help="an http address to send what changed to")
    _showing(start)
    resume = _verb(verbs, "resume", "go on with a query that stood when its process was ended", run_resume)
    resume.add_argument("name")
    _showing(resume)
    _verb(verbs, "list", "names of the standing queries", run_list)
    stop = _verb(verbs, "stop", "end a standing query for good", run_stop)
    stop.add_argument("name")


def _verb(verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str, run: Any) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=text, description=text)
    parser.add_argument("--path", default=DEFAULT_PATH, help=f"the catalog's directory (default {DEFAULT_PATH})")
    parser.set_defaults(run=run)
    return parser


def _showing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--answers", type=int, help="end after so many answers (default: when it is over)")
    parser.add_argument("--explain", action="store_true", help="show the plan with what is kept, too")


def run_start(options: argparse.Namespace) -> int:
    with connect(path=options.path, lazy=True) as db:
        made = db.standing(
            options.text, name=options.name, every=options.every or (None if options.rows else "5s"), rows=options.rows,
            memory=options.memory, disk=options.disk, arrivals=_rates(options.arrivals), on_change=options.webhook,
        )  # fmt: skip
        return _show(db, made, options)


def run_resume(options: argparse.Namespace) -> int:
    with connect(path=options.path, lazy=True) as db:
        return _show(db, db.standing(name=options.name), options)


def run_list(options: argparse.Namespace) -> int:
    with connect(path=options.path, lazy=True) as db:
        for name in db.standings:
            print(name)
    return 0


def run_stop(options: argparse.Namespace) -> int:
    with connect(path=options.path, lazy=True) as db:
        db.drop_standing(options.name)
    return 0


def _rates(given: list[str] | None) -> dict[str, float] | None:
    """Rates by table; what is no number is refused by whoever takes them."""
    if given is None:
        return None
    pairs = (each.partition("=") for each in given)
    return {table: _number(rows) for table, _, rows in pairs}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _show(db: Session, made: Standing, options: argparse.Namespace) -> int:
    """Each answer with what changed since the one before, until there are enough; Ctrl-C leaves the definition for `resume`."""
    before, number = None, 0
    with Interruption(db.close):
        for answer in made:
            if not answer.exact:  # the exact one is being computed, and follows
                print(answer, flush=True)
                continue
            number += 1
            if before is not None:
                changed = difference(before.table, answer.table)
                print(f"{time.strftime('%H:%M:%S')}  {changed.came.num_rows:,} rows came, {changed.went.num_rows:,} went")
            print(answer)
            print(made.status() if not options.explain else f"{made.status()}\n{made.explain()}", flush=True)
            before = answer
            if options.answers is not None and number >= options.answers:
                break
    return 0
