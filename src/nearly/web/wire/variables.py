"""The settings of one connection: those that Postgres clients expect, and nearly's own.

`nearly.error` and `nearly.seconds` are the goals of queries that have none in their text, `nearly.confidence` that of intervals,
and `nearly.bounds` adds columns with the bounds of numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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
        self.given[key] = plain

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
    if number is not None and (number <= 0 or (key == "nearly.confidence" and number >= 1)):
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
