"""How long decomposition and ranges take, and how tight joins are bounded."""

from __future__ import annotations

import random
import statistics
import time
from typing import Any

from nearly.algebra.boxes import EVERYWHERE
from nearly.missing.joins.edge_cover import JoinRelation, edge_cover, product
from nearly.missing.programmes.aggregate_range import Ranger
from nearly.missing.programmes.cells import TimeLimit, decompose
from nearly.missing.programmes.effects import MissingMeasure, RangeQuestion
from nearly.missing.programmes.problem import Problem
from nearly.missing.range_answer import KnownAggregate
from nearly.missing.statements.bound_set import bind_constraints, region_of
from nearly.missing.statements.constraint import Constraint
from nearly.plan.expressions import Column
from nearly.plan.schema import SchemaColumn, TableSchema
from nearly.plan.types import INT, decimal
from nearly.plan.values.ranges import Extent
from nearly.plan.values.regions import Regions, RowSpace

SIDE = 1000
SPACE = RowSpace.of(TableSchema("t", (SchemaColumn("a", INT), SchemaColumn("b", INT), SchemaColumn("x", decimal(12, 2)))), "UTC")


def disjoint_milliseconds(repeat: int, seed: int) -> float:
    """The median time of one SUM range over 2,000 disjoint constraints, for random queries over two attributes."""
    draw = random.Random(seed)
    constraints = [
        _constraint(draw, 20 * i, 20 * i + 20, 25 * j, 25 * j + 25, lowest=draw.randrange(5)) for i in range(50) for j in range(40)
    ]
    problem = Problem(bind_constraints(constraints, SPACE))
    sum_range(problem, "TRUE")
    seconds = []
    for _ in range(repeat):
        (a, c), (b, d) = (sorted(draw.sample(range(SIDE), 2)) for _ in range(2))
        seconds.append(sum_range(problem, f"a >= {a} and a < {c} and b >= {b} and b < {d}")[0])
    return 1000 * statistics.median(seconds)


def overlapping(count: int, seed: int) -> dict[str, Any]:
    """Random boxes over two attributes, of any size and place: they overlap heavily. Decomposition, and the range of a SUM."""
    draw = random.Random(seed)
    bound = bind_constraints([_random_box(draw) for _ in range(count)], SPACE)
    start = time.perf_counter()
    found = decompose(bound.constraints, EVERYWHERE, SPACE.everything)
    decomposed = time.perf_counter() - start
    seconds, tight = sum_range(Problem(bound), "TRUE")
    return {
        "constraints": count, "seed": seed, "cells": len(found.cells), "tested": found.nodes, "fraction": found.nodes / 2**count,
        "decompose s": decomposed, "range s": seconds, "tight": tight,
    }  # fmt: skip


def sum_range(problem: Problem, where: str) -> tuple[float, bool]:
    """Seconds that a SUM range takes (parsing of the query not counted), and whether it is tight."""
    measure = MissingMeasure(Regions(SPACE, {name: name for name in SPACE.domains}), Column(SPACE.domains["x"].type, "x"))
    question = RangeQuestion(region_of(where, SPACE), measure)
    start = time.perf_counter()
    found = Ranger(problem, TimeLimit(10))("sum", question, KnownAggregate(Extent(0, 0)))
    return time.perf_counter() - start, found.is_tight


def _random_box(draw: random.Random) -> Constraint:
    (a, c), (b, d) = (sorted(draw.sample(range(SIDE), 2)) for _ in range(2))
    return _constraint(draw, a, c, b, d, lowest=0)


def _constraint(draw: random.Random, a: int, c: int, b: int, d: int, lowest: int) -> Constraint:
    low = draw.randrange(10_000) / 100
    values = {"x": (low, low + draw.randrange(100_000) / 100)}
    return Constraint(
        f"a >= {a} and a < {c} and b >= {b} and b < {d}", values=values, rows=(lowest, lowest + draw.randrange(5, 200))
    )


def triangle(size: int) -> tuple[float, float, float]:
    """Bound, theory (N ** 1.5) and product of the triangle query over three edge tables of N rows."""
    relations = [JoinRelation(name, frozenset(name), frozenset(name)) for name in ("ab", "bc", "ca")]
    sizes = [float(size)] * 3
    return edge_cover(relations, sizes).bound, float(size) ** 1.5, product(sizes)


def chain(size: int) -> tuple[float, float, float]:
    """Bound, theory (K ** 3) and product of a chain of five tables of K rows."""
    relations = [JoinRelation(name, frozenset(name), frozenset(name)) for name in ("12", "23", "34", "45", "56")]
    sizes = [float(size)] * 5
    return edge_cover(relations, sizes).bound, float(size) ** 3, product(sizes)
