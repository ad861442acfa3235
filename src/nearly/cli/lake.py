"""A directory as a set of tables: each sub-directory and each data file is a table of its name."""

from __future__ import annotations

import re
from pathlib import Path

from nearly.errors import EngineError, SchemaError, unknown
from nearly.plan.goal import split_goal
from nearly.plan.statements import tables_named

ENDINGS = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson")
_COMPRESSIONS = (".gz", ".bz2")


def tables_in(directory: Path) -> dict[str, Path]:
    """The tables of a directory by name. What begins with a dot or an underscore is not data, as in Spark."""
    if not directory.is_dir():
        what = "is a file, not a directory" if directory.exists() else "does not exist"
        raise EngineError(f"{str(directory)!r} {what}; --data takes a directory with one sub-directory or file for each table")
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


def tables_asked_for(text: str, found: dict[str, Path], stored: frozenset[str] = frozenset()) -> dict[str, Path]:
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
