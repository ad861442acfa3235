"""The exceptions of PEP 249, and which of them each error of nearly's becomes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nearly.errors import Conflict, ConstraintError, EngineError, NearlyError, ParseError, SchemaError, UnknownName, Unsupported


class Warning(Exception):  # noqa: A001  the name that PEP 249 gives
    """Something to know; nearly raises none."""


class Error(Exception):
    """Base of all errors."""


class InterfaceError(Error):
    """The module was used wrongly, for example a cursor that is closed."""


class DatabaseError(Error):
    """Base of the errors of the database."""


class DataError(DatabaseError):
    """A value that does not fit."""


class OperationalError(DatabaseError):
    """Data, engine or machine failed."""


class IntegrityError(DatabaseError):
    """A key that is there already, or a constraint that does not hold."""


class InternalError(DatabaseError):
    """Something that should not happen."""


class ProgrammingError(DatabaseError):
    """The text is no statement, or names what does not exist."""


class NotSupportedError(DatabaseError):
    """A request that nearly does not do."""


_KINDS: tuple[tuple[type[NearlyError], type[Error]], ...] = (
    (ParseError, ProgrammingError),
    (UnknownName, ProgrammingError),
    (Unsupported, NotSupportedError),
    (ConstraintError, IntegrityError),
    (SchemaError, ProgrammingError),
    (Conflict, OperationalError),
    (EngineError, OperationalError),
)


@contextmanager
def as_dbapi() -> Iterator[None]:
    """Within it, errors of nearly's family become those of PEP 249; the message stays."""
    try:
        yield
    except NearlyError as error:
        kind = next((each for own, each in _KINDS if isinstance(error, own)), DatabaseError)
        raise kind(str(error)) from error
