"""The files behind a path, a glob or a directory, found as Spark finds them, but never silently fewer."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from nearly.errors import EngineError, Unsupported


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A data file and the path below which its directories name Hive partitions."""

    path: str
    root: str

    @property
    def partition_directories(self) -> tuple[str, ...]:
        """The directories between root and file."""
        return Path(self.path).parent.relative_to(self.root).parts


def local_path(source: str) -> str | None:
    """The absolute local path or glob that the text means; None when it names another file system.

    >>> local_path("file:///data/a.parquet")
    '/data/a.parquet'
    >>> local_path("s3://bucket/a.parquet") is None
    True
    """
    parts = urlsplit(source)
    if parts.scheme == "file":
        return os.path.normpath(unquote(parts.path))
    if len(parts.scheme) > 1 and source[len(parts.scheme) :].startswith((":/", "://")):
        return None
    return os.path.normpath(Path(source).expanduser().absolute())


def is_plain_file(source: object) -> bool:
    """Whether this names a local file of rows, which is no table with a log of its own."""
    if not isinstance(source, str | os.PathLike):
        return False
    path = local_path(os.fspath(source))
    return path is not None and not path.endswith(".json") and Path(path).is_file()


def find_files(sources: Sequence[str]) -> list[FoundFile]:
    """All data files of local paths, globs and directories, in natural order (part 2 before part 10), each once."""
    found: dict[str, FoundFile] = {}
    for source in sources:
        for root in _roots(source):
            for file in _files_below(root):
                found.setdefault(file.path, file)
    if not found:
        raise EngineError(f"no data files in {', '.join(sources)}: the directory or the matches of the glob are empty")
    return sorted(found.values(), key=lambda file: natural_order(file.path))


def natural_order(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key that reads runs of digits as numbers."""
    pieces = re.split(r"([0-9]+)", text)
    return tuple((1, int(piece), piece) if piece.isdigit() else (0, 0, piece) for piece in pieces if piece)


def is_hidden(name: str) -> bool:
    """Whether Spark skips a file or directory of this name."""
    return (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")


def _roots(source: str) -> list[str]:
    """The files and directories that a path or glob stands for; hidden ones only when named outright."""
    path = local_path(source)
    if path is None:
        raise Unsupported(f"{source} is not a local path; register it through Spark, which copies it into the catalog")
    if Path(path).exists():
        return [path]
    matches = [str(match) for match in glob(path)]
    if not matches:
        raise EngineError(f"{source} does not exist, and as a glob it matches nothing")
    return matches


def glob(pattern: str) -> Iterator[Path]:
    """The paths that match an absolute pattern; names that a wildcard stands for are not hidden ones."""
    anchor, *given = Path(pattern).parts
    for match in Path(anchor).glob("/".join(given)) if given else ():
        if not any(is_hidden(name) for name in match.parts if name not in given):
            yield match


def _files_below(root: str) -> Iterator[FoundFile]:
    if Path(root).is_file():
        yield FoundFile(root, str(Path(root).parent))
        return
    for directory, inner, names in os.walk(root, followlinks=True, onerror=_refuse_unreadable):
        _refuse_foreign(directory, inner)
        inner[:] = [name for name in inner if not is_hidden(name)]
        shown = [name for name in names if not is_hidden(name)]
        if shown:
            _refuse_plain_directories(root, directory)
        yield from (FoundFile(str(Path(directory, name)), root) for name in shown)


def _refuse_unreadable(error: OSError) -> None:
    raise EngineError(f"cannot list {error.filename}: {error.strerror}") from error


def _refuse_foreign(directory: str, inner: Sequence[str]) -> None:
    if "_delta_log" in inner:
        raise Unsupported(f"{directory} is a Delta table; its files are not its rows. Register that directory alone")
    if ".hoodie" in inner:
        raise Unsupported(
            f"{directory} is a Hudi table; its files are not its rows. Register the DataFrame that Spark reads from it, such as "
            f"spark.read.format('hudi').load({directory!r})"
        )


def _refuse_plain_directories(root: str, directory: str) -> None:
    """Spark leaves out files in subdirectories that are not `name=value`; that loses rows without a word."""
    plain = [name for name in Path(directory).relative_to(root).parts if "=" not in name]
    if plain:
        raise Unsupported(
            f"{directory} holds data files, but {plain[0]!r} is no partition directory (name=value), so Spark would "
            f"not read them; register a glob such as {root}/*/*.parquet"
        )
