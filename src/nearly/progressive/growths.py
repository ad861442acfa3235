"""How the keys of a tail's aggregates grow: models of in how many groups of units they were seen."""

from __future__ import annotations

import numpy as np

from nearly.engine.stream.unit_state import UnitState
from nearly.estimate.incidence import Incidence, fit
from nearly.plan.nodes import GroupBy, Plan
from nearly.progressive.reading import UnitsRead
from nearly.rewrite.stream.cut import Gathered
from nearly.rewrite.weigh.weigh import incidence, keyed_aggregates
from nearly.rewrite.weigh.weighted import Growths


def growths_of(
    plan: Plan, stages: tuple[Gathered, ...], state: UnitState, reading: UnitsRead
) -> tuple[Growths, dict[GroupBy, Incidence]]:  # fmt: skip
    """For every aggregate by keys, how its keys grow, and the model that tells it; the topmost one comes first."""
    growths: Growths = {}
    models: dict[GroupBy, Incidence] = {}
    for aggregate in keyed_aggregates(plan, stages):
        table = state.run(incidence(aggregate, stages))
        frequencies = np.zeros(max(reading.groups, 1))
        for seen, keys in zip(table["seen_in"].to_pylist(), table["keys"].to_pylist(), strict=True):
            frequencies[min(seen, len(frequencies)) - 1] += keys
        if not frequencies.sum():
            continue
        models[aggregate] = model = fit(frequencies, min(reading.share, 1.0))
        if frequencies[0]:
            k = np.arange(1, len(frequencies) + 1)
            growths[aggregate] = tuple(float(each) for each in model.scale(k) * model.m / model.M)
    return growths, models
