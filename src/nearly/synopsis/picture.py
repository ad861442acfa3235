"""A tree as text: one line per leaf, with its rows, its samples and the error of its worst query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nearly.synopsis.columns.domain import Domain
from nearly.synopsis.query.view import View
from nearly.synopsis.structure.rows import Floats
from nearly.synopsis.structure.statistics import ROWS
from nearly.synopsis.upkeep.drift import leaf_variances

BAR = 20


def picture(view: View, domains: Sequence[Domain], most: int = 64) -> str:
    """The tree with branches on the left; the bar shows the error of the worst query in a leaf against the largest of all."""
    tree = view.frame.tree
    errors = np.sqrt(leaf_variances(view) / np.maximum(view.sample.sizes, 1))
    worst = float(errors.max(initial=0.0)) or 1.0
    low, high = tree.cells
    lines: list[str] = []

    def visit(node: int, lead: str, last: bool) -> None:
        branch = "" if node == 0 else ("└─" if last else "├─")
        if tree.is_leaf[node]:
            leaf = int(tree.first_leaf[node])
            bar = "█" * round(BAR * float(errors[leaf]) / worst)
            cell = _cell(low[node], high[node], domains, tree.split_dimensions)
            rows, size = view.leaf_statistics[leaf, ROWS], view.sample.sizes[leaf]
            lines.append(f"{lead}{branch}leaf {leaf} {cell}  {rows:,.0f} rows, {size} sampled  {bar} {errors[leaf]:.2%}")
            return
        if node == 0:
            lines.append(
                f"{view.rows:,.0f} rows, {tree.leaves} leaves, {len(view.sample):,} sampled; the worst query of a leaf errs by"
            )
        else:
            lines.append(f"{lead}{branch}┐")
        deeper = lead + ("" if node == 0 else ("  " if last else "│ "))
        visit(node + 1, deeper, False)
        visit(int(tree.right[node]), deeper, True)

    visit(0, "", True)
    if len(lines) > most:
        lines = [*lines[: most // 2], f"... {len(lines) - most} lines left out ...", *lines[-most // 2 :]]
    return "\n".join(lines)


def _cell(low: Floats, high: Floats, domains: Sequence[Domain], split: Sequence[int]) -> str:
    """The cell as conditions on the split columns."""
    parts = []
    for dimension in split:
        domain = domains[dimension]
        after, upto = _shown(domain, low[dimension]), _shown(domain, high[dimension])
        if after and upto:
            parts.append(f"{after} < {domain.name} <= {upto}")
        elif after or upto:
            parts.append(f"{domain.name} > {after}" if after else f"{domain.name} <= {upto}")
    return " and ".join(parts) or "all"


def _shown(domain: Domain, coordinate: float) -> str:
    if not np.isfinite(coordinate):
        return ""
    value = domain.value(float(coordinate))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
