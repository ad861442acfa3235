"""Linear and integer programmes, solved by HiGHS through scipy.

scipy takes as long to import as all else together, and Spark's Python workers import this package without ever solving anything: so
it is loaded when it is first needed.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np

INFEASIBLE = 2
"""The status by which scipy tells that there is no solution."""
LEAST_SECONDS = 0.05


@cache
def _scipy(name: str) -> Any:
    return importlib.import_module(f"scipy.{name}")


def integer_minimum(cost: Any, rows: Any, floors: Any, ceilings: Any, least: Any, most: Any, seconds: float | None = None) -> Any:
    """Whole numbers x with the least `cost @ x` where `floors <= rows @ x <= ceilings` and `least <= x <= most`.

    scipy's result: `x` (None when nothing was found), `status`, and `mip_dual_bound`, which no solution falls below.
    """
    optimize = _scipy("optimize")
    constraints = [optimize.LinearConstraint(_scipy("sparse").csr_array(rows), floors, ceilings)] if len(floors) else []
    options: dict[str, float] = {"mip_rel_gap": 0.0}
    if seconds is not None:
        options["time_limit"] = max(seconds, LEAST_SECONDS)
    return optimize.milp(
        cost, constraints=constraints, bounds=optimize.Bounds(least, most), integrality=np.ones(len(cost)), options=options
    )


def linear_minimum(cost: Any, rows: Any, ceilings: Any, least: Any, most: Any) -> Any:
    """Numbers x with the least `cost @ x` where `rows @ x <= ceilings` and `least <= x <= most`; with the duals as marginals."""
    some = len(ceilings) > 0
    limits = np.column_stack([np.broadcast_to(least, len(cost)), np.broadcast_to(most, len(cost))])
    return _scipy("optimize").linprog(
        cost, A_ub=rows if some else None, b_ub=ceilings if some else None, bounds=limits, method="highs"
    )
