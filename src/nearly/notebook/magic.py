"""`%%nearly` and `%nearly`: SQL in a cell of a notebook, its answers as they come.

    %%nearly [SESSION] [--within 1%] [--seconds 2] [--confidence 99%] [--quiet] [--into NAME]
    select city, sum(fare) from rides group by city

The session is the variable `db` of the notebook, another that is named, or a new one. The last answer is in the variable `_answer`,
or in the one that `--into` names.
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any, NoReturn

from nearly.errors import ParseError, SchemaError
from nearly.looking import is_look, look
from nearly.plan.syntax.goal import split_goal
from nearly.plan.syntax.statements import parse_statement
from nearly.printing.html import arrow_html
from nearly.session import Session, connect

SHOWN_ROWS = 100


class _Options(argparse.ArgumentParser):
    """Mistakes are errors of nearly's family; a notebook is not left."""

    def error(self, message: str) -> NoReturn:
        raise ParseError(f"%%nearly: {message}")


def run(shell: Any, line: str, cell: str | None) -> Any:
    """Answer the text of a cell, or of the line itself; statements are told, SHOW and DESCRIBE are listed."""
    options, text = _read(line, cell)
    db = _session(shell, options.session)
    listed = look(db, text) if is_look(text) else None
    if listed is not None:
        return _Listed(listed)
    names = shell.user_ns
    if parse_statement(split_goal(text)[0]) is not None:
        return db.execute(text)
    query = db.sql(text, confidence=_share(options.confidence) or 0.95)
    goal = {"error": _share(options.within), "seconds": options.seconds}
    names[options.into] = query.run(**goal) if options.quiet else query.live(**goal)
    return None if options.quiet else names[options.into]


class _Listed:
    """A list of tables or columns."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __repr__(self) -> str:
        return str(self.table.to_pylist())

    def _repr_html_(self) -> str:
        return arrow_html(self.table, SHOWN_ROWS)


def _read(line: str, cell: str | None) -> tuple[argparse.Namespace, str]:
    """Options and text. In a line magic the text is all of the line."""
    parser = _Options(prog="%%nearly", add_help=False)
    parser.add_argument("session", nargs="?")
    parser.add_argument("--within")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--confidence")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--into", default="_answer")
    if cell is None:
        return parser.parse_args([]), line
    return parser.parse_args(shlex.split(line)), cell


def _session(shell: Any, name: str | None) -> Session:
    found = shell.user_ns.get(name or "db")
    if isinstance(found, Session):
        return found
    if name is not None:
        raise SchemaError(f"{name!r} is no session of nearly's; write {name} = nearly.connect() first")
    db = shell.user_ns["db"] = connect()
    return db


def _share(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text.strip().removesuffix("%")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        raise SchemaError(f"{text!r} is no share; write for example 1% or 0.01") from None
    return value
