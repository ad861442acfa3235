"""Rows selected from a stale view: what is clean is put in place, and the sample tells how many others are wrong (SVC, 12.1.2).

Rows of keys that changed are overwritten, added or left out as far as they were cleaned. How many rows of the selection were
updated, added and deleted in all is estimated from those of the sample, each number with an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nearly.answer import Answer, UnseenRows
from nearly.engine.engine import Engine
from nearly.errors import Unsupported
from nearly.estimate.cells import RowChanges, Sides, assemble
from nearly.estimate.evidence import Evidence
from nearly.plan.binding.scope import FreshNames
from nearly.plan.expressions import Column
from nearly.plan.nodes import BoundQuery, Field, Filter, Output, Plan, Project, Scan, Sort, passed
from nearly.rewrite.passes import rewrite
from nearly.rewrite.sample.sampled_query import UNIT
from nearly.views.sampling.cleaning import StaleView
from nearly.views.sampling.outliers import comparable
from nearly.views.sampling.sample import PIECES, STALE_ROW, CleanSample, given
from nearly.views.sampling.strata import SURE_NEW

Floats = NDArray[np.float64]

KINDS = ("updated", "added", "deleted")


def is_selection(plan: Plan) -> bool:
    """Whether a plan picks and shows rows of one table, in some order, and nothing else."""
    node = plan
    while isinstance(node, Project | Filter | Sort):
        node = node.child
    return isinstance(node, Scan)


@dataclass(frozen=True, slots=True)
class ChangedNumber:
    """A number of rows that changed: estimate, low and high, NaN where that is not known, and how many of them are clean."""

    told: tuple[float, float, float]
    clean: float

    @property
    def left(self) -> UnseenRows:
        """How many are not clean yet."""
        estimate, _, high = self.told
        return UnseenRows(max(estimate - self.clean, 0.0), math.inf if math.isnan(high) else max(high - self.clean, 0.0))


@dataclass(frozen=True, slots=True)
class Selection:
    """A selection from a stale view."""

    engine: Engine
    query: BoundQuery
    view: StaleView
    sample: CleanSample
    confidence: float

    def answer(self) -> Answer:
        scan = next(node for node in self.query.plan.walk() if isinstance(node, Scan))
        if scan.table.lower() != self.view.table.name.lower():
            raise Unsupported(f"the query does not read view {self.view.table.name!r}")
        share = self.sample.share
        shown = self._run(_carrying(self.query.plan, scan, self.sample.clean(scan), (STALE_ROW,)))
        stale = np.asarray(shown[STALE_ROW.name].to_numpy(zero_copy_only=False), dtype=bool)
        sides = Sides.of(shown.select([column.name for column in self.query.plan.columns]), self.query)
        evolving = [place for place, name in enumerate(self._origins(scan)) if name not in self.view.key]
        sides = _opened(sides, evolving, stale) if share < 1 else sides
        tentative, name = pa.array(stale, pa.bool_()), self.view.table.name
        if not share:
            return assemble(
                self.query, sides, RowChanges(False, None, tentative, math.inf), share, self.confidence, {}, f"view {name} (stale)"
            )
        counts = self._counts(scan)
        wrong = sum(each.left.most for each in counts.values())
        changes = RowChanges(share >= 1, counts["added"].left, tentative, wrong / max(shown.num_rows, 1))
        stats = {"changes": {kind: each.told for kind, each in counts.items()}}
        return assemble(self.query, sides, changes, share, self.confidence, stats, f"view {name} (corrected)")

    def _run(self, plan: Plan) -> pa.Table:
        return self.engine.native.run_here(rewrite(plan), self.sample.inputs)

    def _origins(self, scan: Scan) -> list[str | None]:
        """For each column of the answer the stored column that it shows, if it shows one."""
        origin: dict[str, str] = {field.name: field.source for field in scan.fields}
        chain = []
        node = self.query.plan
        while not isinstance(node, Scan):
            chain.append(node)
            (node,) = node.children
        for each in reversed(chain):
            if isinstance(each, Project):
                origin = {
                    o.name: origin[o.expression.name]
                    for o in each.outputs
                    if isinstance(o.expression, Column) and o.expression.name in origin
                }
        return [origin.get(column.name) for column in self.query.plan.columns]

    def _counts(self, scan: Scan) -> dict[str, ChangedNumber]:
        """How many rows of the selection were updated, added and deleted in all."""
        strata, key = self.sample.strata, self.view.key
        extra = tuple(Field(f"{name}_identity", name, self.view.column(name).type) for name in key)
        whole = replace(scan, fields=(*scan.fields, *extra))
        rows = given(whole, PIECES, FreshNames("pieces"), (UNIT,))
        named = Project(rows, tuple(Output(new.name, old) for new, old in zip((*whole.columns, UNIT), rows.columns, strict=True)))
        found = self._run(_carrying(self.query.plan, scan, named, (*(Column(e.type, e.name) for e in extra), UNIT)))
        sides: dict[tuple[Any, ...], set[bool]] = {}
        groups: dict[tuple[Any, ...], int] = {}
        identities = zip(*(map(comparable, found[each.name].to_pylist()) for each in extra), strict=True)
        for identity, unit in zip(identities, found[UNIT.name].to_pylist(), strict=True):
            sides.setdefault(identity, set()).add(unit == SURE_NEW or unit >= strata.new.start)
            groups[identity] = -1 if unit <= SURE_NEW else int(strata.group_of(np.array(unit)))
        totals = {kind: np.zeros(strata.groups) for kind in KINDS}
        sure = dict.fromkeys(KINDS, 0)
        for identity, news in sides.items():
            kind = "updated" if len(news) == 2 else "added" if True in news else "deleted"
            if groups[identity] < 0:
                sure[kind] += 1
            else:
                totals[kind][groups[identity]] += 1
        return {kind: self._total(totals[kind], sure[kind]) for kind in KINDS}

    def _total(self, groups: Floats, sure: int) -> ChangedNumber:
        strata = self.sample.strata
        theta = groups.sum() / strata.share + sure
        copies = (groups.sum() - groups) * strata.groups / ((strata.groups - 1) * strata.share) + sure
        behind = Evidence(strata.share, strata.groups, np.ones(strata.groups), self.confidence)
        found = behind.interval([theta], copies[:, None], int(np.count_nonzero(groups)))
        return ChangedNumber((float(theta), float(found.low[0]), float(found.high[0])), float(groups.sum()) + sure)


def _carrying(plan: Plan, scan: Scan, rows: Plan, extra: tuple[Column, ...]) -> Plan:
    if plan == scan:
        return rows
    changed = plan.map_children(lambda child: _carrying(child, scan, rows, extra))
    if not isinstance(changed, Project):
        return changed
    there = {output.name for output in changed.outputs}
    return replace(changed, outputs=(*changed.outputs, *passed(column for column in extra if column.name not in there)))


def _opened(sides: Sides, evolving: list[int], stale: NDArray[np.bool_]) -> Sides:
    """No bounds for the values of stale rows."""
    mask = pa.array(stale)
    low, high = list(sides.low), list(sides.high)
    for place in evolving:
        nothing = pa.scalar(None, sides.value[place].type)
        low[place] = high[place] = pc.if_else(mask, nothing, sides.value[place])
    hard = (tuple(low), tuple(high))
    return replace(sides, low=hard[0], high=hard[1], hard_low=hard[0], hard_high=hard[1])
