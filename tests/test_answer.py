"""The one answer type."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from nearly.answer import relative_error
from nearly.estimate.cells import _reach


@pytest.mark.parametrize(
    ("value", "low", "high", "error"),
    [(100, 90, 130, 0.3), (100, 60, 130, 0.4), (-10, -20, -5, 1.0), (0, 0, 0, 0.0), (0, -1, 1, math.inf), (5, None, 7, math.inf),
     (None, None, None, math.inf), (5.0, 5.0, math.inf, math.inf), (5.0, math.nan, 6.0, math.inf), ("a", "a", "a", 0.0),
     ("a", "a", "b", math.inf)],
)  # fmt: skip
def test_error_is_the_distance_to_the_farther_end(value: object, low: object, high: object, error: float) -> None:
    assert relative_error(value, low, high) == pytest.approx(error)


def test_law_columns_and_cells_have_one_error() -> None:
    chance = np.random.default_rng(4)
    value = chance.normal(0, 10, 50)
    low, high = value - chance.exponential(3, 50), value + chance.exponential(3, 50)
    columns = [pa.chunked_array([pa.array(each)]) for each in (value, low, high)]
    cells = [relative_error(*cell) for cell in zip(value.tolist(), low.tolist(), high.tolist(), strict=True)]
    assert _reach(*columns) == pytest.approx(max(cells))
