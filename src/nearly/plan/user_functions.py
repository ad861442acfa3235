"""Functions that users bring: what the plan must know of them. How they are written and run is the engine's business."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from nearly.errors import SchemaError
from nearly.plan.expressions import UserCall
from nearly.plan.functions.signatures import Arguments
from nearly.plan.types import DataType

_MARK = "user function"


@dataclass(frozen=True, slots=True)
class Signature:
    """A function from values of one row to a value: its name in SQL, its name in the native engine, its type."""

    name: str
    symbol: str
    returns: DataType

    def call(self, arguments: Arguments) -> UserCall:
        return UserCall(self.returns, self.name, self.symbol, arguments)


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Mapped:
    """A relation that a function makes of the rows of a query; queries select from it by its name.

    `keys` is None for a function that may be given the rows in pieces: f(a + b) = f(a) + f(b) as bags of rows. Otherwise it needs
    all rows at once, and its first `keys` columns identify a row of its result. For each other column, `estimates` tells what its
    value over a random sample of the rows says about all rows: it is an estimate of a `mean`, to be taken as it is, or of a
    `total`, which grows with the rows; None when neither is known.
    """

    name: str
    query: exp.Query
    outputs: tuple[tuple[str, DataType], ...]
    keys: int | None = None
    estimates: tuple[str | None, ...] = ()


def mark(tree: exp.Expr, known: Mapping[str, Signature]) -> None:
    """Tell the calls of users' functions from those of built-in ones."""
    for node in tree.find_all(exp.Anonymous):
        signature = known.get(str(node.this).lower())
        if signature is not None and not node.expressions:
            raise SchemaError(f"function {signature.name!r} takes at least one argument")
        if signature is not None:
            node.meta[_MARK] = signature


def marked(node: exp.Anonymous) -> Signature | None:
    """The user's function that a call was found to be."""
    found: Signature | None = node.meta.get(_MARK)
    return found


def used_by(tree: exp.Expr, known: Mapping[str, Mapped]) -> tuple[Mapped, ...]:
    """The mapped relations below a query, each after those it is made from; `known` is in that order."""
    wanted: set[str] = set()
    pending = [tree]
    while pending:
        for table in pending.pop().find_all(exp.Table):
            name = table.name.lower()
            if name in known and name not in wanted:
                wanted.add(name)
                pending.append(known[name].query)
    return tuple(each for name, each in known.items() if name in wanted)
