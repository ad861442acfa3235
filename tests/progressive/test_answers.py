"""After each batch the answer is the query over the rows read so far, scaled; at the end it is the exact one."""

from __future__ import annotations

import statistics
import threading
import time
from math import isfinite

import pytest

import nearly
import nearly.progressive.course as progressive_course
import nearly.rewrite.stream.unit_policy as stream_rewrite
from benchmarks.agreement import difference
from nearly.engine.stream.task import Pace
from nearly.progressive import evaluation
from nearly.progressive.run import Request, Run
from tests.fixtures.long import first_quick
from tests.processes import HUNG
from tests.progressive.recomputation import BATCHES, early, recomputed, run

FLAT = (
    "select grp, count(*) as n, sum(price) as total, avg(x) as mean, min(x) as least "
    "from events where x > 5 group by grp order by grp"
)
FLAT_SCALED = (
    "select grp, count(*) * {w} as n, sum(price)::double * {w} as total, avg(x) as mean, min(x) as least "
    "from events where x > 5 group by grp order by grp"
)
NESTED = "select avg(price) as p, count(*) as n from events where x > (select avg(x) from events)"
NESTED_SCALED = "select avg(price::double) as p, count(*) * {w} as n from events where x > (select avg(x) from events)"
BY_KEY = (
    "select sum(e.price) as total, count(*) as n from events e "
    "join (select grp as g, avg(x) as mean from events group by grp) m on e.grp = m.g where e.x < 0.5 * m.mean"
)
BY_KEY_SCALED = BY_KEY.replace("sum(e.price)", "sum(e.price)::double * {w}").replace("count(*)", "count(*) * {w}")


@pytest.mark.parametrize(("text", "scaled"), [(FLAT, FLAT_SCALED), (NESTED, NESTED_SCALED), (BY_KEY, BY_KEY_SCALED)])
@pytest.mark.parametrize("seed", first_quick([0, 1], 1))
def test_law_answer_is_the_query_on_the_rows_read_scaled(db: nearly.Session, text: str, scaled: str, seed: int) -> None:
    answers = early(run(db, text, seed=seed))
    assert len(answers) >= len(BATCHES)
    for answer, (connection, weight) in zip(answers, recomputed(db, text, seed), strict=False):
        wanted = connection.sql(scaled.format(w=weight)).fetchall()
        assert answer.table.num_rows == len(wanted)
        for place in range(answer.table.num_columns):
            found = [float(value) for value in answer.table.column(place).to_pylist()]
            assert found == pytest.approx([float(row[place]) for row in wanted], rel=1e-6, abs=0.51)


@pytest.mark.parametrize("text", [NESTED, BY_KEY])
def test_law_decisions_do_not_change_answers(db: nearly.Session, text: str) -> None:
    """Variation ranges that are far too narrow break and are recovered from; the answers are those of wide ones."""
    careful, careless = list(run(db, text).answers()), list(run(db, text, slack=-3.0).answers())
    assert careful[-1].stats["recoveries"] == 0
    assert careless[-1].stats["recoveries"] > 0
    assert careless[-1].table == careful[-1].table == db.sql(text).exact().table
    by_units = {answer.stats["units"]: answer.table for answer in careful}
    for answer in careless:
        if answer.stats["units"] in by_units:
            assert answer.table == by_units[answer.stats["units"]]


def test_most_rows_are_decided(db: nearly.Session) -> None:
    last = list(run(db, NESTED).answers())[-1]
    assert last.stats["kept"] < 0.5 * last.stats["rows_read"]


def test_bounds_have_the_shape_of_the_answer_and_close_at_the_end(db: nearly.Session) -> None:
    answers = list(db.sql(FLAT))
    for answer in answers:
        assert {table.schema for table in (answer.table, answer.low, answer.high)} == {answers[-1].table.schema}
    assert answers[-1].exact
    assert answers[-1].progress == 1.0
    assert answers[-1].low == answers[-1].table == answers[-1].high
    assert answers[-1].error == 0.0
    assert not answers[0].exact
    assert 0 < answers[0].progress < 1


def test_keys_are_certain_and_totals_bracketed(db: nearly.Session) -> None:
    first = next(iter(db.sql(FLAT)))
    assert first.low["grp"] == first.table["grp"] == first.high["grp"]
    for low, value, high in zip(first.low["n"], first.table["n"], first.high["n"], strict=True):
        assert low.as_py() <= value.as_py() <= high.as_py()


def test_unseen_keys_are_announced(db: nearly.Session) -> None:
    text = "select rare, count(*) as n from events group by rare"
    first = early(run(db, text))[0]
    seen = first.table.num_rows
    exact = db.sql(text).exact().table.num_rows
    assert seen < exact
    assert 0.3 * (exact - seen) < first.stats["unseen_groups"] < 3 * (exact - seen)


def test_distinct_values_are_extrapolated(db: nearly.Session) -> None:
    text = "select count(distinct rare) as d from events"
    exact = db.sql(text).exact().table["d"][0].as_py()
    for answer in early(run(db, text)):
        assert answer.table["d"][0].as_py() == pytest.approx(exact, rel=0.35)


def test_clustered_groups_are_exact_from_the_start(db: nearly.Session) -> None:
    text = "select id, sum(price) as total from events group by id order by total desc limit 5"
    table = db.sql("select id, sum(price) from events group by id").exact().table
    exact = dict(zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True))
    for answer in early(run(db, text)):
        for key, total in zip(*(column.to_pylist() for column in answer.table.columns), strict=True):
            assert exact[key] == total


def test_run_stops_at_the_error_asked_for(db: nearly.Session) -> None:
    """By the interval it returns: its farther end is as far from the value as the error says, and it holds the exact value."""
    text = "select sum(price) as total from events"
    exact = db.sql(text).exact().table["total"][0].as_py()
    for seed in range(3):
        answer = db.sql(text, seed=seed).run(error=0.2)
        low, value, high = (side["total"][0].as_py() for side in (answer.low, answer.table, answer.high))
        assert not answer.exact
        assert answer.error <= 0.2
        assert float(max(high - value, value - low) / value) == pytest.approx(answer.error, rel=1e-3)
        assert low <= exact <= high
    assert db.sql(f"{text} within 20% confidence 90%").run().confidence == 0.9
    assert db.unfinished == ()


def test_law_an_interval_to_stop_by_is_wider_than_one_at_a_fixed_time(db: nearly.Session) -> None:
    """Who looks until an interval is short enough needs one that holds at all looks: the one that is returned."""
    text = "select sum(price) as total, avg(x) as mean from events"
    fixed, stopping = run(db, text), run(db, text)
    stopping.goal = 1e-9
    pairs = [pair for pair in zip(early(fixed), early(stopping), strict=True) if isfinite(pair[1].error)]
    assert len(pairs) > 1, "several answers have intervals"
    for once, lasting in pairs:
        assert once.table == lasting.table
        assert once.error < lasting.error
        for name in once.table.column_names:
            ends = [side[name][0].as_py() for side in (lasting.low, once.low, once.high, lasting.high)]
            assert ends == sorted(ends)
            assert len({*ends}) == 4


def test_run_without_goal_is_exact(db: nearly.Session) -> None:
    assert db.sql(NESTED).run().table == db.sql(NESTED).exact().table


def test_run_for_some_seconds_gives_at_least_one_answer(db: nearly.Session) -> None:
    answer = db.sql(FLAT).run(seconds=0.001)
    assert answer.table.num_rows == 5


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_deadline_after_the_end_of_time_never_passes(db: nearly.Session) -> None:
    assert db.sql(FLAT).run(seconds=1e300).exact


def test_stop_ends_the_iteration_and_keeps_the_last_answer(db: nearly.Session) -> None:
    query = db.sql(FLAT)
    answers = iter(query)
    first = next(answers)
    query.stop()
    assert list(answers) == []
    assert query.last is first
    assert db.unfinished == ()


def test_pause_waits_and_resume_goes_on(db: nearly.Session) -> None:
    query = db.sql(FLAT)
    answers = iter(query)
    next(answers)
    query.pause()
    threading.Timer(0.5, query.resume).start()
    assert difference(db.sql(FLAT).exact().table, list(answers)[-1].table, FLAT) is None


def test_a_broken_off_iteration_frees_everything(db: nearly.Session) -> None:
    for _answer in db.sql(FLAT):
        break
    deadline = time.monotonic() + HUNG
    while db.unfinished and time.monotonic() < deadline:
        time.sleep(0.05)
    assert db.unfinished == ()


def test_many_queries_at_once(db: nearly.Session) -> None:
    wanted = db.sql(FLAT).exact().table
    found = []

    def ask() -> None:
        found.append(list(db.sql(FLAT))[-1].table)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [difference(wanted, table, FLAT) for table in found] == [None] * 6


def test_streamed_table_can_be_chosen(db: nearly.Session) -> None:
    assert not next(iter(db.sql(FLAT, stream=["events"]))).exact
    with pytest.raises(nearly.UnknownName, match="evnts"):
        list(db.sql(FLAT, stream=["evnts"]))


@pytest.mark.parametrize(
    ("arguments", "message"), [({"error": 0}, "error=0"), ({"seconds": -1}, "seconds=-1"), ({"error": float("nan")}, "error=nan")]
)
def test_bad_goals_are_refused(db: nearly.Session, arguments: dict[str, float], message: str) -> None:
    with pytest.raises(nearly.SchemaError, match=message):
        db.sql(FLAT).run(**arguments)


def test_nothing_to_sample_is_exact_at_once(db: nearly.Session) -> None:
    assert [answer.exact for answer in db.sql("select 1 as one")] == [True]
    answers = list(db.sql("select count(*) as n, sum(x) as s from events where x < -1"))
    assert answers[-1].table.to_pylist() == [{"n": 0, "s": None}]
    assert all(answer.table["n"][0].as_py() == 0 for answer in answers)


def test_resume_of_an_unknown_query_is_refused(db: nearly.Session) -> None:
    with pytest.raises(nearly.UnknownName, match="nonsense"):
        db.resume("nonsense")


def test_hard_bounds_never_fail_and_close(db: nearly.Session) -> None:
    text = (
        "select grp, count(*) as n, sum(id) as ids, min(price) as least, max(price) as most, avg(price) as mean, "
        "sum(price * 2) as twice "
        "from events where id >= 1000 group by grp order by grp"
    )
    exact = db.sql(text).exact().table
    answers = list(run(db, text).answers())
    assert len(answers) > 3
    for answer in answers:
        for name in exact.column_names:
            ends = zip(answer.hard_low[name].to_pylist(), exact[name].to_pylist(), answer.hard_high[name].to_pylist(), strict=True)
            for low, value, high in ends:
                assert low is not None
                assert high is not None
                assert low <= value <= high
    assert answers[-1].hard_low == answers[-1].hard_high == answers[-1].table


@pytest.mark.parametrize(
    "measure", ["stddev(x)", "var_pop(price)", "corr(x, id)", "covar_samp(x, price)", "median(x)", "percentile(price, 0.9)"]
)
def test_statistics_are_estimated_and_then_exact(db: nearly.Session, measure: str) -> None:
    text = f"select grp, {measure} as v from events group by grp order by grp"
    exact = db.sql(text).exact().table
    answers = list(run(db, text).answers())
    assert difference(exact, answers[-1].table, text) is None
    assert len(answers) > 3
    for answer in answers[1:]:
        assert answer.table["v"].to_pylist() == pytest.approx(exact["v"].to_pylist(), rel=0.2, abs=0.1)


@pytest.mark.parametrize("text", [
    "select count(*) as n from events where id = 3",
    "select count(distinct rare) as n from events where id > 131100",
    "select grp, sum(x) as n from events where id = 3 group by grp",
    "select median(x) as n from events where id = 3",
])  # fmt: skip
def test_answers_of_nothing_yet_are_not_shown(db: nearly.Session, text: str) -> None:
    """No row read so far passes the filter; that makes neither zero nor an empty answer certain, and is not worth showing."""
    for seed in range(3):
        for answer in db.sql(text, seed=seed):
            assert answer.exact or answer.table.num_rows
            assert answer.exact or any(value for value in answer.table["n"].to_pylist())


@pytest.mark.parametrize("text", first_quick([BY_KEY, NESTED, FLAT], 1))
def test_first_answers_from_memory_are_those_from_files(db: nearly.Session, text: str) -> None:
    """The first run counts once however often its job ends; from the second on the rows are in memory."""
    seed = 4321 + len(text)
    samples, kept, runs = db._engine.native.samples, [], []
    for _ in range(4):
        runs.append(list(run(db, text, seed=seed, sizes=(6,)).answers()))
        samples.settle()
        kept.append(len(samples._kept))
    assert kept[0] < kept[1] == kept[2] == kept[3]
    assert all(answers[-1].table == runs[0][-1].table for answers in runs)
    for answers in runs[1:]:
        for place in range(answers[0].table.num_columns):
            values = [[float(value) for value in each[0].table.column(place).to_pylist()] for each in (answers, runs[0])]
            assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_an_exact_answer_that_is_near_follows_the_first_one(db: nearly.Session) -> None:
    answers = list(db.sql(FLAT))
    assert [answer.exact for answer in answers] == [False, True]
    assert answers[-1].stats["units"] == answers[-1].stats["of_units"]
    patient = Run(db._engine, db._engine.prepare(FLAT), Request(pace=Pace(patience=0.0)))
    by_units = list(patient.answers())
    assert difference(answers[-1].table, by_units[-1].table, FLAT) is None


def test_a_query_with_too_much_to_merge_ends_with_an_exact_run(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "select rare, name, count(*) as n from events group by rare, name order by n desc, rare, name limit 7"
    monkeypatch.setattr(progressive_course, "STATE_ROWS", 20_000)
    answers = list(run(db, text, sizes=(2, 2, 2)).answers())
    assert [answer.exact for answer in answers][-2:] == [False, True]
    assert answers[-1].table == db.sql(text).exact().table


QUANTILES = [
    "select median(x) as m from events",
    "select median(x) as m, percentile(x, 0.9) as p, count(*) as n, sum(price) as s from events where grp < 3",
    "select grp, percentile(x, 0.25) as q, avg(x) as a, count(*) as c from events group by grp order by grp",
    "select grp, median(x) filter (where name <> 'größe 1') as m from events group by grp order by grp",
    "select median(x) as m, median(price) as other from events",
    "select median(x) as m, count(*) as n from events where x < -1000",
]


@pytest.mark.parametrize("text", QUANTILES)
def test_quantiles_of_many_rows_come_from_few(db: nearly.Session, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the table were too large for its rows to come to the driver."""
    monkeypatch.setattr(stream_rewrite, "GATHERED_ROWS", 1_000)
    monkeypatch.setattr(stream_rewrite, "THINNED_GROUPS", stream_rewrite.THINNED_ROWS)
    answers = list(run(db, text, sizes=(8, 8)).answers())
    exact = db.sql(text).exact().table
    assert difference(exact, answers[-1].table, text) is None
    if "other" in text:  # two values are not thinned together
        assert len(answers) == 1
        return
    first = answers[0]
    assert first.stats["state_rows"] < 0.2 * first.stats["rows_read"]
    for name in exact.column_names:
        for value, true in zip(first.table[name].to_pylist(), exact[name].to_pylist(), strict=True):
            assert value == true == None or float(value) == pytest.approx(float(true), rel=0.3)  # noqa: E711


@pytest.mark.parametrize(("seeds", "least"), [(5, 4), pytest.param(20, 16, marks=pytest.mark.long)])
def test_intervals_of_thinned_quantiles_cover(db: nearly.Session, seeds: int, least: int) -> None:
    text = "select median(x) as m from events"
    true = db.sql(text).exact().table["m"][0].as_py()
    firsts = [early(run(db, text, seed=seed, sizes=(10, 64)))[0] for seed in range(seeds)]
    covered = sum(answer.low["m"][0].as_py() <= true <= answer.high["m"][0].as_py() for answer in firsts)
    assert covered >= least
    assert statistics.median(answer.error for answer in firsts) < 0.3


DISTINCT = [
    "select count(distinct rare) as n from events",
    "select count(distinct rare) as n, sum(price) as s from events where x > 20",
    "select count(*) as n from (select rare, name from events group by rare, name)",
    "select count(distinct cast(x as int)) as n from events",
]


@pytest.mark.parametrize("text", first_quick(DISTINCT, 1))
def test_intervals_of_distinct_counts_cover_and_are_narrow(db: nearly.Session, text: str) -> None:
    true = db.sql(text).exact().table["n"][0].as_py()
    firsts = [early(run(db, text, seed=seed, sizes=(10, 64)))[0] for seed in range(12)]
    covered = sum(answer.low["n"][0].as_py() <= true <= answer.high["n"][0].as_py() for answer in firsts)
    assert covered >= 10
    widths = [(answer.high["n"][0].as_py() - answer.low["n"][0].as_py()) / true for answer in firsts]
    assert statistics.median(widths) < 0.4


def test_grouped_distinct_counts_still_come(db: nearly.Session) -> None:
    text = "select grp, count(distinct rare) as n from events group by grp order by grp"
    answers = list(run(db, text).answers())
    assert len(answers) > 1
    assert answers[-1].table == db.sql(text).exact().table


def test_law_bounds_of_few_groups_are_those_among_all(db: nearly.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicates only of the groups that a limit leaves give the same intervals as replicates of all groups."""
    text = "select rare, sum(x) as s, count(*) as n from events group by rare having count(*) > 3 order by n desc, rare limit 6"
    narrowed = early(run(db, text))
    monkeypatch.setattr(evaluation, "MANY_TIMES", 10**9)
    whole = early(run(db, text))
    assert len(narrowed) == len(whole)
    given = 0
    for one, other in zip(narrowed, whole, strict=True):
        assert one.stats["state_rows"] > 20 * one.table.num_rows
        ends = [
            [end for table in (answer.low, answer.high) for name in ("s", "n") for end in table[name].to_pylist()]
            for answer in (one, other)
        ]
        assert [end is None for end in ends[0]] == [end is None for end in ends[1]]
        known = [[end for end in each if end is not None] for each in ends]
        assert known[0] == pytest.approx(known[1], rel=1e-9)
        given += len(known[0])
    assert given > 24, "several answers have intervals"
