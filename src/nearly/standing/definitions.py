"""What a catalog keeps of a standing query: as plain values that JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from numbers import Real
from typing import Any

from nearly.standing.arrivals import Arrival, Expected, Geometric, Given, History, Lateness, Predictor
from nearly.standing.standing import Standing

_PREDICTORS = {each.__name__: each for each in (Given, Geometric, Lateness, History)}


@dataclass(frozen=True, slots=True)
class StandingDefinition:
    """A query's text, its policy and budgets, how arrivals are predicted, which tables are complete, and what came so far."""

    text: str
    every: float | None
    rows: int | None
    memory: float
    disk: float
    arrivals: Mapping[str, Any]
    complete: tuple[str, ...]
    batches: Sequence[Any]

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> StandingDefinition:
        return cls(**{**content, "complete": tuple(content["complete"])})

    @classmethod
    def from_standing(cls, one: Standing) -> StandingDefinition:
        budget, forecast = one.budget, one.forecast
        batches = [[each.seconds, {name: asdict(rows) for name, rows in each.came.items()}] for each in forecast.past.batches]
        return cls(
            one.text, one.policy.every, one.policy.rows, budget.memory, budget.disk, _stored(forecast.predictor),
            tuple(sorted(forecast.complete)), batches,
        )  # fmt: skip

    @property
    def content(self) -> dict[str, Any]:
        return asdict(self)


def _stored(predictor: Predictor) -> dict[str, Any]:
    """A predictor that can be made again; a user's own lives only in its session."""
    name = type(predictor).__name__
    if _PREDICTORS.get(name) is not type(predictor):
        return {"kind": History.__name__}
    return {"kind": name, **vars_of(predictor)}


def vars_of(predictor: Any) -> dict[str, Any]:
    """The fields of one of the library's predictors, with numbers as JSON has them: a user's may be those of NumPy."""
    return {field.name: _plain(getattr(predictor, field.name)) for field in fields(predictor)}


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(name): _plain(each) for name, each in value.items()}
        case bool() | int() | float():
            return value
        case Real():
            return float(value)
    return [_plain(each) for each in value]


def restored_predictor(content: Mapping[str, Any]) -> Predictor:
    """The predictor of a definition."""
    found: Predictor = _PREDICTORS[content["kind"]](**{name: value for name, value in content.items() if name != "kind"})
    return found


def restored_past(batches: Sequence[Any]) -> tuple[Arrival, ...]:
    return tuple(Arrival(seconds, {name: Expected(**rows) for name, rows in came.items()}) for seconds, came in batches)
