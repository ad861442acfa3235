"""The error family: every error the library raises on purpose is a `NearlyError`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class NearlyError(Exception):
    """Base of all errors raised on purpose; its message says what, where, and what to do instead."""


class ParseError(NearlyError):
    """The text is not one query."""


class UnknownName(NearlyError):
    """A table, column, function, layout or option that does not exist."""


class Unsupported(NearlyError):
    """A valid request that this part of the library does not do."""


class SchemaError(NearlyError):
    """Types or shapes that do not fit together."""


class ConstraintError(NearlyError):
    """Constraints that contradict each other or the data."""


class EngineError(NearlyError):
    """Spark, the native kernel or the stored data failed."""


class Conflict(EngineError):
    """Someone else changed a table meanwhile; nothing was changed, and trying again may succeed."""


_OWN = "nearly_"
"""Names that begin so are the library's own, and never what a user meant."""

CLOSED = "the session is closed; open another with nearly.connect()"
"""What everything says that is used after its session."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """An `UnknownName` that offers the closest known names.

    >>> str(unknown("column", "l_quantty", ["l_quantity", "l_tax"]))
    "unknown column 'l_quantty'; did you mean 'l_quantity'?"
    """
    names = sorted(name for name in set(known) if not name.startswith(_OWN))
    close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.6)
    if close:
        offer = "did you mean " + " or ".join(repr(option) for option in close) + "?"
    elif names:
        shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        offer = f"known {_several(kind)} are: {shown}"
    else:
        offer = f"there is no {kind} yet"
    return UnknownName(f"unknown {kind} {name!r}; {offer}")


def _several(kind: str) -> str:
    """The plural of what has a name: of a standing query, or a table of the query."""
    one, of, whose = kind.partition(" of ")
    return (f"{one[:-1]}ies" if one.endswith("y") else f"{one}s") + of + whose
