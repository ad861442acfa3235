"""Predictions of what will arrive, their scores, and when a query is refreshed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nearly.errors import SchemaError
from nearly.plan.time_between import seconds_of
from nearly.standing.arrivals import (
    Arrival,
    Called,
    Expected,
    Forecast,
    Geometric,
    Given,
    History,
    Lateness,
    Next,
    Past,
    differs,
    predictor_of,
    score,
    with_complete,
)
from nearly.standing.policy import SHORTEST, RefreshPolicy, policy_of

MINUTE = Next(seconds=60)


def past(present: dict[str, float], *batches: dict[str, float]) -> Past:
    return Past(present, tuple(Arrival(60.0, {name: Expected(rows) for name, rows in each.items()}) for each in batches))


def test_given_rates() -> None:
    found = Given({"Orders": 10, "lineitem": 0}, deletes=0.25).predict(past({}), MINUTE)
    assert found == {"orders": Expected(450.0, 150.0)}


def test_given_rates_until_so_many_rows() -> None:
    found = Given({"a": 3, "b": 1}).predict(past({}), Next(rows=100))
    assert {name: each.rows for name, each in found.items()} == {"a": 75.0, "b": 25.0}


def test_law_geometric_gives_the_paper_s_series() -> None:
    """90, 9, 0.9 and 0.1 percent of the rows, and then nothing."""
    predictor, present, came = Geometric({"t": 10_000}, p=0.9), 0.0, []
    while (expected := predictor.predict(past({"t": present, "nation": 25}), MINUTE)["t"]).rows:
        came.append(round(expected.rows))
        present += expected.rows
    assert came[:4] == [9_000, 900, 90, 9]
    assert predictor.predict(past({"t": 9_999.9, "nation": 25}), MINUTE)["nation"].last


def test_law_lateness_is_the_conditional_share() -> None:
    delays = [10, 70, 80, 90, 130, 140, 150, 160, 170, 400]
    predictor = Lateness(delays, {"t": 1000})
    first = predictor.predict(past({"t": 0}), MINUTE)["t"].rows
    assert first == pytest.approx(100)
    later = predictor.predict(past({"t": 100}, {"t": 100}), MINUTE)["t"].rows
    assert later == pytest.approx(900 * 3 / 9)
    assert predictor.predict(past({"t": 990}, *[{"t": 1.0}] * 7), MINUTE)["t"].rows == pytest.approx(10)


def test_history_goes_on_with_the_mean() -> None:
    batches = [{"t": 100.0}, {"t": 140.0}, {"t": 120.0}]
    found = History().predict(past({"t": 1000}, *batches), MINUTE)
    assert found["t"].rows == pytest.approx(120)


def test_history_follows_a_trend() -> None:
    batches = [{"t": 100.0 * step} for step in range(1, 6)]
    assert History().predict(past({"t": 1000}, *batches), MINUTE)["t"].rows == pytest.approx(600)


def test_without_history_a_hundredth_is_expected_everywhere() -> None:
    assert History().predict(past({"a": 1000, "b": 10}), MINUTE) == {"a": Expected(10.0), "b": Expected(1.0)}


def test_a_function_may_predict() -> None:
    predictor = predictor_of(lambda past, next_: {"T": past.present["t"] * (next_.seconds or 0)}, ["t"])
    assert predictor.predict(past({"t": 2}), MINUTE) == {"t": Expected(120.0)}


@pytest.mark.parametrize(
    "given", [{"x": 1}, {"t": -1}, {"t": "many"}, {"t": float("nan")}, {"t": 10**400}, {"t": 10**5000}, {3: 1}, 7, "soon"]
)
def test_bad_arrivals(given: object) -> None:
    with pytest.raises(SchemaError, match="arrivals"):
        predictor_of(given, ["t"])


@pytest.mark.parametrize("given", [
    Given({"x": 1}), Geometric({"x": 100}), Geometric({"t": 100, "x": 100}), Lateness([1.0], {"x": 100}),
], ids=repr)  # fmt: skip
def test_predictors_name_tables_of_the_query(given: object) -> None:
    """One that names another would tell that nothing comes of the query's own, and end it."""
    with pytest.raises(SchemaError, match="names 'x', which the query does not read; it reads t"):
        predictor_of(given, ["t"])


def test_predictors_may_leave_tables_out_and_write_names_as_they_like() -> None:
    given = Geometric({"T": 100})
    assert predictor_of(given, ["t", "u"]) is given


def test_delays_that_can_be_read_once_are_kept() -> None:
    assert Lateness((each for each in (1.0, 2.0)), {"t": 1}) == Lateness([1.0, 2.0], {"t": 1})  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [None, 3, {"t": None}, {"t": Expected(float("nan"))}, {"t": Expected(1.0, -1.0)}, {3: "x"}])
def test_bad_predictions_of_a_function(given: object) -> None:
    with pytest.raises(SchemaError, match="arrivals"):
        Called(lambda *_: given).predict(past({}), MINUTE)  # type: ignore[arg-type]


def test_predictions_of_any_predictor_are_looked_at() -> None:
    class Odd:
        def predict(self, *_: object) -> object:
            return {"T": np.int64(7), "u": Expected(np.float32(2))}  # type: ignore[arg-type]

    forecast = Forecast(Odd(), past({"t": 100}))  # type: ignore[arg-type]
    assert forecast.look_ahead(MINUTE) == {"t": Expected(7.0), "u": Expected(2.0)}


@pytest.mark.parametrize("make", [
    lambda: Given({"t": -1}), lambda: Given({"t": 1}, deletes=2),
    lambda: Geometric({"t": float("nan")}), lambda: Geometric({"t": 1}, p=7),
    lambda: Lateness([-1.0], {"t": 1}), lambda: Lateness([1.0], {"t": float("inf")}), lambda: Lateness(["soon"], {"t": 1}),
    lambda: Geometric([("t", 5)]), lambda: Geometric({5: 5}), lambda: Geometric(5), lambda: Geometric({"t": 10**400}),
    lambda: Lateness(5, {"t": 5}), lambda: Lateness([1.0], [5]), lambda: Given({None: 5}), lambda: Given("t"),
])  # fmt: skip
def test_bad_predictors(make: Callable[[], object]) -> None:
    with pytest.raises(SchemaError, match="arrivals"):
        make()


def test_complete_tables_do_not_change() -> None:
    assert with_complete({"a": Expected(1), "b": Expected(2), "c": Expected(0)}, ["A"]) == {"b": Expected(2)}


def test_predictions_differ_by_tables_and_by_far() -> None:
    assert differs({"a": Expected(1)}, {"b": Expected(1)})
    assert differs({"a": Expected(1)}, {"a": Expected(3)})
    assert not differs({"a": Expected(2)}, {"a": Expected(3)})


def test_scores() -> None:
    found = score({"a": Expected(10), "b": Expected(5)}, {"a": Expected(20), "c": Expected(10)})
    assert found.error == pytest.approx((10 + 5 + 10) / 30)
    assert (found.missed, found.in_vain) == (("c",), ("b",))


def test_forecast_judges_what_it_said() -> None:
    forecast = Forecast(Given({"t": 1}), past({"t": 100}))
    forecast.look_ahead(MINUTE)
    forecast.observe(Arrival(60, {"t": Expected(30)}), {"t": 130})
    assert [each.error for each in forecast.scores] == [1.0]
    forecast.finish(["T"])
    assert forecast.look_ahead(MINUTE) == {}


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("5 minutes", 300), ("1 hour", 3600), ("250ms", 0.25), (2, 2), ("1.5 min", 90)]
)
def test_times(text: str, seconds: float) -> None:
    assert seconds_of(text, SHORTEST) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "0s", True, "5 fortnights", None, "1e9h"])
def test_bad_times(text: object) -> None:
    with pytest.raises(SchemaError, match="every"):
        seconds_of(text, SHORTEST)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [0, -1, 2.5, True, "many"])
def test_bad_rows(rows: object) -> None:
    with pytest.raises(SchemaError, match="rows"):
        policy_of(None, rows)  # type: ignore[arg-type]


def test_policies() -> None:
    assert not RefreshPolicy(every=60).is_due(100, 0)
    assert RefreshPolicy(every=60).is_due(60, 1)
    assert not RefreshPolicy(every=60).is_due(59, 1_000_000)
    assert RefreshPolicy(rows=10).is_due(0, 10)
    assert not RefreshPolicy(rows=10).is_due(1e6, 9)
    assert RefreshPolicy(60, 10).is_due(0, 10)
    assert RefreshPolicy(60, 10).is_due(60, 1)
    assert not RefreshPolicy().is_due(1e9, 1e9)
