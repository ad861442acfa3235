"""What `--data` names as a set of tables: each sub-directory of a directory and each data file is a table of its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from nearly.engine.storage.listing import glob, local_path, natural_order
from nearly.engine.text.heads import columns_of
from nearly.errors import EngineError, NearlyError, SchemaError, UnknownName, unknown
from nearly.plan.binding.query import bind
from nearly.plan.depth import deep_recursion
from nearly.plan.schema import TableSchema
from nearly.plan.syntax.goal import split_goal
from nearly.plan.syntax.parse import check_query
from nearly.plan.syntax.statements import parse_statement, tables_named

ENDINGS = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson")
_COMPRESSIONS = (".gz", ".bz2")

Sources: TypeAlias = dict[str, Path | list[Path]]
"""Tables by name: the file or directory of each, or its files."""


def sources_of(items: Iterable[str]) -> Sources:
    """The tables of directories, files and globs; `NAME=PATTERN` is one table of all that matches."""
    found: Sources = {}
    for item in items:
        for name, source in _sources_of(item).items():
            if name in found:
                raise SchemaError(f"{_told(found[name])} and {_told(source)} would both be table {name!r}; write NAME=PATH for one")
            found[name] = source
    return found


def _sources_of(item: str) -> Sources:
    name, given, pattern = item.partition("=")
    if given and re.fullmatch(r"\w+", name) and not Path(item).exists():
        return {name: _matches(pattern)}
    path = Path(item)
    if path.is_dir():
        return dict(tables_in(path))
    found: Sources = {}
    for match in _matches(item):
        table = table_name(match)
        if table is None:
            raise EngineError(f"{str(match)!r} is no data file: its name ends in none of {', '.join(ENDINGS)}")
        if table in found:
            raise SchemaError(f"{_told(found[table])} and {match.name!r} would both be table {table!r}; write NAME=PATH for one")
        found[table] = match
    return found


def _matches(pattern: str) -> list[Path]:
    path = local_path(pattern)
    if path is None:
        raise EngineError(f"{pattern!r} is not on this machine; --data takes local files and directories")
    matches = [Path(path)] if Path(path).exists() else sorted(glob(path), key=lambda each: natural_order(str(each)))
    if not matches:
        raise EngineError(f"{pattern!r} does not exist, and as a glob it matches nothing; --data takes a directory, files or globs")
    return matches


def _told(source: Path | list[Path]) -> str:
    return repr(source.name if isinstance(source, Path) else source[0].name)


def tables_in(directory: Path) -> dict[str, Path]:
    """The tables of a directory by name. What begins with a dot or an underscore is not data, as in Spark."""
    found: dict[str, Path] = {}
    for path in sorted(directory.iterdir()):
        name = table_name(path)
        if name is None:
            continue
        if name in found:
            raise SchemaError(f"{found[name].name!r} and {path.name!r} would both be table {name!r}; rename or move one")
        found[name] = path
    if not found:
        raise EngineError(f"{str(directory)!r} has no tables: no sub-directory and no file ending in {', '.join(ENDINGS)}")
    return found


def table_name(path: Path) -> str | None:
    """The name of a table, None for what is none; what a name cannot hold becomes an underscore.

    >>> table_name(Path("taxi-rides.csv.gz")), table_name(Path("notes.txt"))
    ('taxi_rides', None)
    """
    if path.name.startswith((".", "_")):
        return None
    stem = path.name
    if not path.is_dir():
        stem = stem.removesuffix(next((each for each in _COMPRESSIONS if stem.lower().endswith(each)), ""))
        ending = next((each for each in ENDINGS if stem.lower().endswith(each)), None)
        if ending is None:
            return None
        stem = stem[: -len(ending)]
    return re.sub(r"\W", "_", stem) or None


def tables_asked_for(text: str, found: Mapping[str, Path | list[Path]], stored: frozenset[str] = frozenset()) -> Sources:
    """Those of the tables found that a query or a statement names; a name that is neither found nor stored is an error.

    It needs no Spark, so a mistake in the text shows before Spark is started.
    """
    asked, common = tables_named(split_goal(text)[0])
    by_name = {name.lower(): name for name in found}
    known = {name.lower() for name in stored} | by_name.keys() | common
    for name in sorted(asked):
        if name.lower() not in known:
            raise unknown("table", name, {*found, *stored})
    return {by_name[name.lower()]: found[by_name[name.lower()]] for name in sorted(asked) if name.lower() in by_name}


@deep_recursion()
def refuse_unknown_columns(text: str, sources: Sources, known: Mapping[str, TableSchema] = MappingProxyType({})) -> None:
    """A column that is in none of the files that a query reads is an error, told from the heads of the files alone.

    All else that may be wrong is left to the planner, and so are files whose heads do not tell what they hold. `known` are tables
    that were read before, by name in small letters.
    """
    by_name = {name.lower(): source for name, source in sources.items()}

    def find(name: str) -> TableSchema:
        if name.lower() in known:
            return known[name.lower()]
        source = by_name[name.lower()]
        columns = columns_of([source] if isinstance(source, Path) else source)
        if columns is None:
            raise KeyError(name)
        return TableSchema(name, columns)

    try:
        asked = split_goal(text)[0]
        checked = None if parse_statement(asked) is not None else check_query(asked)
        if checked is not None and checked.doubt is None:
            bind(checked.tree, find)
    except UnknownName:
        raise
    except (NearlyError, KeyError, RecursionError):
        return
