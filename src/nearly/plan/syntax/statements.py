"""SQL text that changes a table: INSERT, DELETE, UPDATE and MERGE as a Spark user writes them, taken apart; or is about a view.

What is left of a statement are names and parts of queries. Whoever runs it puts these parts into queries, and every query is
checked as one (`plan.parse`) before an engine sees it. A clause that nobody reads is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from nearly.errors import ParseError, SchemaError, Unsupported
from nearly.plan.syntax.parse import parse_query, read_text, refuse_clauses_besides, to_text, tokens_of
from nearly.plan.syntax.view_statements import CreateView, ViewStatement, parse_view_statement
from nearly.plan.syntax.words import unread

MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE = "matched", "not matched", "not matched by source"
INSERT, UPDATE, DELETE = "insert", "update", "delete"
SOURCE = "nearly_source"
"""The name of a merge's source that has none."""

_KEPT = ("INTO", "USING", "SET", "WHEN", "MATCHED", "THEN")
"""Words that the parser would not miss."""

Assignments = tuple[tuple[str, exp.Expr], ...]
"""Columns of the table, and the expressions they are set to."""


@dataclass(frozen=True, slots=True)
class InsertInto:
    """`INSERT INTO table [(columns)] [BY NAME] query`."""

    table: str
    query: exp.Expr
    columns: tuple[str, ...] | None
    by_name: bool


@dataclass(frozen=True, slots=True)
class DeleteFrom:
    """`DELETE FROM table [AS alias] [WHERE condition]`; `common` are the expressions of a WITH before it."""

    table: str
    alias: str
    where: exp.Expr | None
    common: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class UpdateSet:
    """`UPDATE table [AS alias] SET column = expression, ... [WHERE condition]`."""

    table: str
    alias: str
    assignments: Assignments
    where: exp.Expr | None
    common: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class MergeClause:
    """`WHEN kind [AND condition] THEN action`; no assignments stand for a star: all columns, by name, from the source."""

    kind: str
    condition: exp.Expr | None
    action: str
    assignments: Assignments | None = ()


@dataclass(frozen=True, slots=True)
class MergeInto:
    """`MERGE INTO table [AS alias] USING source ON condition WHEN ...`; the source has its alias."""

    table: str
    alias: str
    source: exp.Expr
    source_alias: str
    on: exp.Expr
    clauses: tuple[MergeClause, ...]
    common: exp.Expr | None = None


Statement = InsertInto | DeleteFrom | UpdateSet | MergeInto


def parse_statement(text: str) -> Statement | ViewStatement | None:
    """The statement that a text is; None for a query."""
    about_view = parse_view_statement(text)
    if about_view is not None:
        return about_view
    tree, tokens = read_text(text)
    if isinstance(tree, exp.Query | exp.Values):
        return None
    read = _READERS.get(type(tree))
    if read is None:
        said = f"only a query, INSERT, DELETE, UPDATE or MERGE is accepted, not {tokens[0].text.upper()}"
        raise ParseError(f"{said}; views have statements of their own")
    _refuse_doubt(tokens, tokens_of(to_text(tree)))
    return read(tree)


def tables_named(text: str) -> tuple[set[str], set[str]]:
    """The names that stand for tables in a query or a statement, and, in small letters, those of common table expressions."""
    statement = parse_statement(text)
    if isinstance(statement, CreateView):
        return tables_named(statement.query)
    if isinstance(statement, ViewStatement):
        return set(), set()
    tree = parse_query(text) if statement is None else read_text(text)[0]
    named = {each.name for each in tree.find_all(exp.Table) if isinstance(each.this, exp.Identifier)}
    common = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    return named, common if statement is None else common - {statement.table.lower()}


def _refuse_doubt(tokens: Sequence[Token], rendered: Sequence[Token]) -> None:
    """A parser that passed over words may have read another statement."""
    given, kept = (Counter(token.text.upper() for token in each) for each in (tokens, rendered))
    doubt = unread(tokens, rendered)
    for word in _KEPT:
        if given[word] != kept[word]:
            doubt = doubt or f"{word} is missing, or stands where it has no meaning"
    if doubt is not None:
        raise ParseError(f"not a statement that Spark SQL would accept: {doubt}")


def _insert(tree: exp.Expr) -> InsertInto:
    if tree.args.get("overwrite") or tree.args.get("where"):
        raise Unsupported("INSERT that replaces rows; write DELETE FROM and INSERT INTO in one db.transaction()")
    refuse_clauses_besides(tree, "this", "expression", "by_name", "source", "with_")
    target, columns = tree.this, None
    if isinstance(target, exp.Schema):
        refuse_clauses_besides(target, "this", "expressions")
        columns = tuple(_identifier(each) for each in target.expressions)
        target = target.this
    name, alias = _table(target)
    if alias != name:
        raise ParseError("INSERT INTO takes no alias")
    if columns is not None and tree.args.get("by_name"):
        raise ParseError("INSERT INTO takes either columns or BY NAME")
    return InsertInto(name, _rows(tree), columns, bool(tree.args.get("by_name")))


def _rows(tree: exp.Expr) -> exp.Expr:
    """The query whose rows are inserted."""
    source = tree.args.get("source")
    if source:
        rows: exp.Expr = exp.Select(expressions=[exp.Star()], from_=exp.From(this=source.copy()))
    elif isinstance(tree.expression, exp.Query | exp.Values):
        rows = tree.expression.copy()
    else:
        raise ParseError("INSERT INTO has no rows; give VALUES (...) or a query")
    if isinstance(rows, exp.Values):
        if rows.args.get("alias"):
            raise ParseError("VALUES of an INSERT take no alias")
        for each in list(rows.find_all(exp.Var)):
            if each.name.upper() == "DEFAULT":
                each.replace(exp.Null())
    common = tree.args.get("with_")
    if common:
        if rows.args.get("with_"):
            raise Unsupported("INSERT with two WITH clauses")
        if isinstance(rows, exp.Values):
            rows = exp.Select(expressions=[exp.Star()], from_=exp.From(this=rows))
        rows.set("with_", common.copy())
    return rows


def _delete(tree: exp.Expr) -> DeleteFrom:
    refuse_clauses_besides(tree, "this", "where", "with_")
    name, alias = _table(tree.this)
    return DeleteFrom(name, alias, _condition(tree), tree.args.get("with_"))


def _update(tree: exp.Expr) -> UpdateSet:
    refuse_clauses_besides(tree, "this", "expressions", "where", "with_")
    name, alias = _table(tree.this)
    return UpdateSet(name, alias, _assignments(tree, alias), _condition(tree), tree.args.get("with_"))


def _merge(tree: exp.Expr) -> MergeInto:
    refuse_clauses_besides(tree, "this", "using", "on", "whens", "with_")
    name, alias = _table(tree.this)
    source = tree.args["using"].copy()
    if not source.alias:
        given = source.name if isinstance(source, exp.Table) else SOURCE
        source.set("alias", exp.TableAlias(this=exp.to_identifier(given, quoted=True)))
    if source.alias.lower() == alias.lower():
        raise SchemaError(f"the table and the source of a merge are both called {alias!r}; give one of them an alias")
    on = tree.args.get("on")
    if not on:
        raise ParseError("MERGE INTO needs ON and a condition")
    clauses = tuple(_clause(each, alias) for each in tree.args["whens"].expressions)
    for kind in (MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE):
        mine = [clause for clause in clauses if clause.kind == kind]
        if any(clause.condition is None for clause in mine[:-1]):
            raise ParseError(f"only the last WHEN {kind.upper()} can do without a condition: those after it would never apply")
    return MergeInto(name, alias, source, source.alias, on, clauses, tree.args.get("with_"))


def _clause(when: exp.Expr, alias: str) -> MergeClause:
    refuse_clauses_besides(when, "matched", "source", "condition", "then")
    matched, by_source = bool(when.args.get("matched")), bool(when.args.get("source"))
    if matched and by_source:
        raise ParseError("WHEN MATCHED BY SOURCE has no meaning; write WHEN MATCHED or WHEN NOT MATCHED BY SOURCE")
    kind = MATCHED if matched else NOT_MATCHED_BY_SOURCE if by_source else NOT_MATCHED
    condition, then = when.args.get("condition"), when.args["then"]
    match then:
        case exp.Var() if then.name.upper() == "DELETE" and kind != NOT_MATCHED:
            return MergeClause(kind, condition, DELETE)
        case exp.Update() if kind != NOT_MATCHED:
            refuse_clauses_besides(then, "expressions")
            if _is_star(then.expressions) and kind == MATCHED:
                return MergeClause(kind, condition, UPDATE, None)
            return MergeClause(kind, condition, UPDATE, _assignments(then, alias))
        case exp.Insert() if kind == NOT_MATCHED:
            refuse_clauses_besides(then, "this", "expression")
            return MergeClause(kind, condition, INSERT, _inserted(then))
    raise ParseError(f"WHEN {kind.upper()} cannot be followed by {then.sql(dialect='spark')[:60]!r}")


def _inserted(then: exp.Expr) -> Assignments | None:
    if _is_star([then.this]):
        return None
    columns, values = then.this, then.expression
    if not isinstance(columns, exp.Tuple) or not isinstance(values, exp.Tuple):
        raise ParseError("INSERT of a merge is INSERT * or INSERT (column, ...) VALUES (expression, ...)")
    if len(columns.expressions) != len(values.expressions):
        raise ParseError(f"INSERT of a merge names {len(columns.expressions)} columns and {len(values.expressions)} values")
    pairs = zip(columns.expressions, values.expressions, strict=True)
    return _once([(_column(each, None), _value(value)) for each, value in pairs])


def _is_star(expressions: Sequence[exp.Expr]) -> bool:
    if len(expressions) != 1 or not isinstance(expressions[0], exp.Star):
        return False
    refuse_clauses_besides(expressions[0])
    return True


def _assignments(tree: exp.Expr, alias: str) -> Assignments:
    found = []
    for each in tree.expressions:
        if not isinstance(each, exp.EQ):
            raise ParseError(f"SET takes column = expression, not {each.sql(dialect='spark')[:60]!r}")
        found.append((_column(each.this, alias), _value(each.expression)))
    if not found:
        raise ParseError("UPDATE sets no column")
    return _once(found)


def _once(found: Sequence[tuple[str, exp.Expr]]) -> Assignments:
    names = Counter(name.lower() for name, _ in found)
    for name, _ in found:
        if names[name.lower()] > 1:
            raise SchemaError(f"column {name!r} is set twice (case does not count)")
    return tuple(found)


def _column(node: exp.Expr, alias: str | None) -> str:
    """The name of a column that is set; before it only the table's own name may stand."""
    if not isinstance(node, exp.Column) or node.args.get("db") or (node.table and node.table.lower() != (alias or "").lower()):
        raise ParseError(f"only a column of the changed table can be set, not {node.sql(dialect='spark')[:60]!r}")
    return node.name


def _value(node: exp.Expr) -> exp.Expr:
    """An expression; DEFAULT is null, since no column has another default."""
    if isinstance(node, exp.Column) and node.name.upper() == "DEFAULT" and not node.table and not node.this.quoted:
        return exp.Null()
    if isinstance(node, exp.Var) and node.name.upper() == "DEFAULT":
        return exp.Null()
    return node.copy()


def _condition(tree: exp.Expr) -> exp.Expr | None:
    where = tree.args.get("where")
    return None if where is None else where.this.copy()


def _table(node: exp.Expr) -> tuple[str, str]:
    """The name and the alias of the table that is changed."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise ParseError("a statement changes one registered table, given by its name")
    if node.db:
        raise Unsupported(f"table {node.sql(dialect='spark')} is not registered here; use its registered name")
    if node.args.get("version") is not None:
        raise Unsupported("only the present version of a table can be changed")
    refuse_clauses_besides(node, "this", "alias")
    alias = node.args.get("alias")
    if alias is not None:
        refuse_clauses_besides(alias, "this")
    return node.name, node.alias or node.name


def _identifier(node: exp.Expr) -> str:
    if not isinstance(node, exp.Identifier):
        raise ParseError(f"the columns of INSERT INTO are names, not {node.sql(dialect='spark')[:60]!r}")
    return str(node.name)


_READERS: dict[type[exp.Expr], Callable[[exp.Expr], Statement]] = {
    exp.Insert: _insert, exp.Delete: _delete, exp.Update: _update, exp.Merge: _merge,
}  # fmt: skip
