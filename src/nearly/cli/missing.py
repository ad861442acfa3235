"""`nearly missing`: constraints about missing rows, checked, used and suggested from the command line."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nearly.cli.verbs import Commands, add_verbs
from nearly.errors import SchemaError
from nearly.missing.constraint_set import ConstraintSet
from nearly.missing.derive import ROW_BOUNDS, SCHEMES, constraints_from
from nearly.session import Session, connect


def add(commands: Commands) -> None:
    """The parsers of `missing check`, `missing range` and `missing suggest`."""
    verbs = add_verbs(commands, "missing", "ranges that answers can take when rows are missing")
    check = verbs.add_parser("check", help="test constraints on rows of the past, and list what they do not cover")
    check.add_argument("constraints", type=Path, help="YAML or JSON file of constraints")
    check.add_argument("history", type=Path, help="rows of the past: Parquet, CSV or JSON files")
    check.add_argument("--gaps", type=int, default=5, metavar="N", help="list at most N regions without constraint (default 5)")
    check.set_defaults(run=run_check)
    _add_range(verbs.add_parser("range", help="the range of a query over the rows that are there and the missing ones"))
    _add_suggest(verbs.add_parser("suggest", help="derive constraints from rows of the past"))


def _add_range(range_: argparse.ArgumentParser) -> None:
    range_.add_argument("query", help="SQL with SUM, COUNT, AVG, MIN or MAX")
    range_.add_argument(
        "--table", action="append", required=True, metavar="NAME=PATH", help="a table and its files; may be given again"
    )
    range_.add_argument(
        "--constraints", action="append", required=True, metavar="NAME=FILE", help="a table and its constraints; may be given again"
    )
    range_.add_argument("--explain", action="store_true", help="tell which constraints bind, and by how much")
    range_.add_argument("--seconds", type=float, default=10.0, help="time limit for the range (default 10)")
    range_.set_defaults(run=run_range)


def _add_suggest(suggest: argparse.ArgumentParser) -> None:
    suggest.add_argument("history", type=Path, help="rows of the past: Parquet, CSV or JSON files")
    suggest.add_argument("--by", required=True, help="columns whose values tell the parts apart, with commas")
    suggest.add_argument("-n", type=int, default=100, help="about how many constraints (default 100)")
    suggest.add_argument("--scheme", choices=SCHEMES, default="partition")
    suggest.add_argument("--rows", choices=ROW_BOUNDS, default="at most")
    suggest.add_argument("--margin", type=float, default=0.0, help="widen everything by this fraction")
    suggest.add_argument("-o", "--output", type=Path, required=True, help="YAML or JSON file to write")
    suggest.set_defaults(run=run_suggest)


def run_check(chosen: argparse.Namespace) -> int:
    """Exit code 1 when the history breaks a constraint."""
    constraints = ConstraintSet.load(chosen.constraints)
    with _session() as session:
        session.register("history", chosen.history)
        stated = session.missing("history", constraints)
        if stated is None:
            print("the file has no constraints")
            return 0
        violations = stated.check("history")
        for violation in violations:
            print(f"violated  {violation}")
        for gap in stated.gaps(most=chosen.gaps):
            print(f"not covered  {gap}")
    print(f"{len(constraints)} constraints, {len(violations)} violations")
    return 1 if violations else 0


def run_range(chosen: argparse.Namespace) -> int:
    """Prints one line for each cell of the answer: its value over the rows that are there, and its range."""
    with _session() as session:
        for name, path in _pairs(chosen.table, "--table"):
            session.register(name, path)
        for name, path in _pairs(chosen.constraints, "--constraints"):
            session.missing(name, path)
        _print_range(session, chosen)
    return 0


def _print_range(session: Session, chosen: argparse.Namespace) -> None:
    answer = session.sql(chosen.query).range(seconds=chosen.seconds)
    for row in range(answer.table.num_rows):
        for column, name in enumerate(answer.table.column_names):
            value, low, high = (table.column(column)[row].as_py() for table in (answer.table, answer.hard_low, answer.hard_high))
            same = value == low == high
            print(f"{name} = {value}" if same else f"{name} = {value}, with the missing rows {_shown(low)} to {_shown(high)}")
    if "other_groups" in answer.stats:
        print("missing rows may add groups that are not listed")
    if chosen.explain:
        for row in range(answer.table.num_rows):
            print(answer.explain(row=row))


def run_suggest(chosen: argparse.Namespace) -> int:
    with _session():
        by = [each.strip() for each in chosen.by.split(",") if each.strip()]
        found = constraints_from(
            str(chosen.history), by=by, n=chosen.n, scheme=chosen.scheme, rows=chosen.rows, margin=chosen.margin
        )
    found.save(chosen.output)
    print(f"wrote {len(found)} constraints to {chosen.output}")
    return 0


@contextmanager
def _session() -> Iterator[Session]:
    """A session whose catalog is gone at the end: the commands only read."""
    with tempfile.TemporaryDirectory(prefix="nearly-") as directory, connect(path=directory, lazy=True) as session:
        yield session


def _pairs(given: list[str], option: str) -> list[tuple[str, str]]:
    found = []
    for each in given:
        name, equals, path = each.partition("=")
        if not equals or not name or not path:
            raise SchemaError(f"{option} {each!r}: write NAME=PATH")
        found.append((name, path))
    return found


def _shown(value: object) -> str:
    return "without limit" if value is None else str(value)
