"""All statistics that are tried on a population."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.sampling.nested import Nested
from benchmarks.sampling.orders import Reading
from benchmarks.sampling.populations import Population
from benchmarks.sampling.seed_by_seed import DistinctTags, Median
from benchmarks.sampling.smooth import Smooth, functions, grouped_partials, plain_partials
from benchmarks.sampling.trials import Trial

Measure = Callable[[Reading, int], Trial]


def measures(population: Population) -> dict[str, Measure]:
    """Each statistic as a function of what is read and the number of the look."""
    plain, grouped, known = plain_partials(population), grouped_partials(population), functions(population.rows)
    return {
        **{name: Smooth(plain, function, grouped=False) for name, function in known.items()},
        "nested": Nested(population),
        "median": Median.of(population),
        "distinct": DistinctTags.of(population),
        **{f"{name} by key": Smooth(grouped, known[name], grouped=True) for name in ("count", "sum", "avg")},
    }
