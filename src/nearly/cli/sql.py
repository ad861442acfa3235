"""`nearly sql`: queries over files or a directory of tables, their answers as they come; or statements that change tables."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from nearly.cli.formats import MODES, refuse_terminal
from nearly.cli.lake import Sources, refuse_unknown_columns, sources_of, tables_asked_for
from nearly.cli.settings import ShellSettings, share
from nearly.cli.splitting import statements_of
from nearly.cli.verbs import Commands
from nearly.display.lines import SHOWN_ROWS
from nearly.errors import EngineError, SchemaError
from nearly.looking import is_look
from nearly.plan.syntax.file_names import with_named_files

_EPILOG = """\
DATA is a directory, in which every sub-directory and every .parquet, .csv, .tsv, .json, .jsonl or .ndjson file is a table of its
name; or such files or globs, each a table; or NAME=GLOB, one table of several files. A query may name a file itself:
select count(*) from 'rides.parquet'. DESCRIBE, SHOW TABLES and EXPLAIN tell what there is.

INSERT INTO, DELETE FROM, UPDATE and MERGE INTO change a table of --path CATALOG; files in DATA are never touched.

exit codes: 0 answered, 2 the query, the data or an option is wrong (one line on standard error says how),
130 stopped by Ctrl-C: the last answer is printed, with its bounds, before.

example: nearly sql "select city, sum(fare) from rides group by city" --data lake --within 1%
"""


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser(
        "sql", help="answer queries over files, early and then exactly", description=__doc__, epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("query", nargs="?", help="the text, or - to read it from standard input; ; between several")
    parser.add_argument("-f", "--file", type=Path, metavar="FILE", help="read the text from a file instead")
    add_data_options(parser)
    parser.add_argument("--within", metavar="ERROR", help="stop at this relative error, such as 1%% or 0.01")
    parser.add_argument("--seconds", type=float, metavar="S", help="stop after so many seconds with the best answer")
    parser.add_argument("--confidence", default="95%", help="of the intervals, such as 95%% or 0.95 (default: 95%%)")
    parser.add_argument("--format", choices=MODES, default="table", help="table shows progress; others the last answer")
    parser.add_argument("--seed", type=int, default=0, help="of the random order in which data is read (default: 0)")
    parser.add_argument("--rows", type=int, default=SHOWN_ROWS, metavar="N", help=f"rows shown of a table (default: {SHOWN_ROWS})")
    parser.set_defaults(run=run)


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """What the tables are, and how early answers come."""
    parser.add_argument("--data", nargs="+", action="extend", default=[], metavar="DATA", help="directory, files or globs")
    parser.add_argument("--path", type=Path, metavar="CATALOG", help="keep the catalog here; without it, it is temporary")
    parser.add_argument("--eager", action="store_true", help="show early answers also where the exact one is expected soon")


def run(options: argparse.Namespace) -> int:
    """Answer the queries; the exit code. What answers them is loaded when their names are known to be right."""
    texts = statements_of(_text(options))
    error = None if options.within is None else share(options.within, "--within")
    confidence = share(options.confidence, "--confidence")
    settings = ShellSettings(options.format, error, options.seconds, confidence, options.seed, options.rows)
    refuse_terminal(options.format)
    found = sources_of(options.data)
    if options.path is None:
        for text in texts:
            _refuse_unknown(text, found)
    from nearly.cli.workplace import INTERRUPTED, Workplace, opened

    try:
        with opened(options.path, options.eager) as db:
            place = Workplace(db, found, settings, keeps=options.path is not None)
            return max((place.run(text) for text in texts), default=0)
    except KeyboardInterrupt:
        print("nearly: interrupted before the first answer", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_is_gone()


def _text(options: argparse.Namespace) -> str:
    if (options.query is None) == (options.file is None):
        raise SchemaError("give a query, or -f FILE with queries, and not both")
    if options.file is None:
        return sys.stdin.read() if options.query == "-" else str(options.query)
    try:
        return str(options.file.read_text())
    except (OSError, UnicodeDecodeError) as trouble:
        reason = trouble.strerror if isinstance(trouble, OSError) else "it is no text in UTF-8"
        raise EngineError(f"cannot read {str(options.file)!r}: {reason}") from None


def _refuse_unknown(text: str, found: Sources) -> None:
    """A table or a column that does not exist is told before anything is opened."""
    if is_look(text):
        return
    files: Sources = {}

    def name_of(path: str) -> str:
        files[f"nearly_file_{len(files)}"] = Path(path)
        return list(files)[-1]

    named = with_named_files(text, name_of)
    if not found and not files and _names_tables(named):
        raise SchemaError("there is nothing to query; give --data DIR or files, or --path CATALOG with tables from before")
    asked = tables_asked_for(named, found, frozenset(files))
    refuse_unknown_columns(named, asked | files)


def _names_tables(text: str) -> bool:
    from nearly.plan.syntax.goal import split_goal
    from nearly.plan.syntax.statements import tables_named

    asked, common = tables_named(split_goal(text)[0])
    return any(name.lower() not in common for name in asked)


def _reader_is_gone() -> int:
    """The program that reads standard output has ended, for example `head`; there is nobody to tell."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
