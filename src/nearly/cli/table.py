"""`nearly table`: the tables of a catalog, their versions and changes, from the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from nearly.answer import Answer
from nearly.cli.formats import WRITERS, write
from nearly.cli.verbs import Commands, Run, add_verb, add_verbs
from nearly.display.lines import SHOWN_ROWS, Lines
from nearly.engine.changes.given_rows import arrow_schema
from nearly.engine.storage.layouts import Table
from nearly.errors import SchemaError
from nearly.session import Session

_ENDINGS = ".parquet, .csv, .tsv, .json, .jsonl or .ndjson"


def add(commands: Commands) -> None:
    """The command and its verbs."""
    verbs = add_verbs(commands, "table", "tables that change: versions, changes, compaction")
    shown(add_verb(verbs, "list", "the tables of the catalog", run_list, None))
    _verb(verbs, "show", "columns, key, rows, version and layouts of a table", run_show)
    shown(_verb(verbs, "history", "the versions of a table that can be read, the newest first", run_history))
    changes = shown(_verb(verbs, "changes", "the rows that came and went between two versions", run_changes))
    changes.add_argument("--since", type=int, required=True, metavar="VERSION", help="changes after this version")
    changes.add_argument("--until", type=int, metavar="VERSION", help="up to this one (default: the present)")

    _add_changing(verbs)


def _add_changing(verbs: Commands) -> None:
    register = _verb(verbs, "register", "make files known as a table", run_register)
    register.add_argument("source", help="Parquet files, a Delta table or Iceberg metadata (used in place), CSV or JSON")
    register.add_argument("--version", type=int, metavar="N", help="of a Delta table, or a snapshot of an Iceberg one")
    register.add_argument("--key", nargs="+", default=[], metavar="COLUMN", help="the columns that tell rows apart")
    added = {"insert": "add the rows of a file", "merge": "replace rows by key, and add those whose key is not there"}
    for name, text in added.items():
        _batched(_verb(verbs, name, text, partial(run_rows, change=name))).add_argument(
            "rows", type=Path, metavar="FILE", help=_ENDINGS
        )
    delete = _batched(_verb(verbs, "delete", "delete rows by a condition, or those of a file", run_delete))
    chosen = delete.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--where", metavar="CONDITION", help="in SQL")
    chosen.add_argument("--rows", type=Path, metavar="FILE", help="their keys; all columns where the table has no key")
    delete.add_argument("--ignore-missing", action="store_true", help="rows that are not there are no error")
    update = _batched(_verb(verbs, "update", "set columns to expressions", run_update))
    update.add_argument("--set", nargs="+", required=True, metavar="COLUMN=EXPRESSION", help="such as 'price = price * 2'")
    update.add_argument("--where", metavar="CONDITION", help="in SQL; all rows without it")
    refresh = _verb(verbs, "refresh", "take new files, and later versions of a Delta or Iceberg table", run_refresh)
    refresh.add_argument("--source", help="the metadata file of an Iceberg table as it is now")
    export = _verb(verbs, "export", "write a version out, to a new directory", run_export)
    export.add_argument("directory", type=Path)
    export.add_argument("--format", choices=("parquet", "delta"), default="parquet")
    export.add_argument("--version", type=int, metavar="N", help="default: the present one")
    _verb(verbs, "compact", "write what was changed anew, without deleted rows and small files", run_compact)
    _verb(verbs, "drop", "forget a table; the user's own files stay", run_drop)


def _verb(verbs: Commands, name: str, text: str, run: Run) -> argparse.ArgumentParser:
    return add_verb(verbs, name, text, run, "the table")


def shown(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--format", choices=("table", *WRITERS), default="table")
    parser.add_argument("--rows", type=int, default=SHOWN_ROWS, metavar="N", help=f"rows shown of a table (default: {SHOWN_ROWS})")
    return parser


def _batched(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--batch", metavar="STREAM:NUMBER", help="taken once, also after a crash: numbers of a stream only rise")
    return parser


def run_list(db: Session, options: argparse.Namespace) -> None:
    facts = []
    for table in (db.table(name).info for name in db.tables):
        stored = len(table.base.manifest.files), table.base.gone, str(table.origin)
        facts.append((table.name, table.rows, table.version, ", ".join(table.key), *stored))
    names = ("table", "rows", "version", "key", "files", "deleted", "origin")
    types = (pa.string(), pa.int64(), pa.int64(), pa.string(), pa.int64(), pa.int64(), pa.string())
    print_table(_listed(names, types, facts), options)


def run_show(db: Session, options: argparse.Namespace) -> None:
    table = db.table(options.name).info
    key = f", key {', '.join(table.key)}" if table.key else ", no key"
    print(f"{table.name}: {table.rows:,} rows, version {table.version}{key}")
    print(f"origin: {table.origin}{', used in place' if table.origin.in_place else ', copied'}")
    if table.overlaid:
        print("changes since are kept in the catalog; the files themselves stay as they are")
    for column in table.columns:
        print(f"  {column.name} {column.type}{'' if column.nullable else ' not null'}")
    for layout in table.layouts:
        deleted = f", {layout.gone:,} rows of them deleted" if layout.gone else ""
        print(f"layout {layout.name}: {len(layout.manifest.files):,} files, {len(layout.blocks):,} blocks{deleted}")
    for layout in table.behind:
        print(f"layout {layout.name}: behind, not read until the table is compacted")


def run_history(db: Session, options: argparse.Namespace) -> None:
    names = ("version", "time", "operation", "inserted", "updated", "deleted")
    types = (pa.int64(), pa.timestamp("us", tz="UTC"), pa.string(), pa.int64(), pa.int64(), pa.int64())
    print_table(_listed(names, types, [[getattr(each, name) for name in names] for each in db.history(options.name)]), options)


def _listed(names: Sequence[str], types: Sequence[pa.DataType], rows: Sequence[Sequence[Any]]) -> pa.Table:
    columns = [pa.array([row[place] for row in rows], type_) for place, type_ in enumerate(types)]
    return pa.Table.from_arrays(columns, names=list(names))


def run_changes(db: Session, options: argparse.Namespace) -> None:
    print_table(db.changes(options.name, options.since, options.until), options)


def run_register(db: Session, options: argparse.Namespace) -> None:
    _tell_rows(db.register(options.name, options.source, key=options.key, version=options.version))


def run_refresh(db: Session, options: argparse.Namespace) -> None:
    _tell_rows(db.refresh(options.name, source=options.source))


def _tell_rows(table: Table) -> None:
    print(f"{table.name}: {table.rows:,} rows, version {table.version}")


def run_export(db: Session, options: argparse.Namespace) -> None:
    print(f"wrote {db.export(options.name, options.directory, format=options.format, version=options.version)}")


def run_rows(db: Session, options: argparse.Namespace, change: str) -> None:
    changed = db.insert if change == "insert" else db.merge
    _tell(db, options, lambda table, batch: changed(options.name, rows_of(options.rows, table), batch=batch))


def run_delete(db: Session, options: argparse.Namespace) -> None:
    missing = "ignore" if options.ignore_missing else "error"

    def change(table: Table, batch: tuple[str, int] | None) -> Table:
        rows = None if options.rows is None else rows_of(options.rows, table)
        return db.delete(options.name, rows, where=options.where, missing=missing, batch=batch)

    _tell(db, options, change)


def run_update(db: Session, options: argparse.Namespace) -> None:
    _tell(db, options, lambda _, batch: db.update(options.name, assignments(options.set), options.where, batch=batch))


def run_compact(db: Session, options: argparse.Namespace) -> None:
    table = db.compact(options.name)
    print(f"{table.name}: {table.rows:,} rows in {len(table.base.manifest.files):,} files, still version {table.version}")


def run_drop(db: Session, options: argparse.Namespace) -> None:
    db.drop(options.name)
    print(f"dropped {options.name}")


def assignments(texts: list[str]) -> Mapping[str, str]:
    """`column = expression`, each.

    >>> assignments(["price = price * 2"])
    {'price': 'price * 2'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise SchemaError(f"--set {text!r}: write COLUMN=EXPRESSION")
        if name.strip() in found:
            raise SchemaError(f"--set names column {name.strip()!r} twice")
        found[name.strip()] = value.strip()
    return found


def rows_of(path: Path, table: Table) -> pa.Table:
    """The rows of a file; text becomes values of the types that the table has."""
    schema = arrow_schema(table.columns)
    types = {field.name: field.type for field in schema}
    try:
        match path.suffix.lower():
            case ".parquet":
                return pq.read_table(path, partitioning=None)
            case ".csv" | ".tsv" as ending:
                delimiter = "\t" if ending == ".tsv" else ","
                words = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
                values = pa.csv.ConvertOptions(column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False)
                return pa.csv.read_csv(path, parse_options=words, convert_options=values)
            case ".json" | ".jsonl" | ".ndjson":
                return pa.json.read_json(path, parse_options=pa.json.ParseOptions(explicit_schema=schema))
    except (OSError, pa.ArrowException) as error:
        raise SchemaError(f"the rows of {str(path)!r} cannot be read: {str(error).splitlines()[0]}") from error
    raise SchemaError(f"{str(path)!r}: rows are read from files ending in {_ENDINGS}")


def batch_of(text: str | None) -> tuple[str, int] | None:
    """The name of a stream and a number."""
    if text is None:
        return None
    name, colon, number = text.rpartition(":")
    if not colon or not name or not number.isdecimal():
        raise SchemaError(f"--batch {text!r}: write STREAM:NUMBER")
    return name, int(number)


def _tell(db: Session, options: argparse.Namespace, change: Callable[[Table, Any], Table]) -> None:
    before = db.table(options.name).info
    after = change(before, batch_of(options.batch))
    if after.version == before.version:
        print(f"{after.name}: nothing changed, version {after.version}")
        return
    done = next(each for each in db.history(options.name) if each.version == after.version)
    counts = f"{done.inserted or 0:,} inserted, {done.updated or 0:,} updated, {done.deleted or 0:,} deleted"
    print(f"{after.name}: {counts}; version {after.version}")


def print_table(table: pa.Table, options: argparse.Namespace) -> None:
    answer = Answer.exactly(table, "catalog")
    if options.format in WRITERS:
        write(answer, options.format, options.rows)
    else:
        Lines(rows=options.rows).finish(answer)
