"""Statements that change tables: only where the server was told to allow them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from nearly.engine.changes.statements import Changed
from nearly.errors import NearlyError, ParseError
from nearly.plan.functions import known_names
from nearly.plan.syntax.goal import split_goal
from nearly.plan.syntax.statements import parse_statement
from nearly.session import Session
from nearly.web.limits import Limits

_NOT_ALLOWED = "this server only answers queries; start it with --allow-changes to change tables"


class ReadOnly(NearlyError):
    """A statement that changes something, to a server that does not allow it."""


class StatementRunner:
    """Runs statements that change tables and views, if that is allowed."""

    def __init__(self, db: Session, limits: Limits, allowed: bool) -> None:
        self._db = db
        self._limits = limits
        self.allowed = allowed
        self.functions = sorted(known_names())

    def is_change(self, text: str) -> bool:
        """Whether a text is a statement that changes something, not a query."""
        self._limits.check_text(text)
        return parse_statement(split_goal(text)[0]) is not None

    def surely_changes(self, text: str) -> bool:
        """Whether a text is such a statement; one that nobody can read is none: whoever answers it says what is wrong."""
        try:
            return self.is_change(text)
        except ParseError:
            return False

    def refuse(self, text: str) -> None:
        """A statement that changes something is no question, and is told where it belongs; all else passes."""
        if self.surely_changes(text):
            raise ReadOnly("that is no query: it changes something; send it to /api/execute" if self.allowed else _NOT_ALLOWED)

    def run(self, text: str) -> dict[str, Any]:
        """Do what a statement says, and tell what it did."""
        if not self.is_change(text):
            raise ReadOnly("that is a query; statements are INSERT, DELETE, UPDATE, MERGE and those about views")
        if not self.allowed:
            raise ReadOnly(_NOT_ALLOWED)
        done = self._db.execute(text)
        return asdict(done) if isinstance(done, Changed) else {"operation": str(done)}
