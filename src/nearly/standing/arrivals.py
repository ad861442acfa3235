"""What will arrive until the next refresh: the rows of each table that come and go, and which tables are complete then.

A predictor sees what came with each refresh so far and when the next one will be. Predictions are kept beside what came, so that it
can be told how good they were.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from numbers import Real
from typing import Any, Protocol

import numpy as np

from nearly.errors import SchemaError

REMEMBERED = 200
"""Refreshes whose arrivals are remembered."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Rows that will come and go, and whether none will after them."""

    inserted: float = 0.0
    deleted: float = 0.0
    last: bool = False

    @property
    def rows(self) -> float:
        return self.inserted + self.deleted


DONE = Expected(last=True)
"""Of a table that is complete."""
Prediction = Mapping[str, Expected]
"""By table, in lower case; a table that is not named will not change."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What came between two refreshes: how long they were apart, and the rows that came and went, by table."""

    seconds: float
    came: Prediction

    def rows(self, table: str) -> float:
        found = self.came.get(table)
        return 0.0 if found is None else found.rows


@dataclass(frozen=True, slots=True)
class Past:
    """The tables of a query with the rows they have now, the batches so far, and for how many seconds the query stands."""

    present: Mapping[str, float]
    batches: tuple[Arrival, ...] = ()

    @property
    def seconds(self) -> float:
        return sum(batch.seconds for batch in self.batches)

    def after(self, batch: Arrival, present: Mapping[str, float]) -> Past:
        return Past(present, (*self.batches, batch)[-REMEMBERED:])


@dataclass(frozen=True, slots=True)
class Next:
    """When the next refresh will be: after some seconds, or some rows of all tables together, whichever comes first."""

    seconds: float | None = None
    rows: float | None = None


class Predictor(Protocol):
    """Tells what will have come at the next refresh."""

    def predict(self, past: Past, next_: Next) -> Prediction: ...


@dataclass(frozen=True, slots=True)
class Given:
    """Rates that someone knows: rows a second by table, of which a share are deletes."""

    rates: Mapping[str, float]
    deletes: float = 0.0

    def __post_init__(self) -> None:
        _refuse_odd_rows(self.rates, "the rate")
        _refuse_odd(self.deletes, "deletes=", 1.0)

    def predict(self, past: Past, next_: Next) -> Prediction:  # noqa: ARG002  every predictor is asked alike
        kept = 1 - self.deletes
        return _by_rates({name.lower(): (rate * kept, rate * self.deletes) for name, rate in self.rates.items()}, next_)


def _by_rates(rates: Mapping[str, tuple[float, float]], next_: Next) -> Prediction:
    """So many rows a second until the trigger; without a time, until so many rows are there."""
    total = sum(came + went for came, went in rates.values())
    spans = [next_.seconds if next_.seconds is not None else None, next_.rows / total if next_.rows is not None and total else None]
    span = min((each for each in spans if each is not None), default=1.0)
    return {name: Expected(came * span, went * span) for name, (came, went) in rates.items() if came + went > 0}


@dataclass(frozen=True, slots=True)
class Geometric:
    """Late data: of the rows that are still missing, a share `p` comes in each interval.

    Law: of a total N, N (1 - p)^k are missing after k intervals; with p = 0.9 come 90 %, 9 %, 0.9 % and so on.
    """

    totals: Mapping[str, float]
    p: float = 0.9

    def __post_init__(self) -> None:
        _refuse_odd_rows(self.totals, "the total")
        _refuse_odd(self.p, "p=", 1.0)

    def predict(self, past: Past, next_: Next) -> Prediction:  # noqa: ARG002  every predictor is asked alike
        missing = _missing(self.totals, past)
        return {name: Expected(left * self.p, 0.0, left * (1 - self.p) < 0.5) if left else DONE for name, left in missing.items()}


def _missing(totals: Mapping[str, float], past: Past) -> dict[str, float]:
    """Rows that each table of a query still lacks; one without a total lacks none."""
    known = {name.lower(): total for name, total in totals.items()}
    lacks = {name: known.get(name, rows) - rows for name, rows in past.present.items()}
    return {name: left if left >= 0.5 else 0.0 for name, left in lacks.items()}


@dataclass(frozen=True, slots=True)
class Lateness:
    """Late data, by how late rows came before: seconds of delay that were seen, and how many rows each table will have in all.

    Law: of what is missing t seconds after the begin, (F(t + s) - F(t)) / (1 - F(t)) comes within s seconds, F being the share of
    delays up to a time.
    """

    delays: Sequence[float]
    totals: Mapping[str, float]
    started: float = 0.0

    def __post_init__(self) -> None:
        _refuse_odd_rows(self.totals, "the total")
        if not isinstance(self.delays, Iterable):
            raise SchemaError(f"arrivals: the delays are {_shown(self.delays)}; they must be a sequence of seconds")
        object.__setattr__(self, "delays", tuple(self.delays))  # what can be read once alone is read once
        for delay in (*self.delays, self.started):
            _refuse_odd(delay, "a delay")

    def predict(self, past: Past, next_: Next) -> Prediction:
        known = sorted(self.delays)
        begun = self.started + past.seconds
        now, then = _share(known, begun), _share(known, begun + (next_.seconds or 0.0))
        coming = (then - now) / (1 - now) if now < 1 else 1.0
        missing = _missing(self.totals, past)
        return {name: Expected(left * coming, 0.0, then >= 1) if left else DONE for name, left in missing.items()}


def _share(known: Sequence[float], value: float) -> float:
    return bisect_right(known, value) / len(known) if known else 1.0


@dataclass(frozen=True, slots=True)
class History:
    """What came with the last refreshes goes on: the mean of the rates of each table, and their trend where there is one."""

    window: int = 8

    def predict(self, past: Past, next_: Next) -> Prediction:
        recent = past.batches[-self.window :]
        if not recent:
            return {name: Expected(max(1.0, rows * 0.01)) for name, rows in past.present.items()}
        names = {name for batch in recent for name in batch.came}
        rates = {name: (_trend(recent, name, "inserted"), _trend(recent, name, "deleted")) for name in names}
        return _by_rates(rates, next_ if (next_.seconds, next_.rows) != (None, None) else Next(recent[-1].seconds))


def _trend(recent: Sequence[Arrival], name: str, what: str) -> float:
    """Rows a second of the next batch: the mean, or the point on the line through the batches where it explains more than half."""
    rates = [getattr(batch.came.get(name, Expected()), what) / max(batch.seconds, 1e-3) for batch in recent]
    mean, spread = float(np.mean(rates)), float(np.var(rates))
    if len(rates) < 4 or spread == 0:
        return mean
    places = np.arange(len(rates))
    slope, begin = np.polyfit(places, rates, 1)
    left = float(np.var(rates - (slope * places + begin)))
    return max(0.0, float(slope * len(rates) + begin)) if left < spread / 2 else mean


@dataclass(frozen=True, slots=True)
class Called:
    """A function of the past and of the next refresh that gives rows, or an `Expected`, by table."""

    function: Callable[[Past, Next], Mapping[str, Any]]

    def predict(self, past: Past, next_: Next) -> Prediction:
        return checked(self.function(past, next_))


def checked(found: Any) -> Prediction:
    """A prediction, as whoever made it meant it: rows, or an `Expected`, by table."""
    if not isinstance(found, Mapping):
        raise SchemaError(f"arrivals= gave {found!r:.80}; it must give a mapping from tables to rows")
    return {str(name).lower(): _expected(name, each) for name, each in found.items()}


def _expected(name: Any, value: Any) -> Expected:
    told = value if isinstance(value, Expected) else Expected(value)
    if not (_is_number(told.inserted) and _is_number(told.deleted)):
        raise SchemaError(f"arrivals= gave {_shown(value)} for table {name!r}; it must be a number of rows, or an Expected")
    return Expected(float(told.inserted), float(told.deleted), bool(told.last))


def _is_number(value: Any, most: float = float("inf")) -> bool:
    """Whether something is a number of rows, of whichever library."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return isfinite(value) and 0 <= float(value) <= most
    except OverflowError:  # a whole number that no float can be
        return False


def _refuse_odd(value: Any, what: str, most: float = float("inf")) -> None:
    if not _is_number(value, most):
        ends = "that is not negative, and not too large" if most == float("inf") else f"between 0 and {most:g}"
        raise SchemaError(f"arrivals: {what} is {_shown(value)}; it must be a number {ends}")


def _refuse_odd_rows(given: Any, what: str) -> None:
    if not isinstance(given, Mapping):
        raise SchemaError(f"arrivals: {what} of each table is told by a mapping from tables to rows, not {_shown(given)}")
    for name, rows in given.items():
        if not isinstance(name, str):
            raise SchemaError(f"arrivals: a table is named {name!r:.80}; a name must be text")
        _refuse_odd(rows, f"{what} of table {name!r}")


def _shown(value: Any) -> str:
    """A value as an error shows it; Python refuses to write numbers of very many digits."""
    try:
        return f"{value!r:.80}"
    except ValueError:
        return f"a number of more than {sys.get_int_max_str_digits():,} digits"


def predictor_of(given: Any, tables: Iterable[str]) -> Predictor:
    """What `arrivals=` means: rates by table, a predictor, a function, or nothing: then the history tells."""
    known = {name.lower() for name in tables}
    if given is None:
        return History()
    if isinstance(given, Mapping):
        for name, rate in given.items():
            _expected(str(name), rate)
        _refuse_others(given, known)
        return Given(dict(given))
    if isinstance(given, Given | Geometric | Lateness):
        _refuse_others(given.rates if isinstance(given, Given) else given.totals, known)
        return given
    if callable(getattr(given, "predict", None)):
        found: Predictor = given
        return found
    if callable(given):
        return Called(given)
    raise SchemaError(f"arrivals={given!r:.80} must be rows a second by table, a predictor or a function")


def _refuse_others(names: Iterable[Any], known: Iterable[str]) -> None:
    """Refuse tables that a query does not read: with another of its tables in mind, they would tell that nothing comes of that."""
    for name in names:
        if not isinstance(name, str) or name.lower() not in known:
            raise SchemaError(f"arrivals= names {name!r}, which the query does not read; it reads {', '.join(sorted(known))}")


def with_complete(prediction: Prediction, complete: Iterable[str]) -> Prediction:
    """A prediction in which tables that are complete do not change any more."""
    done = {name.lower() for name in complete}
    return {name: each for name, each in prediction.items() if name not in done and each.rows > 0}


def differs(first: Prediction, second: Prediction, factor: float = 2.0) -> bool:
    """Whether two predictions ask for different plans: other tables, or one of them by more than a factor."""
    if first.keys() != second.keys():
        return True
    pairs = ((first[name].rows, second[name].rows) for name in first)
    return any(max(a, b) > factor * min(a, b) for a, b in pairs)


@dataclass(frozen=True, slots=True)
class Score:
    """How good a prediction was: the sum of what it was off by, relative to what came, and tables that were missed or in vain."""

    error: float
    missed: tuple[str, ...] = ()
    in_vain: tuple[str, ...] = ()


def score(predicted: Prediction, came: Prediction) -> Score:
    """A prediction beside what came."""
    names = predicted.keys() | came.keys()
    off = sum(abs(predicted.get(name, Expected()).rows - came.get(name, Expected()).rows) for name in names)
    real = {name for name, each in came.items() if each.rows > 0}
    thought = {name for name, each in predicted.items() if each.rows >= 0.5}
    total = sum(each.rows for each in came.values())
    return Score(off / max(total, 1.0), tuple(sorted(real - thought)), tuple(sorted(thought - real)))


@dataclass(slots=True)
class Forecast:
    """A predictor with its record: what it said for the next refresh, and how good it was before."""

    predictor: Predictor
    past: Past
    complete: frozenset[str] = frozenset()
    said: Prediction = field(default_factory=dict)
    scores: list[Score] = field(default_factory=list)

    def look_ahead(self, next_: Next) -> Prediction:
        """What will have come at the next refresh; tables of which it says that they are complete are, from now on."""
        found = checked(self.predictor.predict(self.past, next_))
        self.complete = self.complete | {name for name, each in found.items() if each.last and not each.rows}
        self.said = with_complete(found, self.complete)
        return self.said

    def observe(self, batch: Arrival, present: Mapping[str, float]) -> None:
        """Take what came; the last prediction is judged by it."""
        if self.past.batches or self.said:
            self.scores = [*self.scores, score(self.said, batch.came)][-REMEMBERED:]
        self.past = self.past.after(batch, present)

    def finish(self, tables: Iterable[str]) -> None:
        """Tables of which nothing will come any more."""
        self.complete = self.complete | {name.lower() for name in tables}
        self.said = with_complete(self.said, self.complete)
