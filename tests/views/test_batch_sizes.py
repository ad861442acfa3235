"""How many changes to wait for, from what refreshes took."""

from __future__ import annotations

import datetime as dt

import pytest

from nearly.errors import SchemaError, Unsupported
from nearly.views.batch_sizes import line, smallest_batch
from nearly.views.states import Refresh


def refreshes(fixed: float, each: float, sizes: tuple[int, ...], strategy: str = "delta") -> list[Refresh]:
    now = dt.datetime.now(dt.UTC)
    return [Refresh(now, strategy, "", size, size, 0, 0, fixed + each * size) for size in sizes]


@pytest.mark.parametrize(("fixed", "each"), [(0.5, 1e-4), (2.0, 0.0), (0.0, 1e-3)])
def test_law_the_smallest_batch_keeps_up_and_a_smaller_one_does_not(fixed: float, each: float) -> None:
    known = refreshes(fixed, each, (100, 1_000, 20_000))
    assert line(known) == pytest.approx((fixed, each), abs=1e-9)
    wanted = 800.0
    size = smallest_batch(known, wanted)
    assert size / (fixed + each * size) >= wanted * (1 - 1e-9)
    assert size == 1 or (size - 1) / (fixed + each * (size - 1)) < wanted * (1 + 1e-9)


def test_bad_input() -> None:
    known = refreshes(0.5, 1e-3, (100, 1_000))
    with pytest.raises(SchemaError, match="rows_per_second=0 must be a number greater"):
        smallest_batch(known, 0)
    with pytest.raises(SchemaError, match="rows_per_second=inf"):
        smallest_batch(known, float("inf"))
    with pytest.raises(Unsupported, match="at most about 1,000 changed rows a second"):
        smallest_batch(known, 5_000)
    for few in (known[:1], refreshes(1, 1, (10, 20), "whole"), []):
        with pytest.raises(Unsupported, match="two different numbers"):
            smallest_batch(few, 10)
