"""`nearly sql`: a query over a directory of tables, its answers as they come; or a statement that changes one."""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from nearly.answer import Answer
from nearly.cli.formats import WRITERS
from nearly.cli.lake import tables_asked_for, tables_in
from nearly.display.lines import SHOWN_ROWS, Lines
from nearly.display.show import Face, show
from nearly.display.terminal import Terminal
from nearly.engine.changes.statements import Changed
from nearly.errors import SchemaError
from nearly.plan.goal import split_goal
from nearly.plan.statements import parse_statement
from nearly.session import Session, connect

_CHANGES = frozenset({"insert", "delete", "update", "merge", "stream"})
"""Operations after which a table's rows are no longer those of its source."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, as a shell gives it; the last answer was printed."""

_EPILOG = """\
Every sub-directory of DIR and every .parquet, .csv, .tsv, .json, .jsonl or .ndjson file in it is a table of its name.

INSERT INTO, DELETE FROM, UPDATE and MERGE INTO change a table of --path CATALOG; files in DIR are never touched.

exit codes: 0 answered, 2 the query, the data or an option is wrong (one line on standard error says how),
130 stopped by Ctrl-C: the last answer is printed, with its bounds, before.

example: nearly sql "select city, sum(fare) from rides group by city" --data lake --within 1%
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser(
        "sql", help="answer a query over a directory of tables, early and then exactly", description=__doc__, epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("query", help="the text, or - to read it from standard input")
    parser.add_argument("--data", type=Path, metavar="DIR", help="directory with the tables")
    parser.add_argument("--path", type=Path, metavar="CATALOG", help="keep the catalog here; without it, it is temporary")
    parser.add_argument("--within", metavar="ERROR", help="stop at this relative error, such as 1%% or 0.01")
    parser.add_argument("--seconds", type=float, metavar="S", help="stop after so many seconds with the best answer")
    parser.add_argument("--confidence", default="95%", help="of the intervals, such as 95%% or 0.95 (default: 95%%)")
    parser.add_argument(
        "--format", choices=("table", *WRITERS), default="table", help="table shows progress; others the last answer"
    )
    parser.add_argument("--eager", action="store_true", help="show early answers also where the exact one is expected soon")
    parser.add_argument("--seed", type=int, default=0, help="of the random order in which data is read (default: 0)")
    parser.add_argument("--rows", type=int, default=SHOWN_ROWS, metavar="N", help=f"rows shown of a table (default: {SHOWN_ROWS})")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Answer the query; the exit code."""
    text = sys.stdin.read() if options.query == "-" else options.query
    error = None if options.within is None else share(options.within, "--within")
    confidence = share(options.confidence, "--confidence")
    if options.format == "arrow" and sys.stdout.isatty():
        raise SchemaError("--format arrow writes binary data; redirect the output to a file or a program")
    if options.data is None and options.path is None:
        raise SchemaError("there is nothing to query; give --data DIR, or --path CATALOG with tables from before")
    found = {} if options.data is None else tables_in(options.data)
    if options.path is None:
        tables_asked_for(text, found)
    if parse_statement(split_goal(text)[0]) is not None:
        return _change(text, options, found)
    face = _face(options)
    try:
        with _session(options.path, options.eager) as db:
            _register(db, text, found)
            query = db.sql(text, confidence=confidence, seed=options.seed)
            shown = show(query.answers(error=error, seconds=options.seconds), query.stop, face)
            if shown.answer is not None and options.format in WRITERS:
                WRITERS[options.format](shown.answer, sys.stdout.buffer)
                sys.stdout.buffer.flush()
    except KeyboardInterrupt:
        print("nearly: interrupted before the first answer", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_is_gone()
    if shown.answer is None:
        print("nearly: stopped before the first answer", file=sys.stderr)
    return INTERRUPTED if shown.interrupted else 0


def _change(text: str, options: argparse.Namespace, found: dict[str, Path]) -> int:
    """Run a statement and tell what it did."""
    if options.path is None:
        raise SchemaError("a statement changes tables of a catalog; give --path CATALOG, where the changes are kept")
    if options.format not in ("table", "json"):
        raise SchemaError(f"--format {options.format} is for answers; a statement is told as table (text) or json")
    with _session(options.path, options.eager) as db:
        _register(db, text, found)
        done = db.execute(text)
        print(json.dumps(asdict(done), ensure_ascii=False) if options.format == "json" and isinstance(done, Changed) else done)
    return 0


def _register(db: Session, text: str, found: dict[str, Path]) -> None:
    """Make the tables known that a text names; one that was changed is taken as it is in the catalog."""
    stored = {name.lower() for name in db.tables}
    for name, source in tables_asked_for(text, found, frozenset(db.tables)).items():
        if name.lower() not in stored or not _was_changed(db, name):
            db.register(name, source)


def _was_changed(db: Session, name: str) -> bool:
    table = db.table(name).info
    return table.overlaid or table.base.gone > 0 or any(commit.operation in _CHANGES for commit in db.history(name))


def share(text: str, option: str) -> float:
    """A share of one, written as such or in per cent.

    >>> share("5 %", "--within"), share("0.05", "--within")
    (0.05, 0.05)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    value = None if match is None else float(match.group(1)) / (100 if match.group(2) else 1)
    if value is None or not 0 < value < 1:
        raise SchemaError(f"{option} {text!r} is no share between 0 and 1; write for example 1% or 0.01")
    return value


class Silent:
    """The face of a format that another program reads: nothing but the last answer is written, and that elsewhere."""

    def applies(self) -> bool:
        return True

    def show(self, answers: Iterable[Answer]) -> None:
        for _ in answers:
            pass

    def finish(self, answer: Answer) -> None:
        pass


def _face(options: argparse.Namespace) -> Face:
    if options.format != "table":
        return Silent()
    terminal = Terminal(rows=options.rows)
    return terminal if terminal.applies() else Lines(rows=options.rows)


@contextlib.contextmanager
def _session(path: Path | None, eager: bool) -> Iterator[Session]:
    """A session that is closed whatever happens, with its Spark if one had to be started; a temporary catalog is removed."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_one_voice())
        own = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nearly-")))
        yield stack.enter_context(connect(path=path or own / "catalog", lazy=True, log=own / "java.log", eager=eager))


@contextlib.contextmanager
def _one_voice() -> Iterator[None]:
    """Errors are told by the command, in one line; PySpark would log them as well."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


def _reader_is_gone() -> int:
    """The program that reads standard output has ended, for example `head`; there is nobody to tell."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
