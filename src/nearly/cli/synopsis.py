"""`nearly synopsis build|query|stats|drop`: synopses from the command line."""

from __future__ import annotations

import argparse
import ast
from typing import Any

import pyarrow as pa

from nearly.answer import Answer
from nearly.cli.verbs import Commands, Run, add_verb, add_verbs
from nearly.errors import SchemaError
from nearly.printing.frame import TextTable
from nearly.printing.plain import plain_table
from nearly.session import Session


def add(commands: Commands) -> None:
    """The command and its verbs."""
    verbs = add_verbs(commands, "synopsis", "instant answers from a tree of aggregates with sampled leaves")

    def verb(name: str, text: str, run: Run) -> argparse.ArgumentParser:
        return add_verb(verbs, name, text, run, "the synopsis")

    _add_build(verb("build", "build it with Spark, in two passes over the table", run_build))
    query = verb("query", "ask for one aggregate", run_query)
    query.add_argument("aggregate", help="sum, count, rows, avg, min, max, var or stddev; of several measures as in 'sum(fare)'")
    query.add_argument("--where", nargs="*", default=[], metavar="CONDITION", help="such as day=3..7, day=3.. or city=Rome")
    query.add_argument("--by", action="append", help="group by a column of text or booleans; may be given several times")
    query.add_argument("--confidence", type=float, default=0.95)
    stats = verb("stats", "show its size and its tree with the error of each leaf", run_stats)
    stats.add_argument("--lines", type=int, default=64, help="lines of the tree to show (default 64)")
    verb("drop", "forget it and remove its files", run_drop)


def _add_build(build: argparse.ArgumentParser) -> None:
    build.add_argument("--table", required=True, help="a registered table, or the name to register --source under")
    build.add_argument("--source", help="Parquet files, CSV or JSON to register first")
    build.add_argument("--measure", required=True, nargs="+", help="the columns that are aggregated")
    build.add_argument("--on", required=True, nargs="+", help="the columns that are filtered on")
    build.add_argument("--key", nargs="+", help="the columns that tell rows apart, for deletes")
    build.add_argument("--leaves", type=int, default=64)
    build.add_argument("--sample", type=float, default=0.005, help="share of the rows to keep as samples (default 0.005)")
    build.add_argument("--per-query", type=float, help="instead: share of the rows that a query may look at")
    build.add_argument("--partitioning", default="sampled", help="sampled, search, equal_depth, optimal or monotone")


def run_build(db: Session, options: argparse.Namespace) -> None:
    if options.source is not None:
        db.register(options.table, options.source, key=options.key or ())
    made = db.create_synopsis(
        options.name, options.table, options.measure, options.on, key=options.key, leaves=options.leaves, sample=options.sample,
        per_query=options.per_query, method=options.partitioning,
    )  # fmt: skip
    print(made)


def run_query(db: Session, options: argparse.Namespace) -> None:
    conditions = dict(condition(text) for text in options.where)
    show(db.synopsis(options.name).query(options.aggregate, by=options.by, confidence=options.confidence, **conditions))


def run_stats(db: Session, options: argparse.Namespace) -> None:
    synopsis = db.synopsis(options.name)
    for name, value in synopsis.stats().items():
        print(f"{name:12} {value}")
    for tree in range(len(synopsis.trees)):
        print(synopsis.picture(tree, options.lines))


def run_drop(db: Session, options: argparse.Namespace) -> None:
    db.drop_synopsis(options.name)
    print(f"dropped {options.name}")


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
    last = answer.table.column_names[-1]
    bounds = {"low": answer.low, "high": answer.high, "surely at least": answer.hard_low, "surely at most": answer.hard_high}
    columns = [*answer.table.columns, *(each.column(last) for each in bounds.values())]
    table = pa.Table.from_arrays(columns, names=[*answer.table.column_names, *bounds])
    print(f"{answer.source}, {answer.confidence:.0%} confidence" + (", exact" if answer.exact else ""))
    print(plain_table(TextTable.of(table, table, table, table.num_rows)))
