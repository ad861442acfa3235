"""E-S9 to E-S11: the cube of revenue by customer, nation, region and part, and thirteen roll-ups of it."""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.report import Record
from benchmarks.stale_views.data import Shop
from benchmarks.stale_views.measure import (
    METHODS,
    Asked,
    Errors,
    asked,
    cleaning_seconds,
    judged,
    largest_error,
    ratio,
    refreshing_seconds,
    samples,
)

VIEW = """select c_custkey, n_nationkey, r_regionkey, l_partkey, sum(l_extendedprice * (1 - l_discount)) as revenue
    from lineitem join orders on l_orderkey = o_orderkey join customer on o_custkey = c_custkey
    join nation on c_nationkey = n_nationkey join region on n_regionkey = r_regionkey
    group by c_custkey, n_nationkey, r_regionkey, l_partkey"""
C, N, R, P = "c_custkey", "n_nationkey", "r_regionkey", "l_partkey"
ROLL_UPS: tuple[tuple[str, ...], ...] = (
    (), (C,), (N,), (R,), (P,), (C, N), (C, R), (C, P), (N, R), (N, P), (C, N, R), (C, N, P), (N, R, P),
)  # fmt: skip
SHOWN = ((), (N,), (R,), (N, R))
"""Roll-ups of few groups: of those of many, most groups have no row in a sample."""
JUDGED, DRAWS = (N,), 20
"""The roll-up whose intervals are judged, in so many samples: the others of few groups are sums of its values."""

MOST_GROUPS = 300_000
"""Roll-ups of more groups are left out: answers are held until the view is refreshed and tells the truth."""


def _groups(shop: Shop, columns: tuple[str, ...]) -> int:
    """How many groups a roll-up has, about: those of the stale view."""
    listed = ", ".join(columns)
    return int(shop.exact(f"select count(*) as n from (select distinct {listed} from cube)")["n"][0].as_py()) if columns else 1


def text(columns: tuple[str, ...], function: str) -> str:
    if not columns:
        return f"select {function}(revenue) as r from cube"
    listed = ", ".join(columns)
    return f"select {listed}, {function}(revenue) as r from cube group by {listed}"


def _drawn_often(shop: Shop) -> list[Asked]:
    """Answers of several samples by themselves, by which intervals are judged; the view's own sample is the next."""
    view, question = shop.db.view("cube"), text(JUDGED, "sum")
    found = [asked(view, question, len(JUDGED), 0.1, ("auto",)) for _ in samples(shop.db, "cube", DRAWS)]
    shop.db._views.samples._held.clear()
    return found


def run(source: dict[str, Path], directory: Path, update: float) -> tuple[list[Record], Record]:
    shop = Shop.open(source, directory, 1.0, ("lineitem", "orders", "customer", "nation", "region"))
    rows: list[Record] = []
    try:
        shop.db.create_view("cube", VIEW, sample=0.1)
        shop.change(update)
        view = shop.db.view("cube")
        cleaning = cleaning_seconds(shop.db, "cube", 0.1)
        drawn_often = _drawn_often(shop)
        asked_for = [columns for columns in ROLL_UPS if _groups(shop, columns) <= MOST_GROUPS]
        questions = [(columns, "sum", METHODS) for columns in asked_for] + [(columns, "median", METHODS[:3]) for columns in SHOWN]
        answers = [asked(view, text(columns, function), len(columns), 0.1, methods) for columns, function, methods in questions]
        refreshing = refreshing_seconds(shop.db, "cube")
        rows += [{"what": "clean 10% of the cube", "seconds": cleaning}, {"what": "refresh the cube", "seconds": refreshing}]
        whole, largest = Errors(), []
        better: dict[str, list[float]] = {"stale": [], "aqp": []}
        for (columns, function, _), question in zip(questions, answers, strict=True):
            truth = shop.exact(question.text)
            found = judged(question, truth)
            label = f"{function} by {', '.join(columns) or 'nothing'}"
            record: dict[str, float | str | int | None] = {"what": label, "groups": truth.num_rows}
            record |= {f"{method} %": 100 * found.median(method) for method in question.answers}
            if function == "sum":
                record |= {"held %": found.held_percent, "withheld %": found.withheld_percent}
                most = {method: largest_error(question, truth, method) for method in ("stale", "auto")}
                record |= {"stale max %": 100 * most["stale"], "auto max %": 100 * most["auto"]}
                for other, ratios in better.items():
                    ratios.append(ratio(found.median(other), found.median("corr")))
                if columns in SHOWN:
                    largest.append(most["auto"])
            rows.append(record)
        by_judged = shop.exact(text(JUDGED, "sum"))
        for question in drawn_often:
            whole.add(judged(question, by_judged))
    finally:
        shop.close()
    summary = {
        "cube_speedup": ratio(refreshing, cleaning),
        "cube_max_error": max(largest),
        "cube_corr_vs_stale": statistics.median(better["stale"]),
        "cube_corr_vs_aqp": statistics.median(better["aqp"]),
        "cube_coverage": whole.held / max(whole.given, 1),
    }
    return rows, summary
