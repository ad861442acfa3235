"""Planning: a text is checked, bound to tables, rewritten, and given to a kernel on paper. Needs no Spark.

Names that only Spark gives to expressions are left open (`unnamed`), and asked for when the query runs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from zoneinfo import ZoneInfo

from sqlglot import exp

from nearly.engine.native.python_functions import Functions
from nearly.engine.storage.catalog import Catalog, Snapshot
from nearly.engine.storage.layouts import AT, Table
from nearly.errors import SchemaError, UnknownName, Unsupported, unknown
from nearly.plan import functions
from nearly.plan.binding.query import bind
from nearly.plan.depth import deep_recursion
from nearly.plan.nodes import BoundQuery, Plan
from nearly.plan.remembered import Remembered
from nearly.plan.schema import TableSchema
from nearly.plan.syntax.parse import Checked, check_query, to_text
from nearly.plan.user_functions import Mapped, marked
from nearly.rewrite.passes import rewrite

KERNELS = ("native", "spark")
REMEMBERED = 256
"""Plans, those that were asked for last."""

Refusal = Callable[[Snapshot, Plan], str | None]
"""Why the native kernel does not take a plan over some tables; None where it does."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query that is ready to run: `query` is None when Spark runs the text, and `reason` says why.

    `text` is the text that was checked, in the spelling of `plan.syntax.spelling`; `snapshot` are the tables as they were when it
    was planned. The Python functions it calls live as long as it does.
    """

    text: str
    snapshot: tuple[Table, ...]
    query: BoundQuery | None
    kernel: str
    reason: str
    foreign: bool = False
    """Whether its tables are those of the Spark session that was given, in which it is run."""
    functions: tuple[object, ...] = field(default=(), compare=False, repr=False)

    @property
    def tables(self) -> frozenset[str]:
        """Names of the stored tables that the query reads."""
        return frozenset(table.name for table in self.snapshot)

    def schema(self, name: str) -> TableSchema:
        """What the plan knows of one of its tables."""
        return next(table.schema for table in self.snapshot if table.name.lower() == name.lower())

    def is_outdated_by(self, other: Prepared) -> bool:
        """Whether another query was planned over another version of one of its tables."""
        now = {table.name: table for table in other.snapshot}
        return any(now.get(table.name, table) is not table for table in self.snapshot)

    @property
    def question(self) -> str:
        """The text of a query and the content of its tables: what its answer depends on."""
        return f"{self.text} {sorted(table.content for table in self.snapshot)}"


@dataclass(frozen=True, slots=True)
class KnownPlan:
    """The plan of a text that was asked before: right as long as its tables and the session's settings are what they were."""

    prepared: Prepared
    settings: Hashable


KnownPlans = partial(Remembered[Hashable, KnownPlan], REMEMBERED)


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans queries over a catalog; `spark_is_up` tells whether Spark may be asked about functions that nearly does not know."""

    catalog: Catalog
    functions: Functions
    refusal: Refusal
    spark_is_up: Callable[[], bool]
    time_zone: Callable[[], str] = lambda: "UTC"
    in_spark: Callable[[str], bool] = lambda _: False
    """Whether a table of this name is one of the Spark session that was given."""
    settings: Callable[[], Hashable] = tuple
    """What else a plan hangs on."""
    _known: Remembered[Hashable, KnownPlan] = field(default_factory=KnownPlans)

    def prepare(self, text: str, kernel: str | None = None) -> Prepared:
        """Decide how a query is run; `kernel` forces one, and then what it cannot do is an error."""
        if kernel is not None and kernel not in KERNELS:
            raise unknown("kernel", str(kernel), KERNELS)
        key = (type(text), str(text), kernel)
        known = self._known.get(key)
        if known is not None and self._is_still_right(known):
            return known.prepared
        prepared = self._prepared(text, kernel)
        hangs_on_more = prepared.functions or any(AT in table.name for table in prepared.snapshot)
        if prepared.kernel != "native" or hangs_on_more:
            return prepared
        self._known.forget_if(lambda other: other.prepared.is_outdated_by(prepared))
        return self._known.add(key, KnownPlan(prepared, self.settings())).prepared

    def _is_still_right(self, known: KnownPlan) -> bool:
        try:
            return known.settings == self.settings() and self.is_current(known.prepared)
        except UnknownName:
            return False

    @deep_recursion()
    def _prepared(self, text: str, kernel: str | None) -> Prepared:
        try:
            checked, mapped, tables = self._looked_up(text)
        except UnknownName:
            foreign = self._foreign(text, kernel)
            if foreign is None:
                raise
            return foreign
        query, chosen, reason = self._decided(checked, Snapshot(self.catalog, tables), mapped, kernel)
        return Prepared(checked.text, tables, query, chosen, reason, functions=self.functions.kept_for(checked.tree))

    def _foreign(self, text: str, kernel: str | None) -> Prepared | None:
        """A query over tables of Spark's own, none of them known here; None where it is not one."""
        checked = check_query(text)
        common = {cte.alias.lower() for cte in checked.tree.find_all(exp.CTE)}
        named = [node for node in checked.tree.find_all(exp.Table) if isinstance(node.this, exp.Identifier)]
        asked = {node.sql(dialect="spark") for node in named if node.db or node.name.lower() not in common}
        own = [name for name in asked if name.lower().strip("`") in self.catalog]
        theirs = sorted(asked - set(own))
        if kernel == "native" or "${" in text or not theirs or not all(map(self.in_spark, theirs)):
            return None
        if own:
            raise UnknownName(f"{theirs[0]} is a table of Spark's own; to use it together with {own[0]}, register it: db.register")
        return Prepared(checked.text, (), None, "spark", "its tables are Spark's own, and not registered", foreign=True)

    @deep_recursion()
    def bound(self, text: str) -> BoundQuery:
        """A query with the types of its columns, whoever could run it."""
        checked, mapped, tables = self._looked_up(text)
        return self._bound(checked, Snapshot(self.catalog, tables), mapped)

    def _looked_up(self, text: str) -> tuple[Checked, Sequence[Mapped], tuple[Table, ...]]:
        """A query that was checked, the users' functions over rows that it selects from, and the tables it reads."""
        checked = self._at_versions(check_query(text))
        mapped = self.functions.used_by(checked.tree)
        trees = [checked.tree, *(relation.query for relation in mapped)]
        for each in trees:
            self.functions.mark(each)
        return checked, mapped, self._tables(trees, {each.name for each in mapped})

    def over(self, catalog: Catalog) -> Planner:
        """The same planner over other tables."""
        return replace(self, catalog=catalog, _known=KnownPlans())

    def is_current(self, prepared: Prepared) -> bool:
        """Whether every table of a prepared query still is what it was planned for; one that was dropped is an error."""
        return all(self.catalog.table(table.name) is table for table in prepared.snapshot)

    def _decided(
        self, checked: Checked, snapshot: Snapshot, mapped: Sequence[Mapped], kernel: str | None
    ) -> tuple[BoundQuery | None, str, str]:
        """The query, who runs it, and why."""
        query, refusal = None, None
        try:
            query = self._bound(checked, snapshot, mapped)
            refusal = None if kernel == "spark" else self.refusal(snapshot, query.plan)
        except RecursionError:
            refusal = "the query is too deep for nearly's planner"
        except Unsupported as reason:
            self._refuse_unknown_functions(checked.tree)
            refusal = str(reason)
        if refusal is not None:
            if kernel == "native":
                raise Unsupported(f"the native kernel cannot run this query: {refusal}")
            return None, "spark", refusal
        if kernel == "spark":
            return None if mapped else query, "spark", "asked for"
        return query, "native", "every function and type is in the verified set"

    def _bound(self, checked: Checked, snapshot: Snapshot, mapped: Sequence[Mapped]) -> BoundQuery:
        if checked.doubt is not None:
            raise Unsupported(checked.doubt)
        query = bind(checked.tree, snapshot.schema, mapped)
        return BoundQuery(rewrite(query.plan), query.names, query.unnamed)

    def _tables(self, trees: Iterable[exp.Expr], mapped: set[str]) -> tuple[Table, ...]:
        """The stored tables that queries name, each looked up once; each must exist."""
        found: dict[str, Table] = {}
        for tree in trees:
            common = {cte.alias.lower() for cte in tree.find_all(exp.CTE)} | mapped
            for node in tree.find_all(exp.Table):
                if not isinstance(node.this, exp.Identifier):
                    continue
                if node.db:
                    raise UnknownName(f"table {node.sql(dialect='spark')} is not registered; use db.register(name, {node.sql()!r})")
                name = node.name.lower()
                if name not in found and (name not in common or name in self.catalog):
                    found[name] = self.catalog.table(node.name)
        return self.catalog.together(table.name for table in found.values())

    def _at_versions(self, checked: Checked) -> Checked:
        """The query with tables in a version that it names (`t VERSION AS OF 3`) under a name of their own (`t@3`)."""
        asked = [node for node in checked.tree.find_all(exp.Table) if node.args.get("version") is not None]
        for node in asked:
            version = node.args["version"]
            name = f"{node.name}{AT}{self._version(node.name, version)}"
            if not node.alias:
                node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
            node.set("this", exp.to_identifier(name, quoted=True))
            node.set("version", None)
        return replace(checked, text=to_text(checked.tree)) if asked else checked

    def _version(self, name: str, asked: exp.Expr) -> int:
        """The number of the version that a query asks for, by number or by time."""
        value = asked.args.get("expression")
        if asked.args.get("kind") != "AS OF" or not isinstance(value, exp.Literal):
            raise Unsupported(f"a version of table {name!r} is given as VERSION AS OF 7 or TIMESTAMP AS OF '2026-01-31 12:00:00'")
        if asked.name == "VERSION":
            if not value.name.isdigit():
                raise SchemaError(f"VERSION AS OF {value.sql()} must be a whole number")
            return self.catalog.at(name, int(value.name)).version
        return self.catalog.at_time(name, self._time(value.name)).version

    def _time(self, text: str) -> dt.datetime:
        try:
            found = dt.datetime.fromisoformat(text)
        except ValueError:
            raise SchemaError(f"TIMESTAMP AS OF {text!r} is no time; write it as '2026-01-31 12:00:00'") from None
        return found if found.tzinfo is not None else found.replace(tzinfo=ZoneInfo(self.time_zone()))

    def _refuse_unknown_functions(self, tree: exp.Expr) -> None:
        """A misspelt function is told at once where Spark, which may know more functions, would have to be started for it."""
        if self.spark_is_up():
            return
        for node in tree.find_all(exp.Anonymous):
            if marked(node) is None and not functions.is_known(node.name) and isinstance(node.this, str):
                raise unknown("function", node.name.lower(), functions.known_names())
