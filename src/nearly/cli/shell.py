"""`nearly` or `nearly shell`: statements typed one after the other, with history and completion; answers as they come."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nearly.cli.dot_commands import Quit, run_command
from nearly.cli.lake import sources_of
from nearly.cli.settings import ShellSettings
from nearly.cli.splitting import is_complete, statements_of
from nearly.cli.sql import add_data_options
from nearly.cli.verbs import Commands
from nearly.cli.workplace import Workplace, opened
from nearly.errors import EngineError, NearlyError
from nearly.session import DEFAULT_PATH
from nearly.version import __version__


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    parser = commands.add_parser("shell", help="type queries one after the other", description=__doc__)
    add_data_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read and run statements until the end of the input."""
    path = options.path or (Path(DEFAULT_PATH) if Path(DEFAULT_PATH).is_dir() else None)
    found = sources_of(options.data)
    with opened(path, options.eager) as db:
        shell = Shell(Workplace(db, found, ShellSettings(), keeps=path is not None))
        if not sys.stdin.isatty():
            return shell.run(StandardInput())
        print(f"nearly {__version__}. End a statement with a semicolon; .help tells more, Ctrl-D leaves.")
        return shell.run(prompting(shell.place))


class Reader(Protocol):
    """Where the texts of a shell come from."""

    stops_at_errors: bool

    def read(self) -> str:
        """The next statement or dot command; `EOFError` at the end, `KeyboardInterrupt` when what was typed is given up."""


@dataclass(slots=True)
class Shell:
    """Runs what it reads: an error is one line, and the next statement is read. A script ends at its first error."""

    place: Workplace

    def run(self, reader: Reader) -> int:
        """All texts of a reader; the exit code is that of a script's text that failed, or 0."""
        code = 0
        while True:
            try:
                text = reader.read()
            except EOFError:
                return code if reader.stops_at_errors else 0
            except KeyboardInterrupt:
                continue
            try:
                code = self.feed(text)
            except Quit:
                return 0
            if code and reader.stops_at_errors:
                return code

    def feed(self, text: str) -> int:
        """Run one text; the exit code it would have as a command."""
        try:
            if text.lstrip().startswith("."):
                return run_command(self, text.strip())
            return max((self.place.run(each) for each in statements_of(text) if each.strip()), default=0)
        except NearlyError as error:
            print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 130

    def read_file(self, path: Path) -> int:
        """Run the statements and commands of a file, up to the first that fails."""
        try:
            lines = path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as trouble:
            reason = trouble.strerror if isinstance(trouble, OSError) else "it is no text in UTF-8"
            raise EngineError(f"cannot read {str(path)!r}: {reason}") from None
        return self.run(ShellLines(iter(lines)))


@dataclass(slots=True)
class ShellLines:
    """Texts from lines: a dot command is a line of its own, a statement goes up to its semicolon or to the end."""

    lines: Iterator[str]
    stops_at_errors: bool = True

    def read(self) -> str:
        text = ""
        for line in self.lines:
            if not text.strip() and line.lstrip().startswith("."):
                return line
            text = f"{text}\n{line}" if text else line
            if is_complete(text):
                return text
        if text.strip():
            return text
        raise EOFError


class StandardInput(ShellLines):
    """Texts from a pipe."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(line.rstrip("\n") for line in sys.stdin)


def prompting(place: Workplace) -> Reader:
    """Texts from a terminal, with history, completion and lines that go on until a semicolon."""
    try:
        from nearly.cli.prompt import Prompt
    except ImportError as missing:
        raise EngineError(f"the shell needs prompt-toolkit ({missing}); install it with pip install prompt-toolkit") from None
    return Prompt(place, history_file())


def history_file() -> Path | None:
    """Where statements are remembered; None where no such file can be made."""
    home = os.environ.get("NEARLY_HISTORY") or str(
        Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "nearly" / "history"
    )
    try:
        Path(home).parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return Path(home)
