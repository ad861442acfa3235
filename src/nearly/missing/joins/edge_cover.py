"""Bounds on the size of natural joins: the fractional edge cover bound, and the product it improves on.

For relations R_i over attribute sets and weights c_i >= 0 that cover every attribute (for each attribute, the c_i of the
relations that have it sum up to at least 1), a join of sets has at most  prod |R_i| ** c_i  rows (A. Atserias, M. Grohe, D. Marx,
FOCS 2008). With c_a = 1 the same holds for a sum: sum of w over the join is at most  (sum of w over R_a) * prod over i != a of
|R_i| ** c_i  for w >= 0 (E. Friedgut, 2004, Lemma 3.3). The best c solves a linear programme, in logarithms.

The bound is about *sets*. A table may hold equal rows, so a relation whose join columns do not include a key gets a private
attribute (its row number), which forces c_i >= 1. A key that the join columns include also determines the relation's other
attributes: they are added to every relation that has the key, which keeps the join and lets fewer relations cover it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product as product_of

import numpy as np

from nearly.algebra.solver import linear_minimum

SAFETY = 1e-9
"""Sizes are rounded up by this fraction before they are made whole: logarithms are not exact."""


@dataclass(frozen=True, slots=True)
class JoinRelation:
    """A relation of a join: its attributes, and the ones that determine all of them (None: no known key among them)."""

    name: str
    attributes: frozenset[str]
    key: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Cover:
    """A bound on the size of a join, and the weights that give it; the product has weight 1 everywhere."""

    bound: float
    weights: tuple[float, ...]


def edge_cover(relations: Sequence[JoinRelation], sizes: Sequence[float], fixed: int | None = None) -> Cover:
    """The least fractional edge cover bound for relations of these sizes; relation `fixed` has weight 1.

    >>> triangle = [Relation(n, frozenset(n), frozenset(n)) for n in ("ab", "bc", "ca")]
    >>> round(edge_cover(triangle, [100, 100, 100]).bound, 6)
    1000.0
    """
    ones = (1.0,) * len(relations)
    if any(size == 0 for size in sizes):
        return Cover(0.0, ones)
    closed = closure(relations)
    attributes = sorted(frozenset[str]().union(*(each.attributes for each in closed)))
    infinite = [place for place, size in enumerate(sizes) if math.isinf(size)]
    costs = np.array([0.0 if math.isinf(size) else math.log(size) for size in sizes])
    rows = np.array([[-1.0 if attribute in each.attributes else 0.0 for each in closed] for attribute in attributes])
    least = np.array([1.0 if place == fixed else 0.0 for place in range(len(sizes))])
    most = np.array([1.0 if place == fixed else 0.0 if place in infinite else np.inf for place in range(len(sizes))])
    found = linear_minimum(costs, rows, -np.ones(len(attributes)), least, most)
    if found.status != 0:
        return Cover(math.inf, ones)
    weights = tuple(float(weight) for weight in found.x)
    return Cover(_power(sizes, weights), weights)


def product(sizes: Sequence[float]) -> float:
    """The size of the Cartesian product."""
    if any(size == 0 for size in sizes):
        return 0.0
    try:
        return float(math.prod(sizes))
    except OverflowError:
        return math.inf


def closure(relations: Sequence[JoinRelation]) -> list[JoinRelation]:
    """The relations with a private attribute where rows may repeat, and with all attributes that keys determine."""
    closed = [
        each if each.key is not None and each.key <= each.attributes else
        replace(each, attributes=each.attributes | {f"row of {each.name} ({place})"}, key=None)
        for place, each in enumerate(relations)
    ]  # fmt: skip
    grown = True
    while grown:
        grown = False
        for place, other in product_of(range(len(closed)), closed):
            mine = closed[place].attributes
            if other.key is not None and other.key <= mine and not other.attributes <= mine:
                closed[place] = replace(closed[place], attributes=mine | other.attributes)
                grown = True
    return closed


def _power(sizes: Sequence[float], weights: Sequence[float]) -> float:
    try:
        return math.exp(math.fsum(weight * math.log(size) for weight, size in zip(weights, sizes, strict=True) if weight))
    except OverflowError:
        return math.inf
