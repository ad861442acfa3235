"""The files of the definitions of standing queries.

Law: a definition has an identity: whoever runs a query that was stopped in another session neither writes over nor removes the one
that follows it there. Whether a file is a query's own is asked under a lock of all sessions, as long as it is written or removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nearly.engine.storage.durable import write_durably, writing_in
from nearly.engine.storage.locks import exclusive
from nearly.engine.storage.serialise import opened, sealed
from nearly.errors import EngineError, SchemaError
from nearly.standing.definitions import StandingDefinition
from nearly.standing.standing import Standing

_IDENTITY = "identity"
"""What a definition is told from others of its name by; those of before have none."""


class DefinitionFiles:
    """Those in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._seen: dict[str, tuple[tuple[int, int, int], str]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(path.stem for path in self.directory.glob("*.json"))) if self.directory.is_dir() else ()

    def read(self, name: str) -> tuple[StandingDefinition, str]:
        """A definition and its identity."""
        try:
            return opened(self._path(name).read_text(encoding="utf-8"), _definition)
        except (OSError, UnicodeDecodeError, EngineError) as error:
            cause = error.__cause__  # where there is one, the error itself tells of tables, which are read the same way
            why = error if cause is None else f"it is damaged ({type(cause).__name__}: {cause})"
            advice = f"end it with db.drop_standing({name!r}), and start it again with its text"
            raise EngineError(f"the definition of standing query {name!r} cannot be read: {why}; {advice}") from error

    def begin(self, one: Standing) -> None:
        """Write the definition of a query that begins."""
        with self._alone():
            if self._path(one.name).exists() and not self.has(one):
                raise SchemaError(f"standing query {one.name!r} was just begun in another session; give another name=")
            self._write(one)

    def renew(self, one: Standing) -> None:
        """Write the definition of a query that was not forgotten in another session."""
        with self._alone():
            if self.has(one):
                self._write(one)

    def drop(self, one: Standing) -> None:
        """Remove the definition of a query, as far as it is there."""
        if self.has(one):
            with self._alone():
                if self.has(one):
                    self.remove(one.name)

    def remove(self, name: str) -> None:
        """Remove a definition, whosever it is."""
        path = self._path(name)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            advice = f"remove {path} yourself"
            raise EngineError(f"the definition of standing query {name!r} cannot be removed: {error.strerror}; {advice}") from error

    def has(self, one: Standing) -> bool:
        """Whether a query's own definition is there; one that cannot be read was not replaced by another."""
        try:
            return self._identity(one.name) == one.identity
        except (OSError, EngineError):
            return True

    def _identity(self, name: str) -> str | None:
        """The identity of the definition that is there; it is read again only when another was put in its place."""
        try:
            found = self._path(name).stat()
        except FileNotFoundError:
            return None
        mark = (found.st_ino, found.st_mtime_ns, found.st_size)
        seen = self._seen.get(name)
        if seen is None or seen[0] != mark:
            seen = self._seen[name] = mark, self.read(name)[1]
        return seen[1]

    def _path(self, name: str) -> Path:
        return self.directory / f"{name}.json"

    def _write(self, one: Standing) -> None:
        write_durably(self._path(one.name), sealed(_content(one)).encode())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with writing_in(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
        with exclusive(self.directory / ".lock"):
            yield


def _content(one: Standing) -> Mapping[str, Any]:
    return {**StandingDefinition.from_standing(one).content, _IDENTITY: one.identity}


def _definition(content: Mapping[str, Any]) -> tuple[StandingDefinition, str]:
    rest = {name: each for name, each in content.items() if name != _IDENTITY}
    return StandingDefinition.of(rest), content.get(_IDENTITY, "")
