"""Bounds on joins: those of theory for the shapes it knows, and never below the true size of random joins."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest

from nearly.missing.joins.edge_cover import JoinRelation, edge_cover, product


def keyed(*names: str) -> list[JoinRelation]:
    """Relations over one-letter attributes that hold no row twice."""
    return [JoinRelation(name, frozenset(name), frozenset(name)) for name in names]


@pytest.mark.parametrize(
    ("relations", "exponent"),
    [
        (keyed("ab", "bc", "ca"), 1.5),
        (keyed("12", "23", "34", "45", "56"), 3),
        (keyed("ab", "bc", "cd"), 2),
        (keyed(*("".join(pair) for pair in combinations("abcd", 2))), 2),
        (keyed(*("".join(pair) for pair in combinations("abcde", 2))), 2.5),
        (keyed("ab", "bc", "cd", "da"), 2),
        (keyed("ab", "cd"), 2),
        (keyed("ab"), 1),
    ],
)
def test_shapes_of_theory(relations: list[JoinRelation], exponent: float) -> None:
    """Triangle, chains, cliques of 4 and 5, a square, a Cartesian product and a single table."""
    for size in (10, 1000):
        assert edge_cover(relations, [float(size)] * len(relations)).bound == pytest.approx(size**exponent)


def test_tables_that_may_repeat_rows_multiply() -> None:
    relations = [JoinRelation(name, frozenset(name)) for name in ("ab", "bc", "ca")]
    assert edge_cover(relations, [10.0] * 3).bound == pytest.approx(1000)


def test_a_key_determines_the_rest() -> None:
    """A fact table, a dimension by its key, and a dimension of that dimension: at most one row for each fact."""
    facts = JoinRelation("facts", frozenset("d"))
    relations = [facts, JoinRelation("d", frozenset("de"), frozenset("d")), JoinRelation("e", frozenset("e"), frozenset("e"))]
    assert edge_cover(relations, [1000.0, 50.0, 20.0]).bound == pytest.approx(1000)


def test_sizes_that_differ_choose_the_cheaper_cover() -> None:
    assert edge_cover(keyed("ab", "bc", "ca"), [10.0, 10.0, 1e6]).bound == pytest.approx(100)
    assert edge_cover(keyed("ab", "bc", "ca"), [0.0, 10.0, 1e6]).bound == 0
    assert edge_cover(keyed("ab", "bc", "ca"), [10.0, 10.0, math.inf]).bound == pytest.approx(100)
    assert edge_cover(keyed("ab", "bc"), [10.0, math.inf]).bound == math.inf
    assert edge_cover(keyed("ab", "bc", "ca"), [100.0, 100.0, 1.0], fixed=2).weights[2] == 1
    assert product([1e300, 1e300]) == math.inf


@pytest.mark.parametrize("shape", [("ab", "bc", "ca"), ("ab", "bc", "cd"), ("abc", "bcd", "cda"), ("ab", "ac", "ad")])
def test_law_no_join_exceeds_its_bound(shape: tuple[str, ...]) -> None:
    """Random relations without repeated rows, joined by brute force."""
    draw = random.Random(3)
    for _ in range(60):
        tables = [{tuple(draw.randrange(3) for _ in name) for _ in range(draw.randrange(1, 9))} for name in shape]
        rows: list[dict[str, int]] = [{}]
        for name, table in zip(shape, tables, strict=True):
            rows = [
                {**row, **dict(zip(name, values, strict=True))}
                for row in rows
                for values in table
                if all(row.get(attribute, value) == value for attribute, value in zip(name, values, strict=True))
            ]
        sizes = [float(len(table)) for table in tables]
        assert len(rows) <= edge_cover(keyed(*shape), sizes).bound * (1 + 1e-9) <= product(sizes) * (1 + 1e-6)
