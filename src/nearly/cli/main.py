"""Entry point of the command line: `nearly COMMAND ...`, or `nearly` alone for the shell."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

from nearly.cli.verbs import Commands
from nearly.errors import NearlyError
from nearly.version import __version__

COMMANDS = {
    "sql": "nearly.cli.sql",
    "shell": "nearly.cli.shell",
    "table": "nearly.cli.table",
    "view": "nearly.cli.view",
    "autoview": "nearly.cli.view",
    "standing": "nearly.cli.standing",
    "synopsis": "nearly.cli.synopsis",
    "missing": "nearly.cli.missing",
    "serve": "nearly.cli.serve",
    "mcp": "nearly.cli.mcp",
    "completion": "nearly.cli.completion",
}
"""Each command and the module that has it, which is loaded when it is needed."""


class Command(Protocol):
    """A module with one command, or a few that belong together: it adds their parsers.

    Their default `run` takes the parsed arguments and returns the exit code.
    """

    def add(self, commands: Commands) -> None: ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; an error of the user's making is one line on standard error and exit code 2."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or (given[0].startswith("--") and given[0] not in ("--help", "--version")):
        given = ["shell", *given]
    chosen = parser_for(given).parse_args(given)
    try:
        return int(chosen.run(chosen))
    except NearlyError as error:
        print(f"nearly: {one_line(str(error))}", file=sys.stderr)
        return 2


def parser_for(given: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the command that is given, or of all where it is none of them."""
    parser = argparse.ArgumentParser(
        prog="nearly",
        description="Answers early, nearly exact, then exact. On Spark.",
        epilog="Without a command, a shell is opened.",
    )
    if "--version" in given[:1]:
        parser.add_argument("--version", action="version", version=_versions())
    else:
        parser.add_argument("--version", action="store_true", help="the versions of nearly and its engines")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    asked = given[0] if given else ""
    for module in dict.fromkeys([COMMANDS[asked]] if asked in COMMANDS else COMMANDS.values()):
        command: Command = import_module(module)
        command.add(commands)
    return parser


def one_line(text: str) -> str:
    """A message without its line breaks.

    >>> one_line("Spark failed:\\n  no such thing")
    'Spark failed: no such thing'
    """
    return " ".join(text.split())


def _versions() -> str:
    """The versions of nearly and of the engines it runs on, which a report of a fault needs."""
    return f"nearly {__version__} (Python {sys.version.split()[0]}, DuckDB {_version('duckdb')}, PySpark {_version('pyspark')})"


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # which takes long

    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


if __name__ == "__main__":
    sys.exit(main())
