"""What holds for every tail over weighted rows, whatever its operators are."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from nearly.errors import Unsupported
from nearly.plan.nodes import Limit, Plan, Project, Sort
from nearly.rewrite.passes import for_units
from nearly.rewrite.stream.cut import Cut
from nearly.rewrite.weigh.weigh import replicate, weigh
from nearly.rewrite.weigh.weighted import Growths
from tests.rewrite import shop
from tests.rewrite.golden_plans import shown_weighted, under
from tests.rewrite.running import UNITS, by_units, rows_differ, run

WEIGHT = 2.0


def cut_of(text: str) -> Cut:
    cut = for_units(shop.planned(text), shop.schema)
    assert cut is not None
    return cut


def shown_tail(cut: Cut, growths: Growths) -> str:
    """The tail as a point estimate, and in replicates where it has any."""
    point = under("estimate", shown_weighted(weigh(cut.tail, cut.stages, WEIGHT, growths, WEIGHT)))
    try:
        copies = shown_weighted(replicate(cut.tail, cut.stages, growths))
    except Unsupported as reason:
        copies = str(reason)
    return f"{point}\n{under('replicates', copies)}"


def check_estimate(text: str, cut: Cut, growths: Growths) -> None:
    """With every unit read and a weight of one, the estimate is the answer."""
    found = run(weigh(cut.tail, cut.stages, 1.0, growths).plan, by_units(cut))
    assert rows_differ(run(shop.planned(text)), found, text, numbers=True) is None


def check_replicates(cut: Cut, growths: Growths) -> None:
    """Each replicate, where there are any, is the estimate from the units that it does not leave out, with their weight."""
    try:
        copies = replicate(cut.tail, cut.stages, growths)
    except Unsupported:
        return
    if copies.replicate is None:
        return
    weights = {name: [] for name in ("replicate", "unit_group", "unit_weight")}
    for left_out in range(UNITS):
        for unit in [unit for unit in range(UNITS) if unit != left_out]:
            weights["replicate"].append(left_out)
            weights["unit_group"].append(unit)
            weights["unit_weight"].append(WEIGHT)
    types = [pa.int32(), pa.int32(), pa.float64()]
    given = pa.table([pa.array(each, kind) for each, kind in zip(weights.values(), types, strict=True)], [*weights])
    inputs = {"weights": given, "weights_beside": given, "replicates": pa.table({"replicate": pa.array(range(UNITS), pa.int32())})}
    read = [by_units(cut, None, [unit]) for unit in range(UNITS)]
    rows = run(copies.plan, together(cut, read) | inputs)
    tail = unordered(cut.tail)
    for left_out in range(UNITS):
        mine = rows.filter(pa.array([each == left_out for each in rows[copies.replicate.name].to_pylist()], pa.bool_()))
        alone = run(weigh(tail, cut.stages, WEIGHT, growths, WEIGHT).plan, together(cut, [*read[:left_out], *read[left_out + 1 :]]))
        assert rows_differ(alone.select([column.name for column in tail.columns]), mine, numbers=True) is None, left_out


def together(cut: Cut, read: list[dict[str, pa.Table]]) -> dict[str, pa.Table]:
    """The rows of the stages after these units."""
    once = {stage.name for stage in cut.stages if not stage.streamed}
    return {name: rows if name in once else pa.concat_tables(each[name] for each in read) for name, rows in read[0].items()}


def unordered(tail: Plan) -> Plan:
    """The tail without the order and limit at its top, which pick rows for show."""
    match tail:
        case Sort() | Limit():
            return unordered(tail.child)
        case Project():
            return replace(tail, child=unordered(tail.child))
    return tail
