"""Ranges over missing rows: what a client states about them holds for its question alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nearly.answer import Answer
from nearly.errors import SchemaError
from nearly.missing.statements.constraint import Constraint
from nearly.web.asking import RANGE, Desk, Wish
from nearly.web.limits import TooMuch

MOST = 100
"""Statements of one question."""


class WebRanger:
    """Answers with ranges. What is stated belongs to the session, so one question is answered at a time."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._turn = threading.Lock()

    def answer(self, body: Mapping[str, Any], client: str) -> Answer:
        """The range of a query: `sql`, and under `missing`, by table, statements with `where`, `rows` and `values`."""
        stated = {str(table): _constraints(given) for table, given in _mapping(body.get("missing"), "missing").items()}
        wish = Wish(body.get("sql") or "", seconds=body.get("seconds"), mode=RANGE)
        if not self._turn.acquire(timeout=self._desk.limits.seconds):
            raise TooMuch("others ask for ranges; try again later")
        try:
            with self._knowing(stated):
                asking = self._desk.ask(wish, client)
                asking.wait()
        finally:
            self._turn.release()
        if asking.trouble is not None or asking.newest is None:
            raise asking.trouble or TooMuch("the query ended without an answer")
        return asking.newest

    @contextmanager
    def _knowing(self, stated: Mapping[str, list[Constraint]]) -> Iterator[None]:
        done = []
        try:
            for table, constraints in stated.items():
                self._desk.db.missing(table, constraints)
                done.append(table)
            yield
        finally:
            for table in done:
                self._desk.db.missing(table, None)


def _constraints(given: Any) -> list[Constraint]:
    if not isinstance(given, list) or len(given) > MOST:
        raise SchemaError(f"what is missing of a table is a list of up to {MOST} statements")
    return [_constraint(_mapping(each, "a statement")) for each in given]


def _constraint(given: Mapping[str, Any]) -> Constraint:
    if not given.keys() <= {"where", "rows", "values"}:
        raise SchemaError("a statement about missing rows has 'where', 'rows' and 'values'")
    values = {
        str(column): tuple(each) if isinstance(each, list) else each
        for column, each in _mapping(given.get("values"), "values").items()
    }
    rows = given.get("rows", (0, None))
    return Constraint(given.get("where") or None, rows=tuple(rows) if isinstance(rows, list) else rows, values=values)


def _mapping(given: Any, what: str) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise SchemaError(f"{what} must be a JSON object")
    return given
