"""Ranges over rows that are there and rows that are missing, while those that are there are still being read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import nearly

TEXT = "select grp, sum(price) as total, count(*) as n, max(x) as most from events where x > 5 group by grp order by grp"


@pytest.fixture
def lossy(db: nearly.Session) -> Iterator[nearly.Session]:
    """Up to 900 rows of group 2 are missing, and some of unknown group; their prices are known within limits."""
    known = nearly.Constraint("grp = 2", price=(0, 50), x=(0, 80), rows=(100, 900))
    rest = nearly.Constraint("grp <> 2", price=(-1, 10), x=(0, 200), rows=(0, 40))
    db.missing("events", [known, rest])
    yield db
    db.missing("events", None)


def test_certain_bounds_of_early_ranges_hold_the_last_range(lossy: nearly.Session) -> None:
    ranges = list(lossy.sql(TEXT).ranges())
    last = ranges[-1]
    exact = lossy.sql(TEXT).range()
    assert len(ranges) > 1
    assert last.hard_low.equals(exact.hard_low)
    assert last.hard_high.equals(exact.hard_high)
    by_group = {row["grp"]: place for place, row in enumerate(last.table.to_pylist())}
    bounded = 0
    for early in ranges[:-1]:
        for row, group in enumerate(early.table["grp"].to_pylist()):
            for name in ("total", "n", "most"):
                ends = [side[name][by_group[group]].as_py() for side in (last.hard_low, last.hard_high)]
                low, high = early.hard_low[name][row].as_py(), early.hard_high[name][row].as_py()
                assert low is None or low <= ends[0]
                assert high is None or high >= ends[1]
                bounded += low is not None and high is not None
    assert bounded
