"""Clauses of syntax nodes: what nobody reads is refused."""

from __future__ import annotations

from sqlglot import exp

from nearly.errors import Unsupported


def refuse_clauses_besides(node: exp.Expr, *known: str) -> None:
    """Refuse a node that carries a clause nobody looks at: ignoring it would answer another question."""
    for name, value in node.args.items():
        if value and name not in known:
            raise Unsupported(f"{node.key} with {name.strip('_').replace('_', ' ')}")
