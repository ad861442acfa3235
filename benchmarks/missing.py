"""Ranges over missing rows: do they hold on real data, how wide are they, how fast, and how tight over joins."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contingency.accuracy import Score, evaluate, noise_robustness
from benchmarks.contingency.data import DATA_SETS, DataSet, diamonds
from benchmarks.contingency.speed import chain, disjoint_milliseconds, overlapping, triangle
from benchmarks.report import Record, print_summary, print_table, show, write_json
from nearly.engine.spark.cluster import open_cluster

RATIOS = (0.1, 0.3, 0.5)
CONSTRAINTS = 2000
SEED = 7
OVERLAPS = (11, 12, 13)
"""Seeds of the sets of overlapping constraints; the slowest counts."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is tried."""

    queries: int
    constraints: int = CONSTRAINTS
    data_sets: tuple[Callable[[], DataSet], ...] = DATA_SETS
    ratios: tuple[float, ...] = RATIOS
    overlaps: tuple[int, ...] = OVERLAPS


TINY = Size(2, 50, (diamonds,), (0.3,), OVERLAPS[:1])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the report to this file")
    parser.add_argument("--queries", type=int, default=334, help="random queries for each data set and each of three ratios")
    parser.add_argument("--tiny", action="store_true", help="hardly any data, to see that all works")
    chosen = parser.parse_args(arguments)
    size = TINY if chosen.tiny else Size(chosen.queries)
    speed, speed_rows = measure_speed(size)
    print_table(["constraints", "cells", "tested", "fraction", "decompose s", "range s", "tight"], speed_rows)
    accuracy, accuracy_rows = measure_accuracy(size)
    joins = measure_joins()
    summary: dict[str, Any] = {**accuracy, **speed, **joins}
    print()
    print_summary(summary)
    if chosen.json is not None:
        write_json(chosen.json, {"queries": size.queries, "constraints": size.constraints}, summary, [*accuracy_rows, *speed_rows])
    return 1 if summary["failures"] or summary["triangle_over_theory"] > 1.000001 else 0


def measure_speed(size: Size) -> tuple[dict[str, Any], list[Record]]:
    """Times of disjoint and overlapping constraints."""
    rows: list[Record] = [overlapping(20, seed) for seed in size.overlaps] + [overlapping(100, seed) for seed in size.overlaps]
    twenty, hundred = rows[: len(size.overlaps)], rows[len(size.overlaps) :]
    return {
        "disjoint_2000_ms": disjoint_milliseconds(repeat=50, seed=SEED),
        "overlap_20_s": max(_number(row, "decompose s") for row in twenty),
        "cells_tested_fraction": max(_number(row, "fraction") for row in twenty),
        "overlap_100_s": max(_number(row, "decompose s") + _number(row, "range s") for row in hundred),
    }, rows  # fmt: skip


def measure_accuracy(size: Size) -> tuple[dict[str, Any], list[Record]]:
    """Failures and widths on all data sets and ratios, and robustness to noise on the first."""
    cluster = open_cluster(None, None)
    rows: list[Record] = []
    scores: list[Score] = []
    overs: list[float] = []
    try:
        data_sets = [load() for load in size.data_sets]
        for data in data_sets:
            for ratio in size.ratios:
                score = evaluate(cluster.given, data, ratio, size.constraints, size.queries, SEED)
                scores.append(score)
                rows.append(_row(data, ratio, score))
                print(", ".join(f"{name} {show(value)}" for name, value in rows[-1].items()), file=sys.stderr, flush=True)
                overs += [score.median_over(function) for function in ("sum", "count")] if data.has_ratio else []
        print()
        print_table(list(rows[0]), rows)
        tries = max(50, size.queries // 5)
        noise: Sequence[Record] = noise_robustness(cluster.given, data_sets[0], 0.3, size.constraints, tries, SEED)
        print()
        print_table(list(noise[0]), noise)
    finally:
        cluster.close()
    return {
        "failures": sum(score.failures for score in scores),
        "sampling_failures": sum(score.sampling_failures for score in scores),
        "over_estimation": max(overs),
    }, [*rows, *noise]  # fmt: skip


def measure_joins() -> dict[str, Any]:
    """Bounds of the triangle and of a chain of five tables, beside theory and product."""
    rows: list[Record] = []
    for size in (100, 1_000, 10_000, 100_000):
        for shape, (bound, theory, naive) in (("triangle", triangle(size)), ("chain of 5", chain(size))):
            rows.append(
                {"join": shape, "rows": size, "bound": bound, "theory": theory, "product": naive, "bound/theory": bound / theory}
            )
    print()
    print_table(list(rows[0]), rows)
    return {"triangle_over_theory": max(_number(row, "bound/theory") for row in rows if row["join"] == "triangle")}


def _row(data: DataSet, ratio: float, score: Score) -> Record:
    return {
        "data": data.name, "measure": data.measure, "by": "+".join(data.by), "missing": ratio, "queries": score.queries,
        "failures": score.failures, "sampling failures": score.sampling_failures, "sum over": score.median_over("sum"),
        "count over": score.median_over("count"), "sampling over": _median(score.sampling_over),
    }  # fmt: skip


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else float("nan")


def _number(row: Record, name: str) -> float:
    value = row[name]
    assert isinstance(value, int | float)
    return float(value)


if __name__ == "__main__":
    sys.exit(main())
