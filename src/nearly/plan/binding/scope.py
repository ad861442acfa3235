"""Which names are visible where: the columns of a FROM clause, and those of the queries around it."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from nearly.errors import SchemaError, UnknownName, Unsupported, unknown
from nearly.plan.expressions import Column, Expression
from nearly.plan.types import is_simple

_SPARK_NAMES = frozenset({
    "_metadata", "current_catalog", "current_database", "current_date", "current_schema", "current_time", "current_timestamp",
    "current_timezone", "current_user", "grouping__id", "localtimestamp", "session_user", "user",
})  # fmt: skip


class FreshNames:
    """Gives every column of a plan a name that no other has; a pass that makes columns has a mark of its own.

    One that may be done twice to a plan is told the names that are `taken`.
    """

    def __init__(self, mark: str = "", taken: Container[str] = ()) -> None:
        self._mark = mark
        self._taken = taken
        self._count = 0

    def __call__(self, hint: str) -> str:
        while True:
            self._count += 1
            name = f"{hint[:40]}_{self._mark}{self._count}"
            if name not in self._taken:
                return name


@dataclass(frozen=True, slots=True)
class Visible:
    """A column that a query can name: `expression` is a Column, or a coalesce for the key of a full join with USING.

    `name` is None for an expression without alias: its name is Spark's to give. `qualified_only` are the sides' own keys of
    a join with USING, which a star does not show.
    """

    qualifier: str | None
    name: str | None
    expression: Expression
    qualified_only: bool = False


@dataclass(slots=True)
class Scope:
    """The names of one FROM clause; `outer` is the scope of the query around it."""

    visible: list[Visible] = field(default_factory=list)
    outer: Scope | None = None

    def star(self, qualifier: str | None = None) -> Iterator[Visible]:
        """What `*` or `qualifier.*` stands for."""
        found = False
        for each in self.visible:
            if qualifier is None and not each.qualified_only:
                yield each
            elif qualifier is not None and _same(each.qualifier, qualifier):
                if each.qualified_only:
                    raise Unsupported(
                        f"{qualifier}.* beside a join with USING or NATURAL, whose columns Spark orders in its own way"
                    )
                found = True
                yield each
        if qualifier is not None and not found:
            raise unknown("table", qualifier, {each.qualifier for each in self.visible if each.qualifier})

    def find(self, name: str, qualifier: str | None = None) -> Expression | None:
        """The column of that name here or, failing that, in an enclosing query."""
        matches = list(self._matches(name, qualifier))
        if len({match.expression for match in matches}) > 1:
            where = ", ".join(sorted(f"{match.qualifier or '?'}.{match.name}" for match in matches))
            raise SchemaError(f"column {name!r} is ambiguous: it could be {where}")
        if matches:
            return matches[0].expression
        return self.outer.find(name, qualifier) if self.outer else None

    def resolve(self, name: str, qualifier: str | None = None) -> Expression:
        """Like `find`, but a name that does not exist is an error that offers close ones."""
        found = self.find(name, qualifier)
        if found is None:
            self._refuse_field_access(qualifier)
            self._refuse_doubt(name)
            raise self._unknown(name, qualifier)
        return found

    def _unknown(self, name: str, qualifier: str | None) -> UnknownName:
        """What is said of a name that nothing has; before it, what stands before its point may be wrong."""
        if qualifier is None:
            return unknown("column", name, {each.name.lower() for each in self.visible if each.name})
        seen = [*self.visible, *(each for outer in self._around() for each in outer.visible)]
        theirs = {each.name.lower() for each in seen if each.name and _same(each.qualifier, qualifier)}
        if not theirs:
            return unknown("table", qualifier, {each.qualifier for each in seen if each.qualifier})
        return unknown("column", name, theirs)

    def _around(self) -> Iterator[Scope]:
        """The scopes of the queries around this one, the nearest first."""
        scope = self.outer
        while scope is not None:
            yield scope
            scope = scope.outer

    def _matches(self, name: str, qualifier: str | None) -> Iterator[Visible]:
        for each in self.visible:
            if not _same(each.name, name) or (qualifier is None and each.qualified_only):
                continue
            if qualifier is None or _same(each.qualifier, qualifier):
                yield each

    def _refuse_doubt(self, name: str) -> None:
        """A name is unknown for sure only where every column in sight has a name, and Spark knows none of this name by itself."""
        if name.lower() in _SPARK_NAMES:
            raise Unsupported(f"{name!r} is a name that Spark gives a value to")
        if any(each.name is None for scope in (self, *self._around()) for each in scope.visible):
            raise Unsupported(f"{name!r} may be the name that Spark gives to an expression without an alias")

    def _refuse_field_access(self, qualifier: str | None) -> None:
        """`a.b` may also mean field b of a struct column a, which is left to Spark."""
        if qualifier is None:
            return
        column = self.find(qualifier)
        if isinstance(column, Column) and not is_simple(column.type):
            raise Unsupported(f"fields of the {column.type} column {qualifier!r} are read by Spark")


def _same(left: str | None, right: str | None) -> bool:
    return left is not None and right is not None and left.lower() == right.lower()
