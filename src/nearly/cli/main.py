"""Entry point of the command line: `nearly COMMAND ...`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Protocol

from nearly.cli import missing, sql, synopsis, table
from nearly.errors import NearlyError


class Command(Protocol):
    """A module with one command: it adds its parser, whose default `run` takes the parsed arguments and returns the exit code."""

    def add(self, commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None: ...


COMMANDS: tuple[Command, ...] = (sql, table, synopsis, missing)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; an error of the user's making is one line on standard error and exit code 2."""
    parser = argparse.ArgumentParser(prog="nearly", description="Answers early, nearly exact, then exact. On Spark.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    chosen = parser.parse_args(arguments)
    try:
        return int(chosen.run(chosen))
    except NearlyError as error:
        print(f"nearly: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
