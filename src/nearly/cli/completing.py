"""What a word that is being typed may become: a keyword, a table, a column of one, a function, a command or a file."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nearly.cli.dot_commands import COMMANDS
from nearly.cli.formats import MODES
from nearly.cli.lake import table_name
from nearly.cli.workplace import Workplace
from nearly.errors import NearlyError

KEYWORDS = tuple(
    """
    ALL AND AS ASC BETWEEN BY CASE CAST CONFIDENCE CROSS DATE DELETE DESC DESCRIBE DISTINCT ELSE END EXCEPT EXISTS EXPLAIN FROM FULL
    GROUP HAVING IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LEFT LIKE LIMIT MERGE NOT NULL OFFSET ON OR ORDER OUTER OVER
    PARTITION RIGHT SECONDS SELECT SET SHOW TABLES THEN TIMESTAMP UNION UPDATE USING VALUES WHEN WHERE WITH WITHIN
    """.split()  # noqa: SIM905  a long list
)
_AFTER_TABLE_WORDS = re.compile(r"\b(from|join|into|update|describe|desc|table)\s+[\w`.]*$", re.IGNORECASE)


MOST_TABLES = 20
"""Tables whose columns are offered before a text has named one."""


@dataclass(frozen=True, slots=True)
class Word:
    """A completion: the whole word, what it is, and how many characters before the cursor it replaces."""

    text: str
    kind: str
    replaces: int


@dataclass
class Completing:
    """Completes words in a text over the tables of a workplace. It runs no query, and starts nothing."""

    place: Workplace

    def words(self, text: str, cursor: int) -> list[Word]:
        """What the word before the cursor may become, best first."""
        before = text[:cursor]
        if before.lstrip().startswith("."):
            return self._command(before)
        quoted = re.search(r"\b(?:from|join)\s+'([^']*)$", before, re.IGNORECASE)
        if quoted is not None:
            return [Word(each, "file", len(quoted[1])) for each in _files(quoted[1])]
        word = re.search(r"[\w.]*$", before)
        typed = word[0] if word is not None else ""
        qualifier, dot, stem = typed.rpartition(".")
        if dot:
            return _matching(stem, [(each, "column") for each in self._columns_of(self._table_of(qualifier, text))])
        if _AFTER_TABLE_WORDS.search(before):
            return _matching(stem, [(each, "table") for each in self.place.names])
        return _matching(stem, self._anything(text)) if stem else _matching("", self._columns_in(text))

    def _command(self, before: str) -> list[Word]:
        name, *arguments = before.split(" ")
        if not arguments:
            return _matching(name, [(each, command.text) for each, command in COMMANDS.items()])
        match name.strip():
            case ".mode":
                return _matching(arguments[-1], [(each, "mode") for each in MODES])
            case ".schema":
                return _matching(arguments[-1], [(each, "table") for each in self.place.names])
            case ".timer":
                return _matching(arguments[-1], [("on", ""), ("off", "")])
            case ".read" | ".register":
                return [Word(each, "file", len(arguments[-1])) for each in _files(arguments[-1])]
        return []

    def _anything(self, text: str) -> Iterator[tuple[str, str]]:
        yield from self._columns_in(text)
        yield from ((name, "table") for name in self.place.names)
        yield from ((name, "keyword") for name in KEYWORDS)
        yield from ((name, "function") for name in self._functions)

    def _columns_in(self, text: str) -> list[tuple[str, str]]:
        """The columns of the tables that the text names so far."""
        said = {each.lower() for each in re.findall(r"\w+", text)}
        named = [name for name in self.place.names if name.lower() in said] or self.place.names[:MOST_TABLES]
        return list(dict.fromkeys((column, "column") for name in named for column in self._columns_of(name)))

    def _table_of(self, qualifier: str, text: str) -> str:
        """The table that a qualifier means: its own name, or that before it as an alias."""
        known = {name.lower(): name for name in self.place.names}
        before = re.findall(rf"\b(\w+)\s+(?:as\s+)?{re.escape(qualifier)}\b", text, re.IGNORECASE)
        return next((known[name.lower()] for name in (qualifier, *before) if name.lower() in known), "")

    def _columns_of(self, name: str) -> list[str]:
        """The columns of a table; one that was found but not yet read is looked at only where that is cheap."""
        source = self.place.found.get(name)
        if name not in self.place.db.tables and isinstance(source, Path):
            if source.suffix in (".csv", ".tsv"):
                return _header(source)
            try:
                _ = self.place.db.register(name, source) if source.suffix == ".parquet" else None
            except NearlyError:
                return []
        if name not in (*self.place.db.tables, *self.place.db.views):
            return []
        return [column.name for column in self.place.db.table(name).info.columns]

    @cached_property
    def _functions(self) -> list[str]:
        from nearly.plan import functions

        return sorted(functions.known_names())


def _header(path: Path) -> list[str]:
    """The names in the first line of a file."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return next(csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ","), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


def _matching(stem: str, words: Iterable[tuple[str, str]]) -> list[Word]:
    """Those that begin as was typed, each once; keywords in the case that was typed."""
    found: dict[str, Word] = {}
    for text, kind in words:
        if text.lower().startswith(stem.lower()) and text.lower() != stem.lower():
            shown = text.lower() if kind == "keyword" and stem[:1].islower() else text
            found.setdefault(shown.lower(), Word(shown, kind, len(stem)))
    return list(found.values())


def _files(typed: str) -> list[str]:
    """Data files and directories whose path begins as was typed."""
    directory, _, stem = typed.rpartition("/")
    place = Path(directory or ("/" if typed.startswith("/") else ".")).expanduser()
    try:
        entries = sorted(place.iterdir())
    except OSError:
        return []
    head = f"{directory}/" if "/" in typed else ""
    fitting = [
        each for each in entries if each.name.startswith(stem) and (each.is_dir() or table_name(each) or each.suffix == ".sql")
    ]
    return [f"{head}{each.name}{'/' if each.is_dir() else ''}" for each in fitting if not each.name.startswith(".")]
