"""The learned policy (DQM): makes what the agent values most, and lets go of what has earned least.

Rewards: a use of a view by a query is worth what the query gained, less a part of what making the view cost: each use pays half of
what is still owed, and what is owed when the view goes is charged then. So the rewards of a view add up to its benefit: all gains
less the cost. An experience closes every `WINDOW` queries, and when a view goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nearly.autoview.learning.agent import LEAST, Agent, Experience
from nearly.autoview.learning.credits import Credits
from nearly.autoview.learning.demand import REMEMBERED, Demand
from nearly.autoview.learning.network import Array
from nearly.autoview.options import Holding, Occasion, Option
from nearly.autoview.policies.policy import ViewPolicy

DISCOUNT = 0.9995
"""What a second saved one query later is worth now."""
YOUNG = 100
"""Queries for which a view is taken to have lived already when it is asked how long such views live."""
WINDOW = 100
"""Queries after which an experience closes."""
TOGETHER = 20
"""Queries for which a window that is over may wait for others, since what is kept is looked at once for all that close."""
AGAIN = 20
"""Queries before a question for which nothing was worth making is thought about again, as long as the same is kept."""
HOPE = 0.5
"""The share of a query's time that a view may save of which nothing is known."""
PAID = 0.5
"""The share of what is owed that a use pays."""


@dataclass(slots=True)
class _While:
    """A window in the life of a view that is still open."""

    vector: Array
    expected: float
    began: int
    reward: float = 0.0


class Learned(ViewPolicy):
    """Decides by what it learned."""

    name = "learned"

    def __init__(self, seed: int, least: float = LEAST) -> None:
        self.agent = Agent(seed, least)
        self.demand = Demand()
        self.credits = Credits()
        self._open: dict[str, _While] = {}
        self._due = 0
        """Before this query no window closes."""
        self._dared: Option | None = None
        self._lives: dict[str, tuple[int, int]] = {}
        """How often a view was lost to changed tables, and how many queries it lived in all."""
        self._costs: dict[str, float] = {}
        """What making a view cost the query that made it last."""
        self._changes = 0
        """How often a view was made or went."""
        self._declined: dict[str, tuple[int, int]] = {}
        """When nothing was worth making for a question, and after how many changes."""

    def ranked(self, moment: Occasion) -> Sequence[Option]:
        self.demand.note(moment.question, moment.step, moment.options)
        step, changes = self._declined.get(moment.question, (0, -1))
        if changes == self._changes and moment.step - step < AGAIN:
            return ()
        self._close_windows(moment)
        found = self._worth_making(moment, frozenset(each.id for each in moment.kept))
        if not found:
            self._decline(moment)
        return found

    def _decline(self, moment: Occasion) -> None:
        """Remember that nothing was worth making for a question beside what is kept, or not worth what would have to go."""
        if len(self._declined) >= REMEMBERED:
            self._declined.clear()
        self._declined[moment.question] = (moment.step, self._changes)

    def _worth_making(self, moment: Occasion, kept: frozenset[str]) -> Sequence[Option]:
        new = [each for each in moment.options if each.id not in kept]
        if not new:
            return ()
        state = self.agent.vocabulary.state(moment.kept)
        vectors = [self.agent.vector(each, state, moment.capacity, each.cost) for each in new]
        expected = [self._expected(each.id, kept, moment.step, self._cost(each)) for each in new]
        values = self.agent.values(vectors, expected)
        self._dared = None
        if self.agent.explores():
            return self._dare(moment, new)
        best = sorted(zip(values, new, strict=True), key=lambda pair: -pair[0])
        return [each for value, each in best if value > 0] or self._free(moment, new)

    def asked(self, question: str, step: int) -> None:
        self.demand.note(question, step)

    def _dare(self, moment: Occasion, options: Sequence[Option]) -> Sequence[Option]:
        """One option that nothing was measured of, if it would pay were it much better than expected; estimates may be wrong."""
        worth = self._unknown(moment, options)
        if not worth:
            return ()
        self._dared = worth[int(self.agent.random.integers(len(worth)))]
        return (self._dared,)

    def _free(self, moment: Occasion, options: Sequence[Option]) -> Sequence[Option]:
        """Such options where nothing has to go for them: room that is free costs nothing, and only what is made can be measured."""
        free = moment.capacity - moment.used_bytes
        small = [each for each in options if each.bytes <= free]
        return self._unknown(moment, small) if small else ()

    def _unknown(self, moment: Occasion, options: Sequence[Option]) -> list[Option]:
        unknown = (each for each in options if not self.demand.is_measured(moment.question, each.id))
        return [each for each in unknown if self._hoped(moment, each) > 0]

    def _hoped(self, moment: Occasion, option: Option) -> float:
        """What a view would save if the query at hand took only a part of its time with it."""
        rate = self.demand.rate(moment.question, moment.step)
        return rate * HOPE * moment.seconds * self._horizon(option.id) - self._cost(option)

    def _expected(self, id_: str, kept: frozenset[str], step: int, owed: float) -> float:
        """Seconds that a view saves from now on, discounted, less what it owes; one that was lost before is lost again."""
        beside = kept - {id_} if id_ in kept else kept
        return self.demand.worth(id_, beside, step) * self._horizon(id_) - owed

    def _horizon(self, id_: str) -> float:
        """How many queries a view is expected to serve, those of later count less."""
        losses, lived = self._lives.get(id_, (0, 0))
        return 1 / (1 - DISCOUNT + losses / (lived + YOUNG))

    def _cost(self, option: Option) -> float:
        """What making a view costs: what it did before, else what is expected, as far as expectations can be trusted."""
        found = self._costs.get(option.id)
        return option.cost * self.demand.ratio if found is None else found

    def value(self, holding: Holding, moment: Occasion) -> float:
        """Credit for a byte."""
        return self.credits.of(holding, moment.step) / max(1, holding.bytes)

    def victims(self, moment: Occasion, newcomer: Option, size: float) -> list[Holding] | None:
        """Those with least credit; where these are worth more than the new view, those that will save least."""
        found = super().victims(moment, newcomer, size)
        if found is not None or size > moment.capacity:
            return found
        kept = frozenset(each.id for each in moment.kept)
        saves = {each.id: self._expected(each.id, kept, moment.step, 0.0) / max(1, each.bytes) for each in moment.kept}
        found = self.first_of(moment, newcomer, size, lambda holding: saves[holding.id])
        if found is None:
            self._decline(moment)
        return found

    def admits(self, moment: Occasion, newcomer: Option, victims: Sequence[Holding]) -> bool:
        """Whether the new view will save more than those that go for it, and what it costs to make it."""
        if not victims:
            return True
        left = frozenset(each.id for each in moment.kept) - {each.id for each in victims}
        gained = self._expected(newcomer.id, left, moment.step, self._cost(newcomer))
        if newcomer is self._dared:
            gained = max(gained, self._hoped(moment, newcomer))
        for each in victims:
            if gained <= 0:  # what each of them saves is no less than 0
                return False
            gained -= self._expected(each.id, left, moment.step, 0.0)
            left |= {each.id}
        return gained > 0

    def made(self, holding: Holding, moment: Occasion) -> None:
        self._changes += 1
        holding.unpaid = self._costs[holding.id] = holding.cost
        self.credits.begin(holding, moment.step)
        self._begin([holding], moment)

    def _begin(self, holdings: Sequence[Holding], moment: Occasion) -> None:
        """Open the windows of views, beside what is kept."""
        kept, state = frozenset(each.id for each in moment.kept), self.agent.vocabulary.state(moment.kept)
        for each in holdings:
            vector = self.agent.vector(each.option, state, moment.capacity, each.unpaid)
            expected = self._expected(each.id, kept, moment.step, each.unpaid)
            self._open[each.id] = _While(vector, expected, moment.step)

    def used(self, holding: Holding, moment: Occasion, gain: float) -> None:
        self.credits.use(holding, moment.step, gain)
        pays = PAID * holding.unpaid
        holding.unpaid -= pays
        now = self._open.get(holding.id)
        if now is not None:
            now.reward += (gain - pays) * DISCOUNT ** (moment.step - now.began)

    def _close_windows(self, moment: Occasion) -> None:
        if moment.step < self._due:
            return
        before = {each.id: self._open.get(each.id) for each in moment.kept}
        over = [each for each in moment.kept if (now := before[each.id]) is None or moment.step - now.began >= WINDOW]
        self._begin(over, moment)
        for each in over:
            now, following = before[each.id], self._open[each.id]
            if now is not None:
                length = DISCOUNT ** (moment.step - now.began)
                self.agent.add(Experience(now.vector, now.expected, now.reward, following.vector, following.expected, length))
        self._due = TOGETHER + min((each.began + WINDOW for each in self._open.values()), default=0)

    def gone(self, holding: Holding, step: int) -> None:
        self._changes += 1
        self.credits.forget(holding.id)
        losses, lived = self._lives.get(holding.id, (0, 0))
        self._lives[holding.id] = (losses, lived + step - holding.made)
        now = self._open.pop(holding.id, None)
        if now is not None:
            charged = holding.unpaid * DISCOUNT ** max(0, step - now.began)
            self.agent.add(Experience(now.vector, now.expected, now.reward - charged, None, 0.0, 0.0))
        holding.unpaid = 0.0

    def lost(self, id_: str) -> None:
        """A view went since its tables changed."""
        losses, lived = self._lives.get(id_, (0, 0))
        self._lives[id_] = (losses + 1, lived)

    def measured(self, question: str, id_: str, gain: float) -> None:
        self.demand.measure(question, id_, gain)

    def train(self) -> None:
        self.agent.train()

    def content(self) -> Mapping[str, Any]:
        return {
            "agent": self.agent.content(), "demand": self.demand.content(), "credits": self.credits.content(),
            "lives": {id_: list(each) for id_, each in self._lives.items()}, "costs": self._costs,
        }  # fmt: skip

    def restore(self, content: Mapping[str, Any]) -> None:
        self.agent.restore(content["agent"])
        self.demand.restore(content["demand"])
        self.credits.restore(content["credits"])
        self._lives = {id_: (losses, lived) for id_, (losses, lived) in content["lives"].items()}
        self._costs = dict(content.get("costs", {}))
