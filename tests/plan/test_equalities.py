"""Columns that are equal in all rows of a plan."""

from __future__ import annotations

import pytest

from nearly.plan.equalities import equal_columns, united
from tests.rewrite import shop


def classes(text: str) -> list[list[str]]:
    """The classes without the numbers that make names unique."""
    found = equal_columns(shop.planned(text))
    return sorted(sorted(name.rsplit("_", 1)[0] for name in each) for each in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select k, vk, w from event join visit on k = vk", [["k", "vk"]]),
        ("select k, vk, w from event left join visit on k = vk", []),
        ("select k, vk, ok from event join visit on k = vk join other on vk = ok", [["k", "ok", "vk"]]),
        ("select k as a, k as b from event", [["a", "b"]]),
        ("select k, x from event where k = x", []),
        ("select ok, z from other where ok = z", [["ok", "z"]]),
        ("select k, max(vk) as m from event join visit on k = vk group by k", []),
        ("select ok, z from other where ok = z intersect select k, k from event", [["ok", "z"]]),
    ],
)
def test_classes(text: str, expected: list[list[str]]) -> None:
    assert classes(text) == expected


def test_sets_that_share_a_name_are_one() -> None:
    found = united([frozenset("ab"), frozenset("cd"), frozenset("e"), frozenset("bd")])
    assert [sorted(each) for each in found] == [["a", "b", "c", "d"]]
