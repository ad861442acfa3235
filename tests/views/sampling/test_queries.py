"""Questions to stale views through the public interface: estimates near the truth, exact in the end, and then the view is fresh."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearly
from nearly.errors import SchemaError, Unsupported
from nearly.views.sampling.cleaning import tickets_of
from tests.fixtures.driver_only import driver_only

VIDEOS, VISITS = 4_000, 40_000
VISIT_VIEW = """select v.video, v.owner, v.duration, count(*) as visits, sum(l.bytes) as bytes
                from log l join video v on l.video = v.video group by v.video, v.owner, v.duration"""


def log_rows(first: int, count: int, seed: int) -> pa.Table:
    make = np.random.default_rng(seed)
    return pa.table({
        "session": pa.array(np.arange(first, first + count), pa.int64()),
        "video": pa.array((make.random(count) ** 1.5 * VIDEOS).astype(int), pa.int64()),
        "bytes": pa.array(make.lognormal(5, 1, count).round(2)),
    })  # fmt: skip


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nearly.Session]:
    """For questions that leave the view stale."""
    with opened(tmp_path_factory.mktemp("stale")) as session:
        yield session


@pytest.fixture
def own(tmp_path: Path) -> Iterator[nearly.Session]:
    """For questions after which it is fresh."""
    with opened(tmp_path) as session:
        yield session


@contextmanager
def opened(tmp_path: Path) -> Iterator[nearly.Session]:
    """Visits of videos, a view of them, and visits that came and went since."""
    make = np.random.default_rng(0)
    video = pa.table({
        "video": pa.array(range(VIDEOS), pa.int64()),
        "owner": pa.array(make.integers(0, 40, VIDEOS), pa.int64()),
        "duration": pa.array(make.gamma(2, 0.5, VIDEOS).round(3)),
    })  # fmt: skip
    pq.write_table(video, tmp_path / "video.parquet")
    pq.write_table(log_rows(0, VISITS, 1), tmp_path / "log.parquet")
    with driver_only(tmp_path / "catalog") as session:
        session.register("video", str(tmp_path / "video.parquet"), key=["video"])
        session.register("log", str(tmp_path / "log.parquet"), key=["session"])
        session.create_view("visits", VISIT_VIEW, sample=0.2)
        session.insert("log", log_rows(VISITS, VISITS // 10, 2))
        session.delete("log", where="session % 37 = 0")
        yield session


def fresh(db: nearly.Session, text: str) -> list[dict[str, Any]]:
    """What the query gives over the tables themselves."""
    return list(db.sql(text.replace("from visits", f"from ({VISIT_VIEW}) visits")).exact().table.to_pylist())


TOTALS = [
    "select count(*) as n, sum(visits) as s from visits",
    "select sum(bytes) as b, avg(visits) as a from visits where owner < 20",
    "select count(*) as n from visits where visits > 12",
    "select stddev(visits) as d, median(bytes) as m from visits",
]


@pytest.mark.parametrize("text", TOTALS)
@pytest.mark.parametrize("method", ["auto", "corr", "aqp"])
def test_estimates_are_near(db: nearly.Session, text: str, method: str) -> None:
    (truth,) = fresh(db, text)
    answer = db.view("visits").query(text, method=method)
    assert not answer.exact
    assert answer.progress == 0.2
    assert answer.complete
    assert answer.source.startswith("view visits")
    (value,), (low,), (high,) = (table.to_pylist() for table in (answer.table, answer.low, answer.high))
    for name, exact in truth.items():
        assert float(value[name]) == pytest.approx(float(exact), rel=0.15)
        assert low[name] <= value[name] <= high[name]
    assert answer.error < 1


def test_correction_is_nearer_than_what_is_stale(db: nearly.Session) -> None:
    text = "select sum(visits) as s from visits"
    (truth,) = fresh(db, text)
    view = db.view("visits")
    stale, found = (view.query(text, method=each).table.to_pylist()[0]["s"] for each in ("stale", "corr"))
    assert abs(found - truth["s"]) < abs(stale - truth["s"]) / 2


def test_groups_having_and_order(db: nearly.Session) -> None:
    text = """select owner, sum(visits) as s, sum(bytes) / sum(visits) as each from visits
              group by owner having sum(visits) > 500 order by s desc"""
    truth = {row["owner"]: row for row in fresh(db, text)}
    answer = db.view("visits").query(text)
    rows = answer.table.to_pylist()
    assert len({row["owner"] for row in rows} ^ truth.keys()) <= len(truth) // 4
    assert rows == sorted(rows, key=lambda row: -row["s"])
    assert not answer.complete
    assert answer.tentative is not None
    inside = sum(
        low["s"] <= truth[row["owner"]]["s"] <= high["s"]
        for row, low, high in zip(rows, answer.low.to_pylist(), answer.high.to_pylist(), strict=True)
        if row["owner"] in truth and low["s"] is not None
    )
    assert inside >= 0.8 * len(truth)


def test_joins_with_other_tables(db: nearly.Session) -> None:
    text = """select count(*) as n, sum(visits * d.duration) as w from visits
              join video d on visits.video = d.video where d.duration > 1"""
    (truth,) = db.sql(text.replace("from visits", f"from ({VISIT_VIEW}) visits")).exact().table.to_pylist()
    (found,) = db.view("visits").query(text).table.to_pylist()
    assert found["w"] == pytest.approx(truth["w"], rel=0.1)


def test_whole_sample_is_exact(own: nearly.Session) -> None:
    for text in TOTALS:
        (truth,) = fresh(own, text)
        (found,) = own.view("visits").query(text, method="corr", sample=1.0).table.to_pylist()
        for name, exact in truth.items():
            assert float(found[name]) == pytest.approx(float(exact), rel=1e-9)


def test_exact_answer_is_that_of_the_tables(own: nearly.Session) -> None:
    text = "select owner, count(*) as n, sum(visits) as s from visits group by owner order by owner"
    expected = fresh(own, text)
    answer = own.view("visits").query(text, method="exact")
    assert answer.exact
    assert answer.table.to_pylist() == expected
    assert not own.view("visits").stale


def test_iterating_ends_with_a_fresh_view(own: nearly.Session) -> None:
    text = "select sum(visits) as s from visits where owner = 3"
    (truth,) = fresh(own, text)
    view = own.view("visits")
    answers = list(view.query(text))
    assert [each.exact for each in answers] == [False] * (len(answers) - 1) + [True]
    assert len(answers) >= 2
    assert [each.progress for each in answers] == sorted(each.progress for each in answers)
    assert answers[-1].table.to_pylist() == [truth]
    assert not view.stale
    assert view.history[0].reason == "cleaned by a query"
    assert view.query(text).exact
    stored = own.sql("select video, visits from visits order by video").exact().table
    assert stored.to_pylist() == fresh(own, "select video, visits from visits order by video")


def test_distinct_counts_and_extremes(db: nearly.Session) -> None:
    text = "select count(distinct owner) as owners, max(visits) as most, min(duration) as least from visits"
    (truth,) = fresh(db, text)
    answer = db.view("visits").query(text)
    (found,), (low,), (high,) = (table.to_pylist() for table in (answer.table, answer.low, answer.high))
    assert abs(found["owners"] - truth["owners"]) <= 4
    assert low["most"] <= truth["most"]
    assert high["most"] is None
    assert high["least"] >= truth["least"]
    assert all(0 <= each <= 1 for values in answer.stats["exceeding"].values() for each in values)


def test_selections_tell_what_changed(db: nearly.Session) -> None:
    text = "select video, visits from visits where owner = 7"
    truth = {row["video"]: row["visits"] for row in fresh(db, text)}
    stale = {row["video"]: row["visits"] for row in db.sql(text).exact().table.to_pylist()}
    answer = db.view("visits").query(text)
    found = {row["video"]: row["visits"] for row in answer.table.to_pylist()}
    wrong = [sum(rows.get(key) != value for key, value in truth.items()) for rows in (stale, found)]
    assert wrong[1] < wrong[0]
    updated, _, _ = answer.stats["changes"]["updated"]
    really = sum(key in stale and stale[key] != value for key, value in truth.items())
    assert updated == pytest.approx(really, rel=0.7, abs=20)
    assert not answer.complete


def test_what_has_no_estimate_is_answered_exactly(own: nearly.Session) -> None:
    text = "select max(s) as m from (select owner, sum(visits) as s from visits group by owner)"
    (truth,) = fresh(own, text)
    with pytest.raises(Unsupported, match="GroupBy"):
        own.view("visits").query(text, method="corr")
    answer = own.view("visits").query(text)
    assert answer.exact
    assert answer.table.to_pylist() == [truth]


def test_a_handful_of_changes_is_cleaned_whole(own: nearly.Session) -> None:
    """A sample of them tells nothing, and all of them cost no more; whoever names a share gets it."""
    text = "select owner, sum(bytes) as b, count(*) as n from visits group by owner order by owner"
    view = own.view("visits").refresh()
    own.insert("log", log_rows(20 * VISITS, 30, 5))
    assert not view.query(text, sample=0.2).exact
    assert not view.query(text, method="corr").exact
    expected = fresh(own, text)
    answer = view.query(text)
    assert answer.exact
    for row, truth in zip(answer.table.to_pylist(), expected, strict=True):
        assert row == truth | {"b": pytest.approx(truth["b"])}
    assert not view.stale


def test_more_is_cleaned_of_few_changes(own: nearly.Session) -> None:
    view = own.view("visits").refresh()
    own.insert("log", log_rows(20 * VISITS, 350, 5))
    answer = view.query("select sum(bytes) as b from visits")
    assert not answer.exact
    assert 0.3 < answer.progress < 0.8


def test_bad_input(db: nearly.Session) -> None:
    view = db.view("visits")
    with pytest.raises(SchemaError, match="method='best' must be one of"):
        view.query("select count(*) from visits", method="best")
    with pytest.raises(SchemaError, match="sample=2 must lie above 0"):
        view.query("select count(*) from visits", sample=2)
    with pytest.raises(SchemaError, match=r"sample='0\.1' must lie above 0"):
        view.query("select count(*) from visits", sample="0.1")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="sample=-1 must lie above 0"):
        view.clean(-1)
    with pytest.raises(SchemaError, match="an outlier index of 'many' records is none"):
        view.index_outliers("log", "bytes", "many")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="deviations=nan"):
        view.index_outliers("log", "bytes", deviations=float("nan"))
    with pytest.raises(SchemaError, match="confidence=1"):
        view.query("select count(*) from visits", confidence=1)


def test_outliers_are_always_clean(own: nearly.Session) -> None:
    heavy = log_rows(10 * VISITS, 5, 9).set_column(2, "bytes", pa.array([5e6, 4e6, 6e6, 7e6, 8e6]))
    own.insert("log", heavy)
    text = "select sum(bytes) as b from visits"
    (truth,) = fresh(own, text)
    view = own.view("visits")
    before = view.query(text).table.to_pylist()[0]["b"]
    view.index_outliers("log", "bytes", outside=(None, 1e6))
    after = view.query(text).table.to_pylist()[0]["b"]
    assert abs(after - truth["b"]) < abs(before - truth["b"])
    assert after == pytest.approx(truth["b"], rel=0.01)


def test_laws_of_correspondence(db: nearly.Session) -> None:
    """Both samples are by the same tickets; superfluous rows are gone, missing ones drawn, and others keep their key."""
    stale = {row["video"] for row in db.sql("select video from visits").exact().table.to_pylist()}
    truth = {row["video"]: row["visits"] for row in fresh(db, "select video, visits from visits")}
    samples = db._views.samples
    sample = samples.clean("visits", 0.3)
    assert sample is not None
    held = samples._held["visits"]
    videos = pa.table({"video": pa.array(sorted(stale | truth.keys()), pa.int64())})
    drawn = tickets_of(db._engine, videos, held.view) < 0.3 * 2**30 if held.view.ticket_columns == ("video",) else None
    assert drawn is not None
    inside = {video for video, chosen in zip(videos["video"].to_pylist(), drawn, strict=True) if chosen}
    changed = set(sample.changed["video"].to_pylist())
    clean = {row["video"]: row["visits"] for row in sample.new.table.to_pylist()}
    assert changed <= inside
    assert changed - clean.keys() == (stale & inside) - truth.keys()
    assert clean.keys() - stale == (truth.keys() - stale) & inside
    assert all(truth[video] == visits for video, visits in clean.items())
    kept = (stale & inside) - changed
    assert kept <= truth.keys()
    assert 0.25 < len(inside) / len(videos) < 0.35


def test_an_extreme_inside_an_expression_has_no_interval(db: nearly.Session) -> None:
    """How far the greatest value is off nobody knows, so that replicates of a ratio only tell of its other part."""
    answer = db.view("visits").query("select max(bytes) / avg(bytes) as x, avg(bytes) as a from visits")
    (low,), (high,) = answer.low.to_pylist(), answer.high.to_pylist()
    assert low["x"] is None or high["x"] is None
    assert low["a"] < high["a"]
    assert answer.error == float("inf")


@pytest.mark.parametrize("sign", ["<", ">"])
def test_a_row_that_hangs_on_an_estimate_may_come_or_go(db: nearly.Session, sign: str) -> None:
    answer = db.view("visits").query(f"select sum(bytes) as b from visits having sum(bytes) {sign} 1000000")
    assert not answer.complete
    assert answer.error == float("inf")
    assert answer.unseen is not None
    assert answer.unseen.most == 1 - answer.table.num_rows
    assert answer.tentative is None or answer.tentative.to_pylist() == [True] * answer.table.num_rows


def test_rows_that_come_may_take_groups_away(own: nearly.Session, tmp_path: Path) -> None:
    """Where nothing was deleted groups stay, but not those of rows that must not meet what came."""
    pq.write_table(pa.table({"id": range(4_000), "g": [number // 20 for number in range(4_000)]}), tmp_path / "idle.parquet")
    pq.write_table(pa.table({"id": [-1]}), tmp_path / "used.parquet")
    own.register("item", str(tmp_path / "idle.parquet"), key=["id"])
    own.register("used", str(tmp_path / "used.parquet"), key=["id"])
    idle = own.create_view(
        "idle", "select id, g from item where not exists (select 1 from used where used.id = item.id)", key=["id"]
    )
    own.insert("used", pa.table({"id": list(range(20))}))
    answer = idle.query("select g, count(*) as n from idle group by g", sample=0.02)
    assert answer.table.num_rows == 200
    assert answer.tentative is not None
    assert not answer.complete
    (place,) = [place for place, g in enumerate(answer.table["g"].to_pylist()) if g == 0]
    assert answer.tentative[place].as_py()


def test_outliers_of_groups_without_a_number_are_clean(own: nearly.Session, tmp_path: Path) -> None:
    make = np.random.default_rng(0)
    keys = np.where(make.random(3_000) < 0.01, np.nan, make.integers(0, 300, 3_000).astype(float))
    pq.write_table(pa.table({"id": range(3_000), "x": keys, "v": make.integers(0, 9, 3_000)}), tmp_path / "odd.parquet")
    own.register("odd", str(tmp_path / "odd.parquet"), key=["id"])
    view = own.create_view("odds", "select x, sum(v) as t, count(*) as n from odd group by x", sample=0.1)
    view.index_outliers("odd", "v", 3)
    own.insert("odd", pa.table({"id": [3_000, 3_001], "x": [float("nan"), 5.0], "v": [1_000_000, 1_000_000]}))
    own.insert("odd", pa.table({"id": range(3_002, 3_302), "x": make.integers(0, 300, 300).astype(float), "v": [3] * 300}))
    view.index_outliers("odd", "v", outside=(None, 1_000))
    answer = view.query("select sum(t) as t from odds", method="corr", sample=0.1)
    truth = own.sql("select sum(v) as t from odd").exact().table["t"][0].as_py()
    assert abs(answer.table["t"][0].as_py() - truth) < 10_000


@pytest.mark.parametrize("end", ["having sum(visits) > 1000", "having avg(bytes) > 1510", "order by s desc limit 5"])
@pytest.mark.parametrize("method", ["auto", "corr"])
def test_groups_that_an_estimate_hides_may_come(db: nearly.Session, end: str, method: str) -> None:
    text = f"select owner, sum(visits) as s from visits group by owner {end}"
    truth = {row["owner"] for row in fresh(db, text)}
    answer = db.view("visits").query(text, method=method)
    assert answer.unseen is not None
    assert answer.unseen.most >= len(truth - set(answer.table["owner"].to_pylist()))
    assert answer.unseen.most >= 40 - answer.table.num_rows


def test_a_group_of_many_joined_rows_may_go_with_one_row_of_the_view(own: nearly.Session, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": range(2_000)}), tmp_path / "one.parquet")
    pq.write_table(pa.table({"id": np.arange(2_000).repeat(100)}), tmp_path / "many.parquet")
    own.register("one", str(tmp_path / "one.parquet"), key=["id"])
    own.register("many", str(tmp_path / "many.parquet"))
    view = own.create_view("ones", "select id from one", sample=0.1)
    own.delete("one", where="id in (3, 500, 1200)")
    answer = view.query("select ones.id, count(*) as n from ones join many on ones.id = many.id group by ones.id", sample=0.1)
    assert answer.tentative is not None
    going = dict(zip(answer.table["id"].to_pylist(), answer.tentative.to_pylist(), strict=True))
    assert all(going.get(gone, True) for gone in (3, 500, 1_200))


def test_an_expression_is_no_surer_than_its_parts(own: nearly.Session, tmp_path: Path) -> None:
    """A sum of which next to nothing was drawn, and a number of rows that is well known."""
    make = np.random.default_rng(4)
    given = {"id": range(4_000), "x": np.where(make.random(4_000) < 0.002, 1e6, 0.0)}
    pq.write_table(pa.table(given), tmp_path / "rare.parquet")
    own.register("rare", str(tmp_path / "rare.parquet"), key=["id"])
    view = own.create_view("rares", "select id, x from rare", sample=0.1)
    own.delete("rare", where="id % 3 = 0")
    answer = view.query("select sum(x) as s, sum(x) + count(*) as e, count(*) as n from rares", method="aqp", sample=0.1)
    (low,), (high,) = answer.low.to_pylist(), answer.high.to_pylist()
    assert low["s"] is None
    assert (low["e"], high["e"]) == (None, None)
    assert low["n"] < high["n"]


def test_tickets_are_not_drawn_for_few_values(own: nearly.Session, tmp_path: Path) -> None:
    """Ten values would save reading, and a tenth of them says nothing."""
    make = np.random.default_rng(0)
    pq.write_table(pa.table({"c": range(500), "region": make.integers(0, 300, 500)}), tmp_path / "customer.parquet")
    bought = {"id": range(9_000), "c": make.integers(0, 500, 9_000), "kind": make.integers(0, 10, 9_000)}
    pq.write_table(pa.table(bought), tmp_path / "bought.parquet")
    own.register("customer", str(tmp_path / "customer.parquet"), key=["c"])
    own.register("bought", str(tmp_path / "bought.parquet"), key=["id"])
    own.create_view(
        "kinds", "select kind, region, count(*) as n from bought b join customer c on b.c = c.c group by kind, region", sample=0.1
    )
    own.delete("bought", where="id % 9 = 0")
    own.view("kinds").clean(0.1)
    assert set(own._views.samples._held["kinds"].view.drawn_by) == {"kind", "region"}


def test_a_stale_answer_is_what_is_stored_and_sure_of_no_row(db: nearly.Session) -> None:
    text = "select video, visits from visits where owner = 7"
    answer = db.view("visits").query(text, method="stale")
    stored = db.sql(text).exact().table
    assert sorted(answer.table.to_pylist(), key=str) == sorted(stored.to_pylist(), key=str)
    assert (answer.source, answer.progress, answer.error, answer.unseen) == ("view visits (stale)", 0.0, float("inf"), None)
    groups = db.view("visits").query("select owner, sum(visits) as s from visits group by owner", method="stale")
    for each in (answer, groups):
        assert each.tentative is not None
        assert each.tentative.to_pylist() == [True] * each.table.num_rows


def test_the_error_of_a_selection_counts_what_was_not_drawn(own: nearly.Session) -> None:
    """Where no change was drawn, any number of rows may be wrong."""
    view = own.view("visits").refresh()
    own.insert("log", log_rows(20 * VISITS, 1, 5))
    for share in (0.01, 0.3):
        answer = view.query("select video, visits from visits", method="corr", sample=share)
        if answer.stats["changes"]["updated"][0] == 0:
            assert answer.error == float("inf")


def test_rows_of_a_selection_that_were_not_drawn_are_as_unsure_as_their_number(db: nearly.Session) -> None:
    """What is clean is known; how many others came is as far off as the number of all that came."""
    answer = db.view("visits").query("select video from visits where visits > 11", method="corr", sample=0.7)
    estimate, _, high = answer.stats["changes"]["added"]
    assert answer.unseen is not None
    assert answer.unseen.most - answer.unseen.estimate == pytest.approx(high - estimate)


def test_a_stale_answer_without_a_sample_gets_exact_in_the_end(own: nearly.Session) -> None:
    """Of a view that is computed anew each time no sample is cleaned; iterating refreshes it."""
    bag = own.create_view("bag", "select owner, visits from visits where visits > 15", policy="full")
    own.insert("log", log_rows(30 * VISITS, 4_000, 5))
    first, last = bag.query("select owner, count(*) as n from bag group by owner order by owner", method="stale")
    assert (first.exact, last.exact) == (False, True)
    assert first.tentative is not None
    assert first.tentative.to_pylist() == [True] * first.table.num_rows
    assert not bag.stale
