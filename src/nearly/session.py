"""`connect()` and the facade behind it."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from nearly.answer import Answer
from nearly.engine.engine import DEFAULT_MEMORY_MB, Engine
from nearly.engine.spark.cluster import Sites, open_cluster
from nearly.engine.storage.catalog import Catalog
from nearly.engine.storage.layouts import Table
from nearly.engine.storage.listing import is_plain_file
from nearly.engine.storage.manifest import FULL, QUICK
from nearly.engine.storage.view_definition import ERROR, KEEP, REPLACE
from nearly.engine.stream.query_logs import QueryLogs
from nearly.errors import ParseError, SchemaError
from nearly.plan.syntax.goal import Goal, split_goal
from nearly.plan.syntax.parameters import Arguments, with_arguments
from nearly.plan.syntax.statements import parse_statement
from nearly.plan.syntax.view_statements import ViewStatement
from nearly.printing.html import arrow_html, card
from nearly.progress_bar import ProgressBar
from nearly.progressive.run import Request, resumed, unfinished
from nearly.query import Help, Query
from nearly.rooms import Rooms

if TYPE_CHECKING:
    from nearly.autoview.autoview import AutoView
    from nearly.engine.changes.changes import Changes
    from nearly.engine.changes.lake_tables.sources import Lakes
    from nearly.engine.changes.statements import Changed
    from nearly.engine.spark.stream_follow import Following
    from nearly.engine.storage.versions import Commit
    from nearly.missing.contingency import Contingency, MissingRows
    from nearly.progressive.frame import Frame
    from nearly.standing.catalogue import StandingQueries
    from nearly.standing.standing import Standing
    from nearly.synopsis.catalogue import Synopses
    from nearly.synopsis.synopsis import Synopsis
    from nearly.views.catalogue import Views
    from nearly.views.view import View

DEFAULT_PATH = ".nearly"
_SIZES = {"": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
_MOST_BYTES = 1 << 63
"""More than any machine has, and than engines can count."""


class _Usual(str):
    """A default that is told from the same text where someone gives it."""

    __slots__ = ()


_USUAL_MEMORY = _Usual("512MB")


def connect(
    spark: Any = None,
    *,
    path: str | Path = DEFAULT_PATH,
    executors: int | None = None,
    cores: int | None = None,
    memory: str | None = None,
    lazy: bool = False,
    log: str | Path | None = None,
    eager: bool = False,
) -> Session:
    """Open a session.

    `spark` is None for an embedded local Spark, a SparkSession (classic or Connect), a master URL (`spark://host:7077`) or a
    Connect URL (`sc://host`). `path` is the catalog's directory; executors must see it. `executors` and `cores` are counted when
    not given; `memory` bounds the native engine in each task (default 4GB), which spills to disk beyond it.

    An embedded Spark starts in the background, and queries that do not need it are answered meanwhile; with `lazy` it is started
    only when something needs it. `log` is a file for what its Java writes to standard error; in a notebook, which would show it,
    that is a temporary file where none is given.

    Early answers are given where they are expected well before the exact one; with `eager` they always are.
    """
    if (executors is None) != (cores is None):
        executors, cores = executors or 1, cores or 1
    sites = None if executors is None or cores is None else Sites(executors, cores)
    limit = DEFAULT_MEMORY_MB if memory is None else megabytes(memory)
    catalog = Catalog(path)
    QueryLogs(catalog.path).sweep()
    cluster = open_cluster(spark, sites, lazy=lazy, log=_log(log))
    engine = Engine(cluster, catalog, limit)
    engine.native.durations.eager = eager
    return Session(engine)


def _log(given: str | Path | None) -> Path | None:
    """The file for what Java says; None for the standard error of this process, where that is a terminal's."""
    if given is None and "ipykernel" in sys.modules:
        return java_log()
    return None if given is None else Path(given)


def java_log() -> Path:
    """A file for what Java says in this process, where nobody wants to see it."""
    return Path(tempfile.gettempdir()) / f"nearly-java-{os.getpid()}.log"


def given_source(source: Any) -> Any:
    """What a table is to be made of: paths and frames of Spark's as they are, rows in memory as an Arrow table."""
    from nearly.engine.changes.given_rows import as_arrow, is_frame

    several = isinstance(source, list | tuple) and all(isinstance(each, str | os.PathLike) for each in source)
    return source if several or is_frame(source) else as_arrow(source)


def megabytes(text: str) -> int:
    """A size such as `512MB` or `2GB`, in megabytes.

    >>> megabytes("2 GB")
    2048
    """
    return max(1, bytes_of(text) >> 20)


def bytes_of(text: str) -> int:
    """A size such as `512MB` or `2GB`, in bytes.

    >>> bytes_of("1.5 kb")
    1536
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(kb|mb|gb|)b?\s*", str(text).lower())
    if match is None:
        raise SchemaError(f"{text!r:.80} is no size; write for example 512MB or 2GB")
    size = float(match.group(1)) * _SIZES[match.group(2)]
    if size >= _MOST_BYTES:
        raise SchemaError(f"{text!r:.80} is more than any machine has; write for example 512MB or 2GB")
    return int(size)


def _confidence(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise SchemaError(f"confidence={value!r} must lie between 0 and 1")
    return float(value)


def _seed(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SchemaError(f"seed={value!r} must be a whole number that is not negative")
    return value


def _names(given: Sequence[str]) -> list[str]:
    """Names of tables, given as a list or as the one name there is."""
    names = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(name, str) for name in names):
        raise SchemaError(f"{given!r} must be names")
    return names


class Session:
    """A catalog of tables and the engine that answers queries over them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rooms = Rooms(engine)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release the session and end what runs in it; Spark is stopped only if it was started here. Closing twice is harmless.

        Every part is closed whatever becomes of the others; an error of one of them is raised afterwards.
        """
        life = self._engine.life
        if life.is_here and not life.is_over:  # a forked child has nothing of its own to close
            self._rooms.close(life.end)

    def __repr__(self) -> str:
        """Where its catalog is and what is in it."""
        path = self._engine.catalog.path
        if not self._engine.life.is_here or self._engine.life.is_over:
            return f"<Session {path}: closed>"
        spark = "Spark is there" if self._engine.cluster.is_up else "Spark is not started"
        return f"<Session {path}: {len(self.tables)} tables, {len(self.views)} views, {spark}>"

    def _repr_html_(self) -> str:
        if self._engine.life.is_over:
            return card(repr(self)[1:-1], {})
        infos = [self._engine.catalog.table(name) for name in (*self.tables, *self.views)]
        rows = [{"name": each.name, "rows": each.rows, "columns": len(each.columns), "from": str(each.origin)} for each in infos]
        return card(repr(self)[1:-1], {}, arrow_html(pa.Table.from_pylist(rows), len(rows)) if rows else "")

    @property
    def spark(self) -> Any:
        """The Spark session that was given, or that nearly starts for itself; whoever asks waits for it."""
        return self._open.cluster.given

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the registered tables; those of views are in `views`."""
        catalog = self._open.catalog
        views = set(catalog.views)
        return tuple(name for name in catalog.names if name not in views)

    def register(
        self,
        name: str,
        source: Any,
        *,
        key: Sequence[str] = (),
        clustered_by: Sequence[str] | None = None,
        verify: str = QUICK,
        version: int | None = None,
    ) -> Table:
        """Make a table known by name.

        The source is Parquet, CSV or JSON files (a path, directory, glob or several), a Delta table (its directory), an Iceberg
        table (`pyiceberg`'s, or its metadata file), a table of pandas, polars or Arrow, a Spark DataFrame, or the name of a table
        in Spark's catalog. Parquet on local storage is used in place, of Delta and Iceberg in the given `version` (or snapshot) or
        the present one; anything else is copied once.

        Every query checks that the files have the size and time of change that they had. `verify="full"` also keeps a hash of all
        bytes, which reads every file once; `db.verify(name, full=True)` then finds what the quick check cannot: changed bytes in a
        file of the same size and time. Files that nearly wrote have such hashes always.
        """
        from nearly.engine.writing.sources import register_source

        if verify not in (QUICK, FULL):
            raise SchemaError(f"verify={verify!r} must be {QUICK!r} or {FULL!r}")
        with ProgressBar(f"registering {name}") as bar:
            engine = self._open
            lake = None if is_plain_file(source) else self._rooms.lake_of(source)
            if lake is not None:
                if verify == FULL:
                    raise SchemaError(
                        "verify='full' is for Parquet files; the log of a Delta or Iceberg table has no hashes to keep"
                    )
                return self._lakes.register(name, lake, key, clustered_by, version)
            if version is not None:
                raise SchemaError(f"version={version!r} is for Delta and Iceberg tables, and {source!r:.100} is neither")
            hashed = verify == FULL
            given = source if isinstance(source, str | os.PathLike) else given_source(source)
            return register_source(
                engine.catalog, lambda: engine.cluster.given, name, given, key, clustered_by, bar, hashed, read=engine.read_plainly
            )

    def verify(self, name: str, *, full: bool = False) -> None:
        """Raise an `EngineError` that names the first file of a table which is not what it was when it was registered.

        Without `full` it is what every query does: size and time of change. With it all files are read and their hashes compared,
        which takes a table registered with `verify="full"`, or files that nearly wrote.
        """
        for layout in self._open.catalog.table(name).layouts:
            layout.verify(full)

    def prepare(self, name: str, by: str | Sequence[str] | None = None, *, buckets: int | None = None, seed: int = 0) -> Table:
        """Write another layout of a table with Spark: clustered by a hash of columns, or shuffled when `by` is omitted.

        The new layout appears all at once when it is complete; a killed `prepare` leaves the table as it was.
        """
        from nearly.engine.writing.preparation import prepare

        with ProgressBar(f"preparing {name}") as bar:
            engine = self._open
            return prepare(engine.catalog, engine.cluster.spark, name, by, buckets, bar, seed)

    def append(self, name: str, rows: Any) -> Table:
        """Add the rows of a Spark DataFrame to every layout of a table that nearly wrote."""
        from nearly.engine.writing.append_refresh import append

        self._changes.refuse_inside("append")
        with ProgressBar(f"appending to {name}") as bar:
            return append(self._open.catalog, self._open.cluster.given, name, rows, bar)

    def refresh(self, name: str, *, source: Any = None) -> Table:
        """Take a table's files as they are now, those that appeared since it was registered included.

        A view is brought up to date with its tables. Of a Delta or Iceberg table every later version becomes a version here, and
        its changes can be asked for. `source` says where an Iceberg table is now, when only a catalog knows.
        """
        from nearly.engine.writing.append_refresh import refresh

        self._changes.refuse_inside("refresh")
        with ProgressBar(f"refreshing {name}") as bar:
            engine = self._open
            if engine.catalog.table(name).view is not None:
                return self._views.refresh(name, bar)
            if engine.catalog.table(name).origin.is_lake:
                return self._lakes.refresh(name, source)
            if source is not None:
                raise SchemaError("source is for tables of Delta or Iceberg; register a table again to take it from elsewhere")
            return refresh(engine.catalog, lambda: engine.cluster.spark, name, bar, engine.read_plainly)

    def export(self, name: str, path: str | Path, *, format: str = "parquet", version: int | None = None) -> Path:  # noqa: A002
        """Write the rows of a table, or of one of its versions, to a new directory: as Parquet files or as a `delta` table.

        The directory appears when it is complete; one that exists is an error.
        """
        from nearly.engine.changes.export import export

        with ProgressBar(f"exporting {name}") as bar:
            engine = self._open
            table = engine.catalog.table(name) if version is None else engine.catalog.at(name, version)
            return export(engine, table, path, format, bar)

    def insert(self, name: str, rows: Any, *, batch: tuple[str, int] | None = None) -> Table:
        """Add rows: Arrow, pandas or polars tables, a Spark DataFrame, or a list of mappings, with the table's columns.

        Where the table has a key, a row whose key is there is an error. `batch=(stream, number)` is taken once: a number of that
        stream that is not higher than the last one taken changes nothing, also after a crash.
        """
        return self._changes.insert(name, rows, batch)

    def delete(
        self, name: str, rows: Any = None, *, where: str | None = None, missing: str = "error", batch: tuple[str, int] | None = None
    ) -> Table:
        """Delete rows, given by key (or, without a key, by all columns: one row for each given), or by a condition in SQL.

        Rows that are not there are an error, unless `missing="ignore"`.
        """
        return self._changes.delete(name, rows, where, missing, batch)

    def update(
        self,
        name: str,
        set: Mapping[str, str],  # noqa: A002  SQL's own word
        where: str | None = None,
        *,
        batch: tuple[str, int] | None = None,
    ) -> Table:
        """Set columns to expressions in SQL, in the rows for which a condition is true, or in all."""
        return self._changes.update(name, set, where, batch)

    def merge(self, name: str, rows: Any, *, batch: tuple[str, int] | None = None) -> Table:
        """Replace rows by key, and add those whose key is not there."""
        return self._changes.merge(name, rows, batch)

    def execute(self, text: str, *, batch: tuple[str, int] | None = None, args: Arguments | None = None) -> Changed | Answer:
        """Run a statement as a Spark user writes it: INSERT INTO, DELETE FROM, UPDATE or MERGE INTO; a query is answered.

        CREATE, REFRESH and DROP MATERIALIZED VIEW are about views. What a statement did is told: how many rows were inserted,
        updated and deleted, and the version that this made.
        """
        from nearly.views.statements import execute_view

        plain, goal = split_goal(text if args is None else with_arguments(text, args))
        statement = parse_statement(plain)
        if statement is None:
            query = self.sql(text, args=args)
            return query.exact() if goal == Goal() else query.run()
        if goal != Goal():
            raise ParseError("WITHIN says how good an answer may be; a statement that changes a table gives none")
        if isinstance(statement, ViewStatement):
            if batch is not None:
                raise SchemaError("batch=... is for statements that change a table, not for views")
            return execute_view(self._open_views, statement)
        return self._changes.execute(statement, batch)

    def compact(self, name: str) -> Table:
        """Write a changed table anew, without deleted rows and small files, and its other layouts; its version stays what it is.

        It happens in the background, too, when much was changed. The user's own files are neither touched nor copied.
        """
        with ProgressBar(f"compacting {name}") as bar:
            return self._changes.compact(name, bar)

    def follow(
        self, name: str, stream: Any, *, source: str = "stream", op: str | None = None, checkpoint: str | Path | None = None,
        every: str = "0 seconds",
    ) -> Following:  # fmt: skip
        """Take the rows of a streaming DataFrame into a table as they come, every batch once, also after a crash.

        The column `op` says whether a row is an `insert`, an `upsert`, a `delete`, or an `update` that may bring the former values
        in columns `old_<name>`; without it all are inserts. What cannot be used is put aside (`quarantine`). `source` names the
        stream: one that goes on under the same name goes on where it was.
        """
        return self._changes.follow(name, stream, source, op, None if checkpoint is None else Path(checkpoint), every)

    def follow_kafka(
        self, name: str, servers: str, topics: Sequence[str], *, source: str = "kafka", op: str | None = None,
        checkpoint: str | Path | None = None, every: str = "0 seconds", settings: Mapping[str, str] | None = None,
    ) -> Following:  # fmt: skip
        """Take the records of Kafka topics into a table: JSON objects with its columns, inserted, or by key replaced.

        A record without a value deletes the row whose key the record's key is. `settings` are the Kafka client's own.
        """
        place = None if checkpoint is None else Path(checkpoint)
        return self._changes.follow_kafka(name, servers, _names(topics), source, op, place, every, settings or {})

    def quarantine(self, name: str) -> pa.Table:
        """Records of streams that could not be taken into a table, with the reason."""
        return self._changes.quarantine(name)

    def transaction(self) -> AbstractContextManager[None]:
        """A block in which changes of several tables become visible together, or not at all when it ends by an error.

        Queries inside it see the tables as they were before.
        """
        return self._changes.transaction()

    def changes(self, name: str, since: int, until: int | None = None) -> pa.Table:
        """The rows that came and went after version `since`, up to `until` or the present version.

        `_change_type` is insert, delete, update_preimage or update_postimage; `_commit_version` and `_commit_timestamp` tell when.
        """
        return self._changes.between(name, since, until)

    def history(self, name: str) -> list[Commit]:
        """The versions of a table that can be read, the newest first: `select ... from t version as of 7` reads one."""
        return self._changes.history(name)

    def table(self, name: str, *, confidence: float = 0.95, seed: int = 0) -> Frame:
        """A table as an evolving data frame; its `info` is what is known of the table: layouts, rows, version."""
        from nearly.progressive.frame import FrameWorkspace

        return FrameWorkspace(self._open, Request(_confidence(confidence), _seed(seed))).frame(name)

    def drop(self, name: str) -> None:
        """Forget a table and remove what nearly wrote for it; the user's own files stay. One that views need is an error."""
        catalog = self._open.catalog
        if catalog.changeable(name).view is not None:
            raise SchemaError(f"{name!r} is a view; use db.drop_view({name!r})")
        self._views.refuse_needed(name)
        catalog.drop(name)

    def create_view(
        self, name: str, text: str, *, sample: float | None = None, policy: str = "auto", key: str | Sequence[str] = (),
        every: str | float | None = None, there: str = ERROR,
    ) -> View:  # fmt: skip
        """Keep the rows of a query under a name: a materialised view, which is queried like a table and refreshed when asked.

        `policy` is `incremental` where a refresh must not compute everything anew, and `full` where it always shall. `key` names
        columns that identify a row, where the query itself does not tell. `every` refreshes the view in the background of open
        sessions, `sample` is the share of a stale view that is cleaned for quick answers. `there` tells what to do where a view of
        the name exists: `error`, `keep` it, or `replace` it.
        """
        from nearly.views.catalogue import ViewOptions

        if there not in (ERROR, KEEP, REPLACE):
            raise SchemaError(f"there={there!r} must be {ERROR!r}, {KEEP!r} or {REPLACE!r}")
        with ProgressBar(f"making {name}") as bar:
            return self._open_views.create(name, text, ViewOptions(sample, policy, key, every), there, bar)

    def view(self, name: str) -> View:
        """A view of the catalog."""
        return self._open_views.get(name)

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the views."""
        return self._open.catalog.views

    def drop_view(self, name: str) -> None:
        """Forget a view and remove its rows; one that other views are made of is an error."""
        self._open_views.drop(name)

    def explain_view(self, text: str) -> str:
        """How a view of this query would be maintained, operator by operator, and where not incrementally, why."""
        return self._open_views.explain(text)

    def create_synopsis(
        self, name: str, table: str, measure: str | Sequence[str], on: Any, *, key: Sequence[str] | None = None, **options: Any
    ) -> Synopsis:
        """Build a synopsis of a table: instant answers about a measure, or about several, filtered by the columns `on` (a list of
        lists makes several trees). The options are those of `nearly.synopsis.build.definition.Options`; `key` tells rows
        apart where the table has none. It follows the table from then on.
        """
        from nearly.synopsis.build.definition import options_from

        with ProgressBar(f"building {name}") as bar:
            return self._open_synopses.create(name, table, measure, on, key, options_from(options), bar)

    def synopsis(self, name: str) -> Synopsis:
        """A synopsis of the catalog, opened if need be."""
        return self._open_synopses.get(name)

    @property
    def synopses(self) -> tuple[str, ...]:
        """Names of the synopses."""
        return self._open_synopses.names

    def drop_synopsis(self, name: str) -> None:
        """Forget a synopsis and remove its files; the table stays."""
        self._open_synopses.drop(name)

    def standing(
        self, text: str | None = None, *, name: str | None = None, every: str | float | None = None, rows: int | None = None,
        memory: str = _USUAL_MEMORY, disk: str | None = None, arrivals: Any = None, on_change: Any = None,
    ) -> Standing:  # fmt: skip
        """A query whose answer is kept current while its tables change: iterate over it for answers, each exact when it is given.

        It is refreshed `every` so often, or once so many `rows` came or went, whichever is first; with neither, by its `refresh`.
        Between refreshes it keeps what makes the next one quickest, within `memory` and, where given, `disk`. `arrivals` tells what
        will come: rows a second by table, a predictor of `nearly.standing.arrivals`, or a function; else what came before goes on.
        `on_change` is a function of the answer and of what changed, or an address to send that to.

        It ends with the session, and when all its tables are `complete`; until then its definition stays in the catalog, and
        `standing(name=...)` goes on with it, also after a crash. `stop` ends it for good.
        """
        from nearly.standing.catalogue import Wishes
        from nearly.standing.planner import StateBudget
        from nearly.standing.policy import policy_of

        queries = self._open_standing
        budget = StateBudget(float(bytes_of(memory)), 0.0 if disk is None else float(bytes_of(disk)))
        policy = policy_of(every, rows)
        if text is None:
            if name is None:
                raise SchemaError("a standing query needs a text, or the name= of one to go on with")
            told = {
                "every": policy.every, "rows": rows, "memory": None if isinstance(memory, _Usual) else budget.memory,
                "disk": None if disk is None else budget.disk,
            }  # fmt: skip
            return queries.resume(name, on_change, arrivals, told)
        return queries.start(text, name, Wishes(policy, budget, arrivals, on_change))

    @property
    def standings(self) -> tuple[str, ...]:
        """Names of the standing queries: those that run, and those that `standing(name=...)` goes on with."""
        return self._open_standing.names

    def drop_standing(self, name: str) -> None:
        """End a standing query for good, whether it runs or not."""
        self._open_standing.forget(name)

    def autoview(
        self, storage: str | None = None, *, policy: str | None = None, slowdown: float | None = None, seed: int | None = None
    ) -> AutoView:
        """Views that choose themselves: what queries compute is kept where it pays, within `storage`, and used by later queries.

        No answer is changed by it. `policy` says who decides: `learned`, or one of the simpler `lru`, `lfu`, `fifo`, `hawc`,
        `recycler`, or `off`, which makes nothing new. `slowdown` is the share by which making a view may slow the query that makes
        it. Without arguments it is what is on; what was kept and learned stays in the catalog for the next session.
        """
        self._open  # noqa: B018  refuses where the session is closed
        return self._rooms.autoview(None if storage is None else bytes_of(storage), policy, slowdown, seed)

    def sql(
        self,
        text: str,
        *,
        confidence: float = 0.95,
        seed: int = 0,
        kernel: str | None = None,
        stream: Sequence[str] | None = None,
        using: str | None = None,
        args: Arguments | None = None,
    ) -> Query:
        """A lazy query; nothing runs before it is asked for an answer.

        `kernel` forces `native` or `spark`. `stream` names the tables that are read piece by piece, instead of the largest ones.
        `using` names the synopsis or the view that must answer; without it one answers first when it covers the query.
        `args` are values for its parameters: a mapping for `:name`, a list for `?`. With `connect(spark)` a query may be over
        temporary views and tables of that session. The text may end in `WITHIN 1% [CONFIDENCE 95%]` or `WITHIN 2 SECONDS`.
        """
        plain, goal = split_goal(text if args is None else with_arguments(text, args))
        asked = confidence if goal.confidence is None else goal.confidence
        request = Request(_confidence(asked), _seed(seed), None if stream is None else frozenset(_names(stream)))
        return Query(self._help, plain, request, kernel, goal, using)

    def function(self, name: str, function: Callable[..., Any], returns: str = "double") -> None:
        """Make a Python function usable in SQL and in frames: it gets an Arrow array per argument and gives one of the same length.

        `returns` is Spark's name of the type it gives. Nulls are passed to it as they are.
        """
        self._open.add_function(name, function, returns)

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Ids of progressive queries whose process was killed; `resume` goes on with one, `forget` removes what it left.

        After a week they are removed when a session is opened. Queries that run, in whichever process, are not among them.
        """
        return unfinished(self._open)

    def forget(self, id_: str) -> None:
        """Remove what an unfinished query left; one that runs, in whichever process, is an error."""
        QueryLogs(self._open.catalog.path).forget(id_)

    def resume(self, id_: str) -> Query:
        """The query of this id, going on from the last batch that was read before its process was killed."""
        run = resumed(self._open, id_)
        return Query(self._help, run.prepared.text, run.request, None, Goal(), run=run)

    def missing(self, table: str, constraints: Any = None) -> MissingRows | None:
        """State what is known about rows that are missing from a table: `Constraint`s, or a YAML or JSON file of them.

        It holds as long as the session; `query.range()` uses it, other answers stay answers over the rows that are there. None or
        an empty list forgets it.
        """
        return self._contingency.state(self._open.catalog.table(table).name, constraints)

    @property
    def _help(self) -> Help:
        return Help(self._open, self._rooms.answerers, lambda: self._contingency)

    @property
    def _changes(self) -> Changes:
        return self._rooms.changes

    @property
    def _lakes(self) -> Lakes:
        return self._rooms.lakes

    @property
    def _contingency(self) -> Contingency:
        return self._rooms.contingency

    @property
    def _synopses(self) -> Synopses:
        return self._rooms.synopses

    @property
    def _views(self) -> Views:
        return self._rooms.views

    @property
    def _open_views(self) -> Views:
        self._engine.life.refuse_over()
        return self._rooms.views

    @property
    def _open_synopses(self) -> Synopses:
        self._engine.life.refuse_over()
        return self._rooms.synopses

    @property
    def _open_standing(self) -> StandingQueries:
        self._engine.life.refuse_over()
        return self._rooms.standing

    @property
    def _open(self) -> Engine:
        self._engine.life.refuse_over()
        return self._engine
