"""`nearly synopsis build|query|stats|drop`: synopses from the command line."""

from __future__ import annotations

import argparse
import ast
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from nearly.answer import Answer
from nearly.errors import SchemaError
from nearly.session import DEFAULT_PATH, connect


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command and its verbs."""
    parser = commands.add_parser("synopsis", help="instant answers from a tree of aggregates with sampled leaves")
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="VERB")
    _add_build(verbs)
    query = _verb(verbs, "query", "ask for one aggregate", run_query)
    query.add_argument("aggregate", help="sum, count, rows, avg, min, max, var or stddev; of several measures as in 'sum(fare)'")
    query.add_argument("--where", nargs="*", default=[], metavar="CONDITION", help="such as day=3..7, day=3.. or city=Rome")
    query.add_argument("--by", action="append", help="group by a column of text or booleans; may be given several times")
    query.add_argument("--confidence", type=float, default=0.95)
    stats = _verb(verbs, "stats", "show its size and its tree with the error of each leaf", run_stats)
    stats.add_argument("--lines", type=int, default=64, help="lines of the tree to show (default 64)")
    _verb(verbs, "drop", "forget it and remove its files", run_drop)


def _add_build(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    build = _verb(verbs, "build", "build it with Spark, in two passes over the table", run_build)
    build.add_argument("--table", required=True, help="a registered table, or the name to register --source under")
    build.add_argument("--source", help="Parquet files, CSV or JSON to register first")
    build.add_argument("--measure", required=True, nargs="+", help="the columns that are aggregated")
    build.add_argument("--on", required=True, nargs="+", help="the columns that are filtered on")
    build.add_argument("--key", nargs="+", help="the columns that tell rows apart, for deletes")
    build.add_argument("--leaves", type=int, default=64)
    build.add_argument("--sample", type=float, default=0.005, help="share of the rows to keep as samples (default 0.005)")
    build.add_argument("--per-query", type=float, help="instead: share of the rows that a query may look at")
    build.add_argument("--partitioning", default="sampled", help="sampled, search, equal_depth, optimal or monotone")


def _verb(verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str, run: Any) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=text, description=text)
    parser.add_argument("name", help="the synopsis")
    parser.add_argument("--path", default=DEFAULT_PATH, help=f"the catalog's directory (default {DEFAULT_PATH})")
    parser.set_defaults(run=run)
    return parser


def run_build(options: argparse.Namespace) -> int:
    with connect(path=options.path, lazy=True) as db:
        if options.source is not None:
            db.register(options.table, options.source, key=options.key or ())
        made = db.create_synopsis(
            options.name, options.table, options.measure, options.on, key=options.key, leaves=options.leaves, sample=options.sample,
            per_query=options.per_query, method=options.partitioning,
        )  # fmt: skip
        print(made)
    return 0


def run_query(options: argparse.Namespace) -> int:
    conditions = dict(condition(text) for text in options.where)
    with connect(path=options.path, lazy=True) as db:
        show(db.synopsis(options.name).query(options.aggregate, by=options.by, confidence=options.confidence, **conditions))
    return 0


def run_stats(options: argparse.Namespace) -> int:
    with connect(path=options.path, lazy=True) as db:
        synopsis = db.synopsis(options.name)
        for name, value in synopsis.stats().items():
            print(f"{name:12} {value}")
        for tree in range(len(synopsis.trees)):
            print(synopsis.picture(tree, options.lines))
    return 0


def run_drop(options: argparse.Namespace) -> int:
    with connect(path=options.path, lazy=True) as db:
        db.drop_synopsis(options.name)
    print(f"dropped {options.name}")
    return 0


def condition(text: str) -> tuple[str, Any]:
    """`column=value` or `column=low..high`, either end open.

    >>> condition("day=3..7"), condition("day=..7"), condition("city=Rome")
    (('day', (3, 7)), ('day', (None, 7)), ('city', 'Rome'))
    """
    name, equals, wanted = text.partition("=")
    if not equals or not name:
        raise SchemaError(f"{text!r} is no condition; write column=value or column=low..high")
    low, dots, high = wanted.partition("..")
    if not dots:
        return name, _constant(wanted)
    return name, (_constant(low) if low else None, _constant(high) if high else None)


def _constant(text: str) -> Any:
    """A number or a truth value where the text is one, else the text."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, int | float | bool) else text


def show(answer: Answer) -> None:
    """Values with their interval and certain bounds."""
    table = RichTable(title=f"{answer.source}, {answer.confidence:.0%} confidence" + (", exact" if answer.exact else ""))
    last = answer.table.column_names[-1]
    for name in (*answer.table.column_names, "low", "high", "surely at least", "surely at most"):
        table.add_column(name, justify="right")
    bounds = [each.column(last).to_pylist() for each in (answer.low, answer.high, answer.hard_low, answer.hard_high)]
    for place, row in enumerate(answer.table.to_pylist()):
        table.add_row(*map(_cell, row.values()), *(_cell(bound[place]) for bound in bounds))
    Console().print(table)


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:,.6g}" if isinstance(value, float) else str(value)
