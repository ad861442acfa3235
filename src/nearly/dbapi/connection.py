"""A connection of PEP 249: a session of nearly's."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from nearly.dbapi import exceptions
from nearly.dbapi.cursor import Cursor
from nearly.dbapi.exceptions import InterfaceError, NotSupportedError, as_dbapi
from nearly.session import Session, java_log
from nearly.session import connect as open_session


def connect(session: Session | None = None, *, data: Mapping[str, Any] | None = None, **options: Any) -> Connection:
    """Connect to a session that is open, or to a new one, which takes the options of `nearly.connect` and is closed with this.

    `data` are tables to register: a name and whatever `Session.register` takes for each. What Spark's Java writes goes to a
    file in the directory for temporary files, not to the program's standard error; `log=` names another.
    """
    with as_dbapi():
        own = session is None
        if session is not None and options:
            raise InterfaceError("options are for a new session, and one was given")
        quiet: dict[str, Any] = {"lazy": True, "log": java_log()}
        opened = session if session is not None else open_session(**(quiet | options))
        try:
            for name, source in (data or {}).items():
                opened.register(name, source)
        except BaseException:
            if own:
                opened.close()
            raise
        return Connection(opened, own)


class Connection:
    """A session, and the cursors over it. Threads may share it."""

    Warning = exceptions.Warning
    Error = exceptions.Error
    InterfaceError = exceptions.InterfaceError
    DatabaseError = exceptions.DatabaseError
    DataError = exceptions.DataError
    OperationalError = exceptions.OperationalError
    IntegrityError = exceptions.IntegrityError
    InternalError = exceptions.InternalError
    ProgrammingError = exceptions.ProgrammingError
    NotSupportedError = exceptions.NotSupportedError

    def __init__(self, session: Session, owned: bool) -> None:
        self._session: Session | None = session
        self._owned = owned
        self._changed = False

    @property
    def session(self) -> Session:
        """The session behind it."""
        if self._session is None:
            raise InterfaceError("the connection is closed")
        return self._session

    def cursor(self) -> Cursor:
        """A cursor, for one statement after the other."""
        _ = self.session
        return Cursor(self)

    def changed(self) -> None:
        """A statement has changed a table, for good."""
        self._changed = True

    def commit(self) -> None:
        """Nothing: what a statement changes is there when it ends."""
        _ = self.session
        self._changed = False

    def rollback(self) -> None:
        """An error where something was changed since the last `commit`, because it stays."""
        _ = self.session
        if self._changed:
            raise NotSupportedError("a statement takes effect when it ends, and is not undone; use session.transaction()")

    def close(self) -> None:
        """Close the connection, and the session if it was opened for it; its cursors cannot be used any more."""
        session, self._session = self.session, None
        if self._owned:
            session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._session is not None:
            self.close()
