"""Commands of the shell that are no SQL: each begins with a dot and takes a line."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nearly.cli.formats import MODES, write_look
from nearly.cli.settings import ShellSettings, share
from nearly.errors import ParseError, SchemaError, unknown
from nearly.looking import columns_of, tables_of

if TYPE_CHECKING:
    from nearly.cli.shell import Shell


class Quit(Exception):
    """The user leaves."""


@dataclass(frozen=True, slots=True)
class DotCommand:
    """What a command takes, what it does, and how it does it."""

    takes: str
    text: str
    run: Callable[[Shell, list[str]], int]


def run_command(shell: Shell, line: str) -> int:
    """Run a line such as `.mode markdown`; the exit code."""
    try:
        name, *arguments = shlex.split(line)
    except ValueError:
        raise ParseError("a quote is open at the end of the line") from None
    if name not in COMMANDS:
        raise unknown("command", name, COMMANDS)
    return COMMANDS[name].run(shell, arguments)


def _tables(shell: Shell, arguments: list[str]) -> int:
    _refuse_more(arguments, 0)
    shell.place.register_all()
    _print_look(shell, tables_of(shell.place.db))
    return 0


def _schema(shell: Shell, arguments: list[str]) -> int:
    _refuse_more(arguments, 1)
    shell.place.register_all()
    for name in arguments or shell.place.names:
        if not arguments:
            print(f"{name}:")
        _print_look(shell, columns_of(shell.place.db, name))
    return 0


def _read(shell: Shell, arguments: list[str]) -> int:
    if len(arguments) != 1:
        raise ParseError("write .read FILE")
    return shell.read_file(Path(arguments[0]).expanduser())


def _timer(shell: Shell, arguments: list[str]) -> int:
    settings = shell.place.settings
    word = arguments[0].lower() if len(arguments) == 1 else ""
    if word not in ("on", "off"):
        raise ParseError(f"write .timer on or .timer off; it is {'on' if settings.timer else 'off'}")
    settings.timer = word == "on"
    return 0


def _mode(shell: Shell, arguments: list[str]) -> int:
    if len(arguments) != 1:
        raise ParseError(f"write .mode and one of {', '.join(MODES)}; it is {shell.place.settings.mode}")
    if arguments[0] == "arrow" and sys.stdout.isatty():
        raise SchemaError("arrow is binary data, which a terminal cannot show")
    shell.place.settings.set_mode(arguments[0])
    return 0


def _within(shell: Shell, arguments: list[str]) -> int:
    settings = shell.place.settings
    text = " ".join(arguments).strip().lower()
    if text in ("off", "exact"):
        settings.error = settings.seconds = None
    elif text.endswith(("s", "seconds", "second")) and text.rstrip("econds ").replace(".", "", 1).isdigit():
        settings.error, settings.seconds = None, float(text.rstrip("econds "))
    else:
        settings.error, settings.seconds = share(text, ".within"), None
    return 0


def _confidence(shell: Shell, arguments: list[str]) -> int:
    shell.place.settings.confidence = share(" ".join(arguments), ".confidence")
    return 0


def _rows(shell: Shell, arguments: list[str]) -> int:
    if len(arguments) != 1 or not arguments[0].isdigit():
        raise ParseError(f"write .rows N; it is {shell.place.settings.rows}")
    shell.place.settings.rows = int(arguments[0])
    return 0


def _register(shell: Shell, arguments: list[str]) -> int:
    if len(arguments) < 2:
        raise ParseError("write .register NAME FILE, or several files")
    name, *paths = arguments
    shell.place.db.register(name, paths[0] if len(paths) == 1 else paths)
    return 0


def _quit(shell: Shell, arguments: list[str]) -> int:
    raise Quit


def _help(shell: Shell, arguments: list[str]) -> int:
    width = max(len(f"{name} {command.takes}") for name, command in COMMANDS.items())
    for name, command in COMMANDS.items():
        print(f"{f'{name} {command.takes}':{width}}  {command.text}")
    print("\nAny SQL that Spark takes ends in a semicolon; files can be queried: select count(*) from 'rides.parquet';")
    print("End a query with WITHIN 1% or WITHIN 2 SECONDS for an early answer. Ctrl-C stops a query and keeps its answer.")
    return 0


def _refuse_more(arguments: list[str], most: int) -> None:
    if len(arguments) > most:
        raise ParseError(f"{arguments[most]!r} was not expected; .help lists the commands")


def _print_look(shell: Shell, table: object) -> None:
    settings: ShellSettings = shell.place.settings
    write_look(table, settings.mode, settings.rows)


COMMANDS = {
    ".help": DotCommand("", "this list", _help),
    ".tables": DotCommand("", "the tables and views there are", _tables),
    ".schema": DotCommand("[TABLE]", "columns and types of a table, or of all", _schema),
    ".register": DotCommand("NAME FILE", "make a file, a glob or several files a table", _register),
    ".read": DotCommand("FILE", "run the statements of a file", _read),
    ".mode": DotCommand("MODE", f"how answers are shown: {', '.join(MODES)}", _mode),
    ".rows": DotCommand("N", "how many rows of an answer are shown", _rows),
    ".timer": DotCommand("on|off", "tell how long each statement took", _timer),
    ".within": DotCommand("1%|2s|off", "stop queries at this error or after this time", _within),
    ".confidence": DotCommand("95%", "of the intervals", _confidence),
    ".quit": DotCommand("", "leave, as Ctrl-D does", _quit),
}
