"""When a tree no longer suits its rows, and which part of it to plan again (JanusAQP, section 3.5.4)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from nearly.synopsis.build.drafting import Shape, plan_tree
from nearly.synopsis.partition.several_columns import MaximumVariance
from nearly.synopsis.query.view import View
from nearly.synopsis.structure.rows import Floats, Rows
from nearly.synopsis.structure.sample import Sample
from nearly.synopsis.structure.statistics import COUNT, ROWS, SQUARES, SUM
from nearly.synopsis.structure.tree import Tree

BETA = 2.0
"""By how much a variance may change before the tree is questioned, and by how much a new tree must be better."""
FEWEST_SAMPLES = 8


@dataclass(frozen=True, slots=True)
class Drift:
    """Leaves that call for another partitioning, the worst first, and why."""

    leaves: tuple[int, ...]
    reason: str


def weights(sample: Sample, statistics: Floats) -> Floats:
    """How many rows each sampled row stands for."""
    per_leaf = statistics[:, ROWS] / np.maximum(sample.sizes, 1)
    return per_leaf[sample.leaf]


def leaf_variances(view: View) -> Floats:
    """The worst variance of a query in each leaf, as a share of the square of all rows: growth alone does not change it."""
    return _variances(view.frame.tree, view.sample.rows, weights(view.sample, view.rest_statistics), _root(view))


def _variances(tree: Tree, rows: Rows, weight: Floats, root: float) -> Floats:
    measure = MaximumVariance(rows.coordinates, rows.values / root, "sum_and_count", True, weight)
    leaf = tree.leaf_of(rows.coordinates)
    order = np.argsort(leaf, kind="stable")
    starts = np.searchsorted(leaf[order], np.arange(tree.leaves + 1))
    total = max(float(weight.sum()), 1.0)
    found = [measure.worst(order[begin:end], tree.split_dimensions) for begin, end in itertools.pairwise(starts)]
    return np.array(found) / total**2


def _root(view: View) -> float:
    """The root of the mean square of all values."""
    totals, centre = view.node_statistics[0], view.frame.centre
    square = (totals[SQUARES] + 2.0 * centre * totals[SUM]) / max(totals[COUNT], 1.0) + centre**2
    return float(np.sqrt(square)) if square > 0 else 1.0


def verdict(view: View, built: Floats, beta: float = BETA) -> Drift | None:
    """Whether leaves have too few samples, or a variance far from what it was when the tree was built."""
    statistics, sizes = view.rest_statistics, view.sample.sizes
    starved = (sizes < FEWEST_SAMPLES) & (statistics[:, ROWS] > 4 * FEWEST_SAMPLES)
    if starved.any():
        found = np.flatnonzero(starved)
        return Drift(tuple(found.tolist()), f"{len(found)} leaves have fewer than {FEWEST_SAMPLES} samples")
    now = leaf_variances(view)
    reference = np.maximum(built, now.max(initial=0.0) * 1e-9)
    drifted = now > beta * np.maximum(reference, np.median(built))
    if not drifted.any():
        return None
    worst = np.flatnonzero(drifted)[np.argsort(-now[drifted])]
    return Drift(tuple(worst.tolist()), f"the variance of {len(worst)} leaves grew by more than {beta:g}")


@dataclass(frozen=True, slots=True)
class Proposal:
    """Another tree: what it replaces (a node of the old tree, 0 for all of it) and the worst variances before and after."""

    tree: Tree
    node: int
    before: float
    after: float

    def worthwhile(self, beta: float = BETA) -> bool:
        return self.after < self.before / beta


def propose(view: View, shape: Shape, node: int = 0) -> Proposal:
    """Plan the part below a node again, with as many leaves as it has."""
    tree, sample = view.frame.tree, view.sample
    weight = weights(sample, view.rest_statistics)
    below = tree.leaves_below(node)
    inside = (sample.leaf >= below.start) & (sample.leaf < below.stop)
    smaller = Shape(shape.columns, below.stop - below.start, shape.target, shape.method, shape.focus, shape.pooled)
    planned = plan_tree(smaller, sample.rows.take(inside), weight[inside])
    replanned = tree.replaced(node, planned)
    root = _root(view)
    before = _variances(tree, sample.rows, weight, root).max(initial=0.0)
    after = _variances(replanned, sample.rows, weight, root).max(initial=0.0)
    return Proposal(replanned, node, float(before), float(after))


def ancestor(tree: Tree, leaf: int, levels: int) -> int:
    """The node so many levels above a leaf, or the root."""
    node = int(tree.leaf_nodes[leaf])
    for _ in range(levels):
        if node == 0:
            break
        node = int(tree.parent[node])
    return node


def propose_around(view: View, shape: Shape, leaf: int, levels: int | None = None, beta: float = BETA) -> Proposal:
    """Plan the surroundings of a leaf again: `levels` above it, or as few as give a worthwhile tree (found by bisection)."""
    tree = view.frame.tree
    if levels is not None:
        return propose(view, shape, ancestor(tree, leaf, levels))
    low, high = 1, int(tree.depth[tree.leaf_nodes[leaf]])
    best = propose(view, shape, 0)
    while low < high:
        middle = (low + high) // 2
        found = propose(view, shape, ancestor(tree, leaf, middle))
        if found.worthwhile(beta) and found.after <= beta * max(best.after, 1e-300):
            best, high = found, middle
        else:
            low = middle + 1
    return best
