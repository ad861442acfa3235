"""Cube sessions: users who look at one table from several sides, in the four ways of CubeLoad, over generated census-like data.

A session begins with a grouping and changes it five to ten times: it slices, drills down, rolls up, or looks at all attributes of a
dimension.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

SEED = 23
ROWS = 1_500_000
"""At scale 1."""
LEVELS = {
    "place": ("region", "state", "city"),
    "work": ("sector", "occupation"),
    "person": ("sex", "age_group", "education"),
    "time": ("decade", "year"),
}
SIZES = {"city": 400, "occupation": 120, "year": 40}
SLICES = 3
"""Values that sessions slice by, of each attribute."""


def tables(scale: float) -> Iterator[tuple[str, pa.Table]]:
    """One table: people, with attributes that hang together, and what they earn."""
    random = np.random.default_rng(SEED)
    rows = max(1000, int(ROWS * scale))
    city = (SIZES["city"] * random.random(rows) ** 1.8).astype(np.int64)
    occupation = (SIZES["occupation"] * random.random(rows) ** 1.5).astype(np.int64)
    year = random.integers(0, SIZES["year"], rows)
    yield "people", pa.table({
        "region": city // 80, "state": city // 8, "city": city, "sector": occupation // 15, "occupation": occupation,
        "sex": random.integers(0, 2, rows), "age_group": random.integers(0, 9, rows), "education": random.integers(0, 6, rows),
        "decade": year // 10, "year": year, "income": (random.lognormal(10, 0.6, rows)).astype(np.int64),
        "hours": random.integers(0, 80, rows),
    })  # fmt: skip


def session(random: np.random.Generator) -> list[str]:
    """The queries of one session."""
    dimension, other = random.choice(list(LEVELS), 2, replace=False)
    level, tests = 0, dict[str, int]()
    keys = [LEVELS[dimension][0]]
    found = [_query(keys, tests)]
    template = int(random.integers(4))
    for _ in range(int(random.integers(4, 10))):
        match template:
            case 0:
                tests = {LEVELS[other][0]: int(random.integers(SLICES))}
            case 1:
                level = min(level + 1, len(LEVELS[dimension]) - 1)
                keys = [*keys[:-1], LEVELS[dimension][level]]
            case 2:
                keys = [LEVELS[dimension][level]] if len(keys) > 1 else [*keys, LEVELS[other][0]]
            case _:
                keys = [str(random.choice(LEVELS[other]))]
        found.append(_query(keys, tests))
        template = template if random.random() < 0.6 else int(random.integers(4))
    return found


def queries() -> list[str]:
    """The different queries of some sessions."""
    random = np.random.default_rng(SEED)
    found: dict[str, None] = {}
    while len(found) < 60:
        found |= dict.fromkeys(session(random))
    return list(found)


def _query(keys: list[str], tests: dict[str, int]) -> str:
    named = list(dict.fromkeys(keys))
    shown, where = ", ".join(named), " and ".join(f"{name} = {value}" for name, value in sorted(tests.items()))
    return (
        f"select {shown}, count(*) as n, sum(income) as income, avg(hours) as hours from people"
        f"{f' where {where}' if where else ''} group by {shown} order by {shown}"
    )
