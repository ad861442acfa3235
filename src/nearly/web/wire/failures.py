"""Errors as Postgres tells them, with the codes by which clients tell them apart."""

from __future__ import annotations

import logging

from pg_mimic import PgError

from nearly.engine.native.running import Stopped
from nearly.errors import Conflict, ConstraintError, EngineError, NearlyError, ParseError, SchemaError, UnknownName, Unsupported
from nearly.web.asking import Stop
from nearly.web.changing import ReadOnly
from nearly.web.limits import TooMuch

logger = logging.getLogger(__name__)

_CODES: tuple[tuple[type[NearlyError], str], ...] = (
    (ParseError, "42601"),
    (Unsupported, "0A000"),
    (ConstraintError, "23514"),
    (Conflict, "40001"),
    (ReadOnly, "25006"),
    (TooMuch, "54000"),
    (Stop, "57014"),
    (Stopped, "57014"),
    (SchemaError, "42804"),
    (EngineError, "58000"),
)
_NAMES = {"table": "42P01", "view": "42P01", "column": "42703", "function": "42883", "schema": "3F000"}


def told(trouble: Exception) -> PgError:
    """The error of the wire for one of ours; what is not ours is for the log."""
    if isinstance(trouble, PgError):
        return trouble
    if isinstance(trouble, UnknownName):
        words = str(trouble).split()
        kind = words[0] if "is not registered" in str(trouble) else words[1] if words[:1] == ["unknown"] and len(words) > 1 else ""
        return PgError(_NAMES.get(kind, "42704"), str(trouble))
    if isinstance(trouble, NearlyError):
        code = next((code for kind, code in _CODES if isinstance(trouble, kind)), "XX000")
        return PgError(code, str(trouble))
    logger.error("a statement failed", exc_info=trouble)
    return PgError("XX000", "the server met an error of its own; its log says more")
