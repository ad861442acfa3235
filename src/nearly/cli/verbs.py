"""Commands with verbs, `nearly COMMAND VERB NAME ...`: each verb runs in a session over the catalog that `--path` names."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from nearly.session import Session

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Run: TypeAlias = Callable[["Session", argparse.Namespace], None]


def add_verbs(commands: Commands, name: str, text: str) -> Commands:
    """A command, for its verbs to be added."""
    return commands.add_parser(name, help=text).add_subparsers(title="verbs", required=True, metavar="VERB")


def add_verb(verbs: Commands, name: str, text: str, run: Run, about: str | None) -> argparse.ArgumentParser:
    """A verb that is told the name of what it is about, if that is one thing."""
    from nearly.session import DEFAULT_PATH, connect  # which commands without verbs load when a text has passed its first checks

    parser = verbs.add_parser(name, help=text, description=text)
    if about is not None:
        parser.add_argument("name", help=about)
    parser.add_argument("--path", default=DEFAULT_PATH, help=f"the catalog's directory (default {DEFAULT_PATH})")

    def in_session(options: argparse.Namespace) -> int:
        with connect(path=options.path, lazy=True) as db:
            run(db, options)
        return 0

    parser.set_defaults(run=in_session)
    return parser
