"""The settings of one connection: those that Postgres clients expect, and nearly's own.

`nearly.error` and `nearly.seconds` are the goals of queries that have none in their text, `nearly.confidence` that of intervals,
and `nearly.bounds` adds columns with the bounds of numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pg_mimic import PgError

_SET = re.compile(r"^\s*SET\s+(?:SESSION\s+|LOCAL\s+)?([\w.]+|\"[^\"]+\")\s*(?:TO|=)\s*(.+?)\s*;?\s*$", re.IGNORECASE | re.DOTALL)
_ZONE = re.compile(r"^\s*SET\s+(?:SESSION\s+|LOCAL\s+)?TIME\s+ZONE\s+(.+?)\s*;?\s*$", re.IGNORECASE)
_MODE = re.compile(r"^\s*SET\s+(?:SESSION\s+CHARACTERISTICS|TRANSACTION|SESSION\s+AUTHORIZATION|ROLE|CONSTRAINTS)\b", re.IGNORECASE)
_SHOW = re.compile(r"^\s*SHOW\s+(.+?)\s*;?\s*$", re.IGNORECASE)
_RESET = re.compile(r"^\s*(?:RESET\s+(\S+?)|DISCARD\s+\w+)\s*;?\s*$", re.IGNORECASE)
OWN = {"nearly.error": "", "nearly.seconds": "", "nearly.confidence": "95%", "nearly.bounds": "off"}
DEFAULTS = OWN | {
    "server_version": "16.0", "server_version_num": "160000", "server_encoding": "UTF8", "client_encoding": "UTF8",
    "timezone": "UTC", "search_path": '"$user", public', "standard_conforming_strings": "on", "is_superuser": "off",
    "jit": "off", "transaction_isolation": "read committed", "transaction isolation level": "read committed",
    "default_transaction_isolation": "read committed", "transaction_read_only": "on", "default_transaction_read_only": "on",
    "datestyle": "ISO, MDY", "intervalstyle": "postgres", "integer_datetimes": "on", "bytea_output": "hex",
    "max_identifier_length": "63", "client_min_messages": "notice", "statement_timeout": "0", "application_name": "",
    "extra_float_digits": "1", "lc_collate": "C.UTF-8", "block_size": "8192", "default_table_access_method": "heap",
    "max_index_keys": "32", "wal_level": "replica", "session_authorization": "nearly", "row_security": "on",
    "lock_timeout": "0", "idle_in_transaction_session_timeout": "0", "default_tablespace": "", "transaction_deferrable": "off",
}  # fmt: skip


@dataclass(slots=True)
class Variables:
    """What was set on a connection."""

    given: dict[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str:
        key = name.strip('"').lower()
        return self.given.get(key, DEFAULTS.get(key, ""))

    def set(self, name: str, value: str) -> None:
        """Take a value; one of nearly's own is checked."""
        key, plain = name.strip('"').lower(), value.strip()
        if len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "'\"":
            plain = plain[1:-1]
        if plain.upper() == "DEFAULT":
            self.given.pop(key, None)
            return
        if key.startswith("nearly."):
            _check(key, plain)
        elif key in _CHECKS:
            _CHECKS[key](plain)
        self.given[key] = plain

    def knows(self, name: str) -> bool:
        """Whether there is a setting of this name, by itself or because it was given a value."""
        return name in DEFAULTS or name in self.given

    @property
    def timeout(self) -> float | None:
        """Seconds that a query may take; None for as long as the server allows."""
        return _seconds(self.get("statement_timeout")) or None

    def share(self, name: str) -> float | None:
        """A setting that is a share or a number; None where it is empty or off."""
        return _number(self.get(name))

    @property
    def bounds(self) -> bool:
        return self.get("nearly.bounds").lower() in ("on", "true", "yes", "1")


def _check(key: str, value: str) -> None:
    if key not in OWN:
        raise PgError("42704", f"unknown setting {key!r}; nearly's are {', '.join(OWN)}")
    if key == "nearly.bounds":
        if value.lower() not in ("on", "off", "true", "false", "yes", "no", "1", "0"):
            raise PgError("22023", f"{key} must be on or off, not {value!r}")
        return
    try:
        number = _number(value)
    except ValueError:
        number = -1.0
    if number is not None and (not 0 < number < math.inf or (key == "nearly.confidence" and number >= 1)):
        raise PgError("22023", f"{key} = {value!r} is not possible; write for example '1%' for an error, 2 for seconds")


def _number(text: str) -> float | None:
    """A number, a share in per cent, or None for what means none.

    >>> _number("1 %"), _number("2.5"), _number("off")
    (0.01, 2.5, None)
    """
    plain = text.strip().lower()
    if plain in ("", "off", "none", "exact", "0"):
        return None
    return float(plain[:-1]) / 100 if plain.endswith("%") else float(plain.removesuffix("s"))


def _seconds(text: str) -> float:
    """A time as Postgres reads it, in milliseconds unless it says otherwise.

    >>> _seconds("250"), _seconds("2s"), _seconds("1 min")
    (0.25, 2.0, 60.0)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d|)\s*", text)
    if found is None:
        raise PgError("22023", f"{text!r} is no time; write milliseconds, or for example '2s' or '1min'")
    return float(found.group(1)) * _UNITS[found.group(2)]


def _check_zone(text: str) -> None:
    if re.fullmatch(r"[+-]?\d+(:?\d\d)?(\.\d+)?|<[^>]*>[+-]?\d+(:\d\d)?|local|interval\b.*", text, re.IGNORECASE | re.DOTALL):
        return
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise PgError("22023", f"{text!r} is no time zone") from None


def _check_encoding(text: str) -> None:
    if re.sub(r"\W|_", "", text).upper() not in ("UTF8", "UNICODE", "SQLASCII"):
        raise PgError("0A000", f"texts are sent in UTF-8 here, not in {text!r}")


_UNITS = {"us": 1e-6, "ms": 1e-3, "": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_CHECKS: dict[str, Callable[[str], object]] = {
    "statement_timeout": _seconds,
    "timezone": _check_zone,
    "client_encoding": _check_encoding,
}
"""Settings whose value matters, and what refuses one that makes no sense."""


def setting(text: str) -> tuple[str, str] | None:
    """The name and value of a SET; empty for one that changes nothing here; None for another statement."""
    zone = _ZONE.match(text)
    if zone is not None:
        return "timezone", zone.group(1)
    if _MODE.match(text):
        return "", ""
    found = _SET.match(text)
    return None if found is None else (found.group(1), found.group(2))


def shown(text: str) -> str | None:
    """The setting that a SHOW names."""
    found = _SHOW.match(text)
    return None if found is None else found.group(1).strip().lower()


def reset(text: str) -> str | None:
    """The setting that a RESET or DISCARD takes back, `all` for all of them."""
    found = _RESET.match(text)
    return None if found is None else (found.group(1) or "all").lower()
