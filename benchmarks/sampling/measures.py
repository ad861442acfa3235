"""The queries that are tried on a population, and the statistics that each of them gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.sampling.nested import Nested
from benchmarks.sampling.orders import Reading
from benchmarks.sampling.populations import Integers, Population
from benchmarks.sampling.seed_by_seed import DistinctTags, Median
from benchmarks.sampling.smooth import Grouped, Plain, grouped_partials, plain_partials
from benchmarks.sampling.trials import Trial

Measure = Callable[[Reading, int], Trial]


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, and for each column of its answer that is a statistic what it makes of a reading at some look.

    `by` names the column with the key of a row.
    """

    text: str
    measures: dict[str, Measure]
    by: str | None = None


def asked(population: Population, positions: tuple[Integers, ...]) -> list[Asked]:
    """All queries; `positions` are those at which the seeds read the blocks.

    No method has intervals for the spread of `heavy`: the fourth moment of its values is infinite.
    """
    plain, grouped = plain_partials(population), grouped_partials(population)
    rows = plain["rows"][:, 0]
    return [
        Asked(
            f"SELECT count(*) FILTER (WHERE x > {population.limit!r}D) AS `count`, sum(y) AS `sum`, avg(y) AS `avg`, "
            "sum(y) / sum(x) AS `ratio` FROM t",
            {name: Plain(plain, name) for name in ("count", "sum", "avg", "ratio")},
        ),
        *([] if population.name == "heavy" else [Asked("SELECT stddev(y) AS `stddev` FROM t", {"stddev": Plain(plain, "stddev")})]),
        Asked("SELECT avg(y) AS `nested` FROM t WHERE x > (SELECT avg(x) FROM t)", {"nested": Nested(population)}),
        Asked("SELECT median(y) AS `median` FROM t", {"median": Median.of(population, positions)}),
        Asked("SELECT count(DISTINCT tag) AS `distinct` FROM t", {"distinct": DistinctTags.of(population)}),
        Asked(
            "SELECT k, count(*) AS `count by key`, sum(y) AS `sum by key`, avg(y) AS `avg by key` FROM t GROUP BY k",
            {f"{name} by key": Grouped(grouped, rows, name) for name in ("count", "sum", "avg")},
            by="k",
        ),
    ]
