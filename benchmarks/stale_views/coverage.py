"""E-S5 and the intervals: many samples of views whose rows changed in many ways, by how much intervals hold and which method wins.

Estimates are those of the product's own functions, over sums computed for all samples at once (`at_once`); in some samples they are
compared with what the product answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

import nearly
from benchmarks.report import Record
from benchmarks.stale_views.at_once import QUERIES, Asked, AtOnce, scored
from benchmarks.stale_views.trials import KINDS, Population, Trials, population

REPLACED = (0.05, 0.2, 0.325, 0.5, 0.8, 1.0)
SHARE = 0.1
MEDIANS = 400
"""Samples of medians, which are computed one by one."""
COMPARED = 2
"""Samples whose answers are compared with the product's."""


def run(directory: Path, rows: int, samples: int) -> tuple[list[Record], Record]:
    """Coverage of the intervals of `auto` in every kind of change."""
    found: list[Record] = []
    given = withheld = wrong = differing = 0
    coverages = []
    for kind in KINDS:
        changed = population(kind, rows)
        many, few = (AtOnce.random(changed, SHARE, count) for count in (samples, min(samples, MEDIANS)))
        for name, query in QUERIES.items():
            result = scored(few if query.function == "median" else many, query)
            given, withheld = given + result.given, withheld + result.withheld
            wrong += result.wrong_without_width
            coverage = result.coverage if result.given else None
            if coverage is not None:
                coverages.append(coverage)
            share = result.withheld / max(result.given + result.withheld, 1)
            held = None if coverage is None else 100 * coverage
            found.append({"what": f"{kind}: {name}", "held %": held, "withheld %": 100 * share, "width / error": result.looseness})
        differing += differences(directory / kind.replace(" ", "-"), changed, QUERIES)
    summary = {
        "coverage_lowest": min(coverages),
        "coverage_highest": max(coverages),
        "withheld_fraction": withheld / max(given + withheld, 1),
        "wrong_without_width": wrong,
        "estimates_differing": differing,
    }
    return found, summary


def differences(place: Path, changed: Population, queries: Mapping[str, Asked], samples: int = COMPARED) -> int:
    """In how many cells the product's estimate or interval is another than that of all samples at once."""
    place.mkdir(parents=True, exist_ok=True)
    found = 0
    with nearly.connect(path=place / "catalog", lazy=True) as db:
        trials = Trials(db, place, changed, samples)
        at_once = AtOnce(changed, SHARE, trials.tickets())
        for query in queries.values():
            cells = at_once.ask(query)
            for number, answer in enumerate(trials.answers(query.text, SHARE, "auto")):
                keys = answer.table.column(0).to_pylist() if query.grouped else [0]
                for row, key in enumerate(keys):
                    sides = [table.column(table.num_columns - 1)[row].as_py() for table in (answer.table, answer.low, answer.high)]
                    theirs = [np.nan if each is None else float(each) for each in sides]
                    whole = 1.0 if query.function == "count" else 1e-9  # numbers of rows are rounded outward
                    found += not np.allclose(cells[key].sides(number), theirs, rtol=1e-6, atol=whole, equal_nan=True)
    return found


def break_even(rows: int, samples: int) -> tuple[list[Record], Record]:
    """Root mean square errors of the methods by how many values were replaced, and `auto` over the better one."""
    found: list[Record] = []
    worst = 0.0
    for share in REPLACED:
        many = AtOnce.random(population(f"skewed replaced {share:g}", rows), SHARE, samples)
        errors = {
            method: float(np.sqrt(np.mean(np.square(scored(many, QUERIES["sum"], method).errors))))
            for method in ("stale", "aqp", "corr", "auto")
        }
        over = errors["auto"] / min(errors["aqp"], errors["corr"])
        worst = max(worst, over)
        row: dict[str, float | str] = {"what": f"{share:.1%} of the values replaced", "auto / best": over}
        found.append(row | {f"{method} %": 100 * error for method, error in errors.items()})
    return found, {"auto_over_best": worst}
