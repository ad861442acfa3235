"""Quantiles and degrees of freedom, against scipy; and the extreme average, against all choices."""

from __future__ import annotations

import doctest
import itertools
import random

import pytest
from scipy import stats

import nearly
from nearly.algebra import averages, moments
from nearly.algebra.averages import extreme_average
from nearly.algebra.moments import pooled_freedom, quantile


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("freedom", [1, 2, 10, 1_000])
def test_quantiles_are_those_of_student(confidence: float, freedom: int) -> None:
    assert quantile(confidence, freedom) == pytest.approx(stats.t.ppf(0.5 + confidence / 2, freedom))


def test_without_variance_the_normal_distribution_serves() -> None:
    assert pooled_freedom(0.0, 0.0) is None
    assert quantile(0.95) == pytest.approx(1.959964)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -3.0, 95])
def test_a_confidence_is_a_probability(confidence: float) -> None:
    with pytest.raises(nearly.SchemaError, match="between 0 and 1"):
        quantile(confidence)


def test_the_examples_hold() -> None:
    assert doctest.testmod(moments).failed == doctest.testmod(averages).failed == 0


@pytest.mark.parametrize("sign", [-1, 1])
def test_oracle_the_extreme_average_is_that_of_the_best_choice(sign: int) -> None:
    draw = random.Random(sign)
    for _ in range(200):
        count, parts = draw.randrange(3), draw.randrange(4)
        total = float(sum(draw.randrange(-9, 9) for _ in range(count)))
        values = [float(draw.randrange(-9, 9)) for _ in range(parts)]
        must, may = ([draw.randrange(3) for _ in range(parts)] for _ in range(2))
        averages = []
        for more in itertools.product(*(range(each + 1) for each in may)):
            rows = [least + extra for least, extra in zip(must, more, strict=True)]
            if count + sum(rows):
                averages.append((total + sum(v * n for v, n in zip(values, rows, strict=True))) / (count + sum(rows)))
        found = extreme_average(total, count, list(zip(values, must, may, strict=True)), sign)
        assert found == (pytest.approx(sign * max(sign * each for each in averages)) if averages else None)
